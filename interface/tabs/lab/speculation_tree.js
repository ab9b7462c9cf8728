// The draft of a pass as a tree: what the drafters proposed, what the model accepted, and the token that it added. It is drawn as
// SVG, on the page and in files.
/** @import {DrawingColours, LaidLink, LaidNode, SpeculationView, TreeNode} from '../../web/core/types.d.ts' */
/** @import {WidthOf} from '../../web/core/label_width.js' */
import {FIGURE_SIZE, LABEL_SIZE, layoutTree} from '../../web/core/tree_layout.js';
import {KIND_NAMES, acceptedIn, addedNodeSentence, initials, isEnd, tokenSentence} from './speculation_sentences.js';
import {PARTIAL_TOKEN_SIGN} from '../../web/core/figures_and_labels.js';
import {escapeXml} from '../../web/core/tree_svg.js';
import {linkShape, pixels, textPositions} from '../../web/core/tree_shapes.js';

const SHOWN_TEXT = 30;   // characters of the text before the draft
const ADDED = 'added';   // the key of the model's own token
/** The lines and signs of accepted and rejected tokens, and of the model's own. */
const MARKS = /** @type {const} */ ({
  seen: {colour: 'good', width: 3, dashes: '', sign: '✓'},
  left: {colour: 'soft', width: 1.5, dashes: '5 4', sign: '✗'},
  ahead: {colour: 'accent', width: 3, dashes: '1 5', sign: '+'},
});
/** @typedef {keyof typeof MARKS} Mark */

/**
 * The draft of a pass. Keys are the indices of the tokens in the draft, "text" for the text before it, and "added".
 * @param {SpeculationView} view
 * @param {number} number of the pass, from 1
 * @param {string} prompt
 * @returns {TreeNode}
 */
export function draftTree(view, number, prompt) {
  const {nodes, added, before} = view.passes[number - 1], text = prompt + view.texts.slice(0, before).join('');
  /** @type {(key: string, text: string, state: TreeNode['state'], note: string) => TreeNode} */
  const makeNode = (key, own, state, note) => ({key, text: own || PARTIAL_TOKEN_SIGN, state, note, odds: null, children: [], rest: null});
  const root = makeNode('text', text.length > SHOWN_TEXT ? `…${text.slice(-SHOWN_TEXT)}` : text, 'typed', '');
  const made = nodes.map((node, index) => makeNode(String(index), node.text, node.accepted ? 'seen' : 'left', `${MARKS[node.accepted ? 'seen' : 'left'].sign} ${initials(node)}`));
  nodes.forEach(({parent}, index) => (parent === null ? root : made[parent]).children.push(made[index]));
  const last = made[nodes.findLastIndex(({accepted}) => accepted)] ?? root, own = makeNode(ADDED, added.text, 'ahead', `${MARKS.ahead.sign} ${KIND_NAMES[added.kind]}`);
  if (isEnd(view, number)) own.text = 'end';
  own.here = true;
  last.children.unshift(own);
  return root;
}

/**
 * The keys of the nodes of a pass's tree in the order of the arrow keys: the draft, then the model's own token.
 * @type {(view: SpeculationView, number: number) => string[]}
 */
export const keysOf = (view, number) => [...view.passes[number - 1].nodes.map((_, index) => String(index)), ADDED];

/** What the node of this key is. @type {(view: SpeculationView, number: number, key: string) => string} */
export const keySentence = (view, number, key) => (key === ADDED ? addedNodeSentence(view, number) : tokenSentence(view.passes[number - 1], Number(key)));

/**
 * The tree of a pass as the text of an SVG file. The nodes after the text are groups with their keys in the attribute
 * `data-key`; the chosen one is bold and underlined.
 * @param {SpeculationView} view
 * @param {{number: number, prompt: string, chosen: string | null, colours: DrawingColours, widthOf?: WidthOf}} options
 */
export function draftSvg(view, {number, prompt, chosen, colours, widthOf}) {
  const {width, height, nodes, links} = layoutTree(draftTree(view, number, prompt), {widthOf}), pass = view.passes[number - 1];
  const title = `The draft of pass ${number}: ${acceptedIn(pass)} of ${pass.nodes.length} drafted tokens are accepted`;
  const size = `width="${pixels(width)}" height="${pixels(height)}" viewBox="0 0 ${pixels(width)} ${pixels(height)}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escapeXml(title)}">`,
    `<rect width="100%" height="100%" fill="${colours.paper}"/>`,
    ...links.map(link => linkPath(link, colours)),
    ...nodes.map(laid => nodeGroup(laid, chosen, colours, view, number)),
    '</svg>', '',
  ].join('\n');
}

/** @type {(link: LaidLink, colours: DrawingColours) => string} */
function linkPath(link, colours) {
  const {colour, width, dashes} = MARKS[/** @type {Mark} */ (link.to.node.state)];
  return `<path d="${linkShape(link, false).d}" fill="none" stroke="${colours[colour]}" stroke-width="${width}"${dashes && ` stroke-dasharray="${dashes}" stroke-linecap="round"`}/>`;
}

/** @type {(laid: LaidNode, chosen: string | null, colours: DrawingColours, view: SpeculationView, number: number) => string} */
function nodeGroup(laid, chosen, colours, view, number) {
  const {node} = laid, at = textPositions({...laid, figure: ' '}), typed = node.state === 'typed', ink = node.state === 'left' ? colours.soft : colours.ink;
  const halo = `stroke="${colours.paper}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"`;
  const strong = node.key === chosen ? ' font-weight="700" text-decoration="underline"' : '';
  const label = `<text x="${pixels(at.x)}" y="${pixels(at.label)}" font-family="Georgia, serif" font-size="${LABEL_SIZE}" fill="${ink}" ${halo}${strong} xml:space="preserve">${escapeXml(laid.label)}</text>`;
  if (typed) return `<g>${label}</g>`;
  const note = `<text x="${pixels(at.x)}" y="${pixels(at.figure)}" font-family="system-ui, sans-serif" font-size="${FIGURE_SIZE}" fill="${colours.soft}" ${halo}>${escapeXml(laid.figure)}</text>`;
  const area = `<rect x="${pixels(laid.x)}" y="${pixels(laid.y - laid.height / 2)}" width="${pixels(laid.width)}" height="${pixels(laid.height)}" fill="none" pointer-events="all"/>`;
  return `<g data-key="${node.key}"><title>${escapeXml(keySentence(view, number, node.key))}</title>${area}${label}${note}</g>`;
}
