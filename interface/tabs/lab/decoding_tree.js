// The texts of all decoding methods as one tree: a path for each text, and those that the beam search dropped. It is drawn as
// SVG, on the page and in files.
/** @import {DecodedText, DecodingMethod, DecodingNode, DecodingView, DrawingColours, LaidLink, LaidNode} from '../../web/core/types.d.ts' */
/** @import {WidthOf} from '../../web/core/label_width.js' */
import {FIGURE_SIZE, LABEL_SIZE, layoutTree} from '../../web/core/tree_layout.js';
import {PARTIAL_TOKEN_SIGN, formatPercent, quotedText, spokenLabel, spokenText} from '../../web/core/figures_and_labels.js';
import {escapeXml} from '../../web/core/tree_svg.js';
import {linkShape, pixels, textPositions} from '../../web/core/tree_shapes.js';

/** The methods in the order in which their lines lie side by side. */
export const METHODS = /** @type {const} */ (['greedy', 'sample', 'beam']);
/** @type {Record<DecodingMethod, string>} */
export const METHOD_NAMES = {greedy: 'greedy', sample: 'sample', beam: 'beam'};
/** @type {Record<DecodingMethod, 'accent' | 'soft' | 'good'>} */
const COLOURS = {greedy: 'accent', sample: 'soft', beam: 'good'};
/** @type {Record<DecodingMethod, string>} */
const DASHES = {greedy: '', sample: '1 4', beam: '7 3'};
const LINE_GAP = 4;     // pixels between two lines side by side
const SHOWN_PROMPT = 30;   // characters

/** @typedef {Record<DecodingMethod | 'dropped', boolean>} Shown which paths are drawn */

/** @type {(key: string, text: string, logprob: number | null, end: boolean) => DecodingNode} */
const makeNode = (key, text, logprob, end) => ({
  key, text: text || (end ? '' : PARTIAL_TOKEN_SIGN), state: end ? 'end' : 'seen', odds: logprob === null ? null : {p: Math.exp(logprob)},
  children: [], rest: null, texts: new Set(), methods: new Set(), dropped: '',
});

/**
 * The tree of a result. Each key is the token ids of the path, with spaces between them.
 * @param {string} prompt
 * @param {Pick<DecodingView, 'texts' | 'tree'>} view
 * @returns {DecodingNode}
 */
export function decodingTree(prompt, {texts, tree}) {
  const root = makeNode('', prompt.length > SHOWN_PROMPT ? `…${prompt.slice(-SHOWN_PROMPT)}` : prompt, null, false);
  root.state = 'typed';
  /** @type {Map<string, DecodingNode>} */
  const known = new Map([['', root]]);
  /** @type {(parent: DecodingNode, id: number, text: string, logprob: number, end: boolean) => DecodingNode} */
  const child = (parent, id, text, logprob, end) => {
    const key = parent.key ? `${parent.key} ${id}` : String(id), present = known.get(key);
    if (present) return present;
    const made = makeNode(key, text, logprob, end);
    known.set(key, made);
    parent.children.push(made);
    return made;
  };
  for (const text of texts) {
    let node = root;
    text.token_ids.forEach((id, index) => {
      node = child(node, id, text.texts[index], text.logprobs[index], text.ended && index === text.token_ids.length - 1);
      node.methods.add(text.method);
      node.texts.add(textName(text));
    });
  }
  /** @type {DecodingNode[]} */
  const considered = [];
  for (const {parent, token_id: id, text, logprob, ended, fate, reason} of tree) {
    const node = child(parent === null ? root : considered[parent], id, text, logprob, ended);
    considered.push(node);
    if (isDropped(fate) && !node.methods.has('beam')) node.dropped = reason;
  }
  return root;
}

/** Whether the beam search dropped a path of this fate. @param {string} fate */
export const isDropped = fate => !['grew', 'returned'].includes(fate);

/** What a text is called: "greedy", "sample 2", "beam 1". @param {Pick<DecodedText, 'method' | 'number'>} text */
export const textName = ({method, number}) => (method === 'greedy' ? METHOD_NAMES.greedy : `${METHOD_NAMES[method]} ${number}`);

/**
 * The tree with the shown paths alone; a node is shown if it or one after it is.
 * @param {DecodingNode} node
 * @param {Shown} shown
 * @returns {DecodingNode}
 */
export function shownTree(node, shown) {
  const children = node.children.map(one => shownTree(one, shown)).filter(one => isShown(one, shown) || one.children.length);
  return {...node, children};
}

/** @param {DecodingNode} node @param {Shown} shown */
const isShown = ({methods, dropped}, shown) => METHODS.some(method => shown[method] && methods.has(method)) || (shown.dropped && dropped !== '');

/**
 * What is to be said of a node: its token with its chance, which texts pass, or why the beam search dropped it.
 * @param {DecodingNode} node
 */
