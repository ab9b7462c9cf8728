// The figure of the mask page: the tree, and under it or beside it the cache as a row of slots, and the mask as a row for each
// token. It is drawn as SVG, on the page and in files.
/** @import {AttentionRecord, DrawingColours, LaidLink, LaidNode, RecordedNode, TreeNode} from '../../web/core/types.d.ts' */
/** @import {Size} from '../../web/core/tree_scale.js' */
/** @import {WidthOf} from '../../web/core/label_width.js' */
import {FIGURE_SIZE, LABEL_SIZE, layoutTree} from '../../web/core/tree_layout.js';
import {escapeXml} from '../../web/core/tree_svg.js';
import {formatCount, quotedText, visibleText} from '../../web/core/figures_and_labels.js';
import {linkShape, pixels, textPositions} from '../../web/core/tree_shapes.js';
import {labelWidth} from '../../web/core/label_width.js';

const CELL = 21;          // pixels of a slot, and of a row of the mask
const GAP = 28;           // between the tree and the cache
const MARGIN = 7;
const SLANT = 50;         // degrees that the tokens above the slots are turned by
const MOST_LABEL = 90;    // pixels of a token beside its row, and above its slot

const CAPTIONS = ['Cache: a slot for each token.', 'Mask: a row for each token, ● where it attends.'];
const LINE = 18;          // pixels from one line of the caption to the next

/**
 * The tokens that are computed up to a pass, in order of their slots.
 * @param {AttentionRecord} record
 * @param {number} pass
 */
export const nodesUpTo = ({nodes}, pass) => nodes.filter(({number}) => number <= pass);

/**
 * The tree of all passes. The key of a node is its slot; the last tokens of the branches have none.
 * @param {AttentionRecord} record
 * @returns {TreeNode}
 */
export function maskTree(record) {
  /** @type {(key: string, text: string, state: TreeNode['state']) => TreeNode} */
  const makeNode = (key, text, state) => ({key, text: text || '◌', state, odds: null, children: [], rest: null});
  /** @type {Map<number, TreeNode>} */
  const bySlot = new Map();
  for (const {slot, text, parent} of record.nodes) {
    const node = makeNode(String(slot), text, slot < record.prompt_tokens ? 'typed' : 'ahead');
    bySlot.set(slot, node);
    if (parent !== null) bySlot.get(parent)?.children.push(node);
  }
  record.leaves.forEach(({text, parent}, index) => { if (parent !== null) bySlot.get(parent)?.children.push(makeNode(`leaf ${index}`, text, 'left')); });
  return bySlot.get(0) ?? makeNode('0', '', 'typed');
}

/**
 * What a pass computes, in one sentence. Without `leaves` the last pass is not known yet.
 * @param {AttentionRecord} record
 * @param {number} pass
 */
export function passSentence({nodes, leaves, prompt_tokens: prompt, passes}, pass) {
  const own = nodes.filter(({number}) => number === pass), named = own.map(({text}) => quotedText(text)).join(', ');
  if (!own.length) return `Pass ${pass} computes nothing new.`;
  const what = own.every(({slot}) => slot < prompt)
    ? `Pass ${pass} computes the prompt: ${formatCount(own.length, 'token')}, each of which attends to itself and to those before it.`
    : `Pass ${pass} computes ${formatCount(own.length, 'token')} at once, one of each branch: ${named}. Each attends to the prompt and to its own branch.`;
  return pass === passes && leaves.length ? `${what} The last tokens of the branches follow from it; they need no slot.` : what;
}

/**
 * What a token attends to, in one sentence.
 * @param {AttentionRecord} record
 * @param {number} slot
 * @param {number} pass
 */
export function slotSentence(record, slot, pass) {
  const shown = nodesUpTo(record, pass), node = shown.find(one => one.slot === slot);
  if (!node) return '';
  const others = shown.filter(one => one.slot !== slot && node.attends.includes(one.slot)).map(({text}) => quotedText(text));
  const what = others.length ? `itself and ${others.join(', ')}` : 'itself alone';
  return `${quotedText(node.text)}, slot ${slot}, position ${node.position}, computed in pass ${node.number}, attends to ${node.attends.length} of ${formatCount(shown.length, 'slot')}: ${what}.`;
}

/**
 * The rows of the table of slots.
 * @param {AttentionRecord} record
 * @returns {string[][]}
 */
