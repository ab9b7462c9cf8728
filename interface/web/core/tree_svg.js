// A laid out tree as the text of an SVG file. The same layout and colours give the same bytes.
/** @import {DrawingColours, LaidLink, LaidNode, TreeLayout, TreeState} from './types.d.ts' */
import {FIGURE_SIZE, LABEL_SIZE} from './tree_layout.js';
import {escapeMarkup} from './markup.js';
import {linkShape, pixels, riverRectangles, textPositions} from './tree_shapes.js';

const SERIF = "Georgia, 'Noto Serif', 'DejaVu Serif', serif";
const FIGURE_STYLE = `font-family="system-ui, sans-serif" font-size="${FIGURE_SIZE}" font-weight="400"`;
// Characters that no XML document may contain, and lone halves of characters.
// eslint-disable-next-line no-control-regex
const FORBIDDEN = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/**
 * A text for XML: signs of markup are escaped, and characters that XML forbids are replaced.
 * @param {string} text
 */
export const escapeXml = text => escapeMarkup(text.replace(FORBIDDEN, '\ufffd'));

/** @type {Record<TreeState, keyof DrawingColours>} */
const LINES = {typed: 'soft', chosen: 'good', left: 'soft', seen: 'line', ahead: 'accent', end: 'soft', rest: 'line'};
/** @type {Record<TreeState, keyof DrawingColours>} */
const INKS = {typed: 'ink', chosen: 'ink', left: 'soft', seen: 'soft', ahead: 'ink', end: 'soft', rest: 'soft'};

/**
 * The SVG file of a drawing.
 * @param {TreeLayout} layout
 * @param {{colours: DrawingColours, title: string}} options `title`: what the drawing shows
 */
export function treeSvg({width, height, river, nodes, links}, {colours, title}) {
  const size = `width="${pixels(width)}" height="${pixels(height)}" viewBox="0 0 ${pixels(width)} ${pixels(height)}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escapeXml(title)}">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="100%" height="100%" fill="${colours.paper}"/>`,
    ...links.map(link => linkElement(link, river, colours)),
    ...(river ? nodes.flatMap(node => riverElements(node, colours)) : []),
    ...nodes.map(node => nodeElement(node, colours)),
    '</svg>', '',
  ].join('\n');
}

/** @type {(link: LaidLink, river: boolean, colours: DrawingColours) => string} */
function linkElement(link, river, colours) {
  const {d, state, filled, weight} = linkShape(link, river), colour = colours[LINES[state]];
  if (filled) return `<path d="${d}" fill="${colour}" fill-opacity="${opacityOf(state)}"/>`;
  const dashes = state === 'left' ? ' stroke-dasharray="4 3"' : '';
  return `<path d="${d}" fill="none" stroke="${colour}" stroke-width="${pixels(weight)}" stroke-opacity="0.75"${dashes}/>`;
}

/** @type {(node: LaidNode, colours: DrawingColours) => string[]} */
const riverElements = (laid, colours) => riverRectangles(laid).map(({x, y, width, height, bar}) => {
  const {state} = laid.node, box = `x="${pixels(x)}" y="${pixels(y)}" width="${pixels(width)}" height="${pixels(height)}"`;
  return `<rect ${box} fill="${colours[LINES[state]]}" fill-opacity="${bar ? 1 : opacityOf(state)}"/>`;
});

/** @param {TreeState} state */
export const opacityOf = state => (state === 'rest' || state === 'seen' ? 0.6 : state === 'ahead' ? 0.35 : 0.2);

/** @type {(laid: LaidNode, colours: DrawingColours) => string} */
function nodeElement(laid, colours) {
  const {node: {state, here}, label, figure} = laid, at = textPositions(laid), x = pixels(at.x);
  const font = `font-family="${SERIF}" font-size="${LABEL_SIZE}" fill="${colours[INKS[state]]}"${here ? ' font-weight="700"' : ''}`;
  const halo = `stroke="${colours.paper}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"`;
  const style = (state === 'left' ? ' font-style="italic"' : '') + (state === 'chosen' ? ' text-decoration="underline"' : '');
  const odds = figure && `<tspan x="${x}" y="${pixels(at.figure)}" ${FIGURE_STYLE} fill="${colours.soft}">${escapeXml(figure)}</tspan>`;
  return `<text x="${x}" y="${pixels(at.label)}" ${font} ${halo} xml:space="preserve"><tspan${style}>${escapeXml(label)}</tspan>${odds}</text>`;
}