export function nodeSentence({text, state, odds, texts, dropped}) {
  const token = state === 'end' ? 'The end of the text' : quotedText(text), chance = odds ? ` has a chance of ${formatPercent(odds)} here` : '';
  const passing = texts.size ? `; on the path of ${[...texts].join(', ')}` : '';
  return `${token}${chance}${passing}${dropped ? `; the beam search dropped it: ${dropped}` : ''}.`;
}

/**
 * The name of a node for a screen reader: its token, its chance, the texts that go through it, or why the beam search dropped it.
 * @param {DecodingNode} node
 */
export function nodeName({key, text, state, odds, texts, dropped}) {
  if (!key) return `the prompt, ${spokenText(text).trim()}`;
  const isEnd = state === 'end', token = isEnd || text === PARTIAL_TOKEN_SIGN ? spokenLabel({text: null, end: isEnd}) : spokenText(text).trim();
  const parts = [texts.size ? `on the path of ${[...texts].join(', ')}` : '', dropped ? `dropped by the beam search: ${dropped}` : ''];
  return [odds ? `${token} ${formatPercent(odds)}` : token, ...parts].filter(Boolean).join(', ');
}

/**
 * The layout of the nodes on the shown paths.
 * @param {DecodingNode} root
 * @param {Shown} shown
 * @param {{widthOf?: WidthOf, room?: number}} [measures] `room`: as for `layoutTree`
 */
export const decodingLayout = (root, shown, measures) => layoutTree(shownTree(root, shown), measures);

/**
 * The tree as the text of an SVG file: one line for each method whose text passes, thin grey lines to what the beam search
 * dropped. Each node is a group with its key in the attribute `data-key`, and its sentence as a title.
 * @param {DecodingNode} root
 * @param {{shown: Shown, colours: DrawingColours, title: string, widthOf?: WidthOf, room?: number}} options `room`: as for `layoutTree`
 */
export function decodingSvg(root, {shown, colours, title, widthOf, room}) {
  const {width, height, nodes, links} = decodingLayout(root, shown, {widthOf, room});
  const size = `width="${pixels(width)}" height="${pixels(height)}" viewBox="0 0 ${pixels(width)} ${pixels(height)}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escapeXml(title)}">`,
    `<rect width="100%" height="100%" fill="${colours.paper}"/>`,
    ...links.flatMap(link => linkPaths(link, shown, colours)),
    ...nodes.map(laid => nodeGroup(laid, colours)),
    '</svg>', '',
  ].join('\n');
}

/** @type {(link: LaidLink, shown: Shown, colours: DrawingColours) => string[]} */
function linkPaths(link, shown, colours) {
  const node = /** @type {DecodingNode} */ (link.to.node), methods = METHODS.filter(method => shown[method] && node.methods.has(method));
  if (!methods.length) return [`<path d="${linkShape(link, false).d}" fill="none" stroke="${colours.faint}" stroke-width="1" stroke-opacity="0.6"/>`];
  return methods.map((method, index) => {
    const shift = LINE_GAP * (index - (methods.length - 1) / 2), {d} = linkShape({...link, y0: link.y0 + shift, y1: link.y1 + shift}, false);
    const dashes = DASHES[method] && ` stroke-dasharray="${DASHES[method]}" stroke-linecap="${method === 'sample' ? 'round' : 'butt'}"`;
    return `<path d="${d}" fill="none" stroke="${colours[COLOURS[method]]}" stroke-width="2.5"${dashes}/>`;
  });
}

/** @type {(laid: LaidNode, colours: DrawingColours) => string} */
function nodeGroup(laid, colours) {
  const node = /** @type {DecodingNode} */ (laid.node), at = textPositions(laid), ink = node.methods.size || node.state === 'typed' ? colours.ink : colours.soft;
  const halo = `stroke="${colours.paper}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"`;
  const label = `<text x="${pixels(at.x)}" y="${pixels(at.label)}" font-family="Georgia, serif" fill="${ink}" ${halo} xml:space="preserve">${escapeXml(laid.label)}</text>`;
  const figure = laid.figure && `<text x="${pixels(at.x)}" y="${pixels(at.figure)}" font-family="system-ui, sans-serif" font-size="${FIGURE_SIZE}" fill="${colours.soft}" ${halo}>${escapeXml(laid.figure)}</text>`;
  // The whole area of the node takes the pointer, not only its letters.
  const area = `<rect x="${pixels(laid.x)}" y="${pixels(laid.y - laid.height / 2)}" width="${pixels(laid.width)}" height="${pixels(laid.height)}" fill="none" pointer-events="all"/>`;
  return `<g data-key="${node.key}" font-size="${LABEL_SIZE}"><title>${escapeXml(node.key ? nodeSentence(node) : 'The prompt')}</title>${area}${label}${figure}</g>`;
}