export const slotRows = ({nodes}) => nodes.map(({slot, text, position, number, attends}) => [String(slot), visibleText(text), String(position), String(number), attends.join(', ')]);

export const SLOT_HEADS = ['Slot', 'Token', 'Position', 'Pass', 'Attends to the slots'];

/**
 * How a figure is laid out. `isBeside`: whether the mask stands beside the tree; `widthOf`: the widths of labels, an upper bound
 * unless given.
 * @typedef {{isBeside?: boolean, widthOf?: WidthOf}} Arrangement
 */

/**
 * The parts of the figure of all passes: its tree, where the mask begins, and the size of all.
 * @param {AttentionRecord} record
 * @param {Arrangement} [arrangement]
 */
function maskLayout(record, {isBeside = false, widthOf = labelWidth} = {}) {
  const tree = layoutTree(maskTree(record), {widthOf}), slots = Math.max(...record.nodes.map(({slot}) => slot)) + 1;
  const widths = record.nodes.map(({text}) => Math.min(MOST_LABEL, widthOf(visibleText(text.trim() || text), FIGURE_SIZE))), widest = Math.max(...widths);
  const beside = MARGIN + widest + 8, above = 30 + widest * Math.sin(SLANT * Math.PI / 180), captions = tree.height + GAP + LINE;
  const left = Math.max(tree.width, ...CAPTIONS.map(line => widthOf(line, FIGURE_SIZE) + 2 * MARGIN));
  const x = isBeside ? left : 0, top = above + (isBeside ? MARGIN : captions);
  const ends = record.nodes.map(({slot}, index) => Math.max(CELL, CELL / 2 + widths[index] * Math.cos(SLANT * Math.PI / 180)) + slot * CELL);
  const width = Math.max(left, x + beside + Math.max(...ends) + MARGIN), height = Math.max(captions, top + record.nodes.length * CELL) + MARGIN;
  return {tree, x, beside, top, slots, width, height};
}

/**
 * The size in pixels of the figure, which is that of all passes also while an earlier one is shown.
 * @param {AttentionRecord} record
 * @param {Arrangement} [arrangement]
 * @returns {Size}
 */
export const maskSize = (record, arrangement) => maskLayout(record, arrangement);

/**
 * The figure up to a pass, as the text of an SVG file: what is drawn stands where it does in the figure of all passes. Of the
 * chosen slot, what it attends to is marked. Groups have the slot of their token in the attribute `data-slot`.
 * @param {AttentionRecord} record
 * @param {{pass: number, slot: number | null, colours: DrawingColours, title: string} & Arrangement} options
 */
export function maskSvg(record, {pass, slot, colours, title, ...arrangement}) {
  const {tree, x, beside, top, slots, width, height} = maskLayout(record, arrangement), nodes = nodesUpTo(record, pass);
  const chosen = nodes.find(one => one.slot === slot), open = new Set(chosen?.attends), keys = new Set(nodes.map(one => String(one.slot)));
  /** @type {(laid: LaidNode) => boolean} */
  const isShown = ({node}) => (node.state === 'left' ? pass >= record.passes : keys.has(node.key));
  const size = `width="${pixels(width)}" height="${pixels(height)}" viewBox="0 0 ${pixels(width)} ${pixels(height)}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escapeXml(title)}">`,
    `<rect width="100%" height="100%" fill="${colours.paper}"/>`,
    ...tree.links.filter(({to}) => isShown(to)).map(link => linkPath(link, open, colours)),
    ...tree.nodes.filter(isShown).map(laid => treeGroup(laid, {open, chosen, colours})),
    ...CAPTIONS.map((line, index) => textAt(MARGIN, tree.height + GAP - 8 + index * LINE, line, {size: FIGURE_SIZE, fill: colours.soft})),
    `<g transform="translate(${pixels(x)} 0)">`,
    ...nodes.map(node => columnGroup(node, {beside, top, open, chosen, colours, pass})),
    ...nodes.map((node, index) => rowGroup(node, {y: top + index * CELL, beside, slots, chosen, colours, pass})),
    '</g>', '</svg>', '',
  ].join('\n');
}

/** @type {(x: number, y: number, text: string, style: {size: number, fill: string, more?: string}) => string} */
const textAt = (x, y, text, {size, fill, more = ''}) =>
  `<text x="${pixels(x)}" y="${pixels(y)}" font-family="system-ui, sans-serif" font-size="${size}" fill="${fill}" ${more} xml:space="preserve">${escapeXml(text)}</text>`;

/** @type {(link: LaidLink, open: Set<number>, colours: DrawingColours) => string} */
function linkPath(link, open, colours) {
  const lit = open.has(Number(link.to.node.key)), dashes = link.to.node.state === 'left' ? ' stroke-dasharray="3 3"' : '';
  return `<path d="${linkShape(link, false).d}" fill="none" stroke="${lit ? colours.accent : colours.soft}" stroke-width="${lit ? 2.5 : 1}"${dashes}/>`;
}

/** @type {(laid: LaidNode, context: {open: Set<number>, chosen: RecordedNode | undefined, colours: DrawingColours}) => string} */
function treeGroup(laid, {open, chosen, colours}) {
  const {node} = laid, at = textPositions({...laid, figure: ' '}), leaf = node.state === 'left', slot = leaf ? null : Number(node.key);
  const fill = slot !== null && open.has(slot) ? colours.accent : leaf || chosen ? colours.soft : colours.ink, weight = slot !== null && slot === chosen?.slot ? ' font-weight="700"' : '';
  const label = `<text x="${pixels(at.x)}" y="${pixels(at.label)}" font-family="Georgia, serif" font-size="${LABEL_SIZE}" fill="${fill}"${weight} xml:space="preserve">${escapeXml(laid.label)}</text>`;
  const figure = textAt(at.x, at.figure, leaf ? 'no slot' : `slot ${slot}`, {size: FIGURE_SIZE, fill: colours.soft});
  const area = `<rect x="${pixels(laid.x)}" y="${pixels(laid.y - laid.height / 2)}" width="${pixels(Math.max(laid.width, 36))}" height="${pixels(laid.height)}" fill="none" pointer-events="all"/>`;
  return `<g${slot === null ? '' : ` data-slot="${slot}"`}>${area}${label}${figure}</g>`;
}

/** @typedef {{beside: number, chosen: RecordedNode | undefined, colours: DrawingColours, pass: number}} MaskContext */

/** @type {(node: RecordedNode, context: MaskContext & {top: number, open: Set<number>}) => string} */
function columnGroup({slot, text, number}, {beside, top, open, chosen, colours, pass}) {
  const x = beside + slot * CELL, lit = open.has(slot), fill = lit ? colours.accent : number === pass && !chosen ? colours.ink : colours.soft;
  const name = textAt(x + CELL / 2, top - 26, visibleText(text.trim() || text), {size: FIGURE_SIZE, fill, more: `transform="rotate(-${SLANT} ${pixels(x + CELL / 2)} ${pixels(top - 26)})"`});
  const index = textAt(x + CELL / 2, top - 8, String(slot), {size: FIGURE_SIZE, fill, more: 'text-anchor="middle"'});
  const box = `<rect x="${pixels(x)}" y="${pixels(top - 22)}" width="${CELL}" height="${CELL - 3}" fill="${lit ? colours.accent : colours.line}" fill-opacity="${lit ? 0.25 : 0.5}" stroke="${colours.line}"/>`;
  return `<g data-slot="${slot}">${box}${name}${index}</g>`;
}

/** @type {(node: RecordedNode, context: MaskContext & {y: number, slots: number}) => string} */
function rowGroup(node, {y, beside, slots, chosen, colours, pass}) {
  const own = node.slot === chosen?.slot, fresh = node.number === pass, fill = own ? colours.accent : fresh ? colours.ink : colours.soft;
  const area = `<rect x="0" y="${pixels(y)}" width="${pixels(beside + slots * CELL)}" height="${CELL}" fill="${own ? colours.accent : colours.line}" fill-opacity="${own ? 0.14 : fresh ? 0.45 : 0}"/>`;
  const name = textAt(beside - 8, y + 15, visibleText(node.text.trim() || node.text), {size: FIGURE_SIZE, fill, more: 'text-anchor="end"'});
  const grid = `<path d="M${pixels(beside)} ${pixels(y + CELL)}H${pixels(beside + slots * CELL)}" stroke="${colours.line}" fill="none"/>`;
  const dots = node.attends.map(seen => `<circle cx="${pixels(beside + seen * CELL + CELL / 2)}" cy="${pixels(y + CELL / 2)}" r="6" fill="${fill}"/>`).join('');
  return `<g data-slot="${node.slot}">${area}${grid}${name}${dots}</g>`;
}
