// Where the nodes of a tree are drawn. Depth grows to the right, one column for each depth; no two labels overlap.
/** @import {LaidLink, LaidNode, TreeLayout, TreeNode} from './types.d.ts' */
/** @import {Size} from './tree_scale.js' */
/** @import {WidthOf} from './label_width.js' */
import {READABLE_LOW, fillingSpread} from './tree_scale.js';
import {formatPercent} from './figures_and_labels.js';
import {labelWidth} from './label_width.js';
import {nodeLabel} from './tree_sentences.js';

export const LABEL_SIZE = 15;    // pixels of the labels' font
export const FIGURE_SIZE = 13;   // of the odds below them
export const LABEL_INSET = 2;    // from a node's left edge
const TEXT_ROOM = 17;            // above a node's line or river for its label, and as much below for its odds
const COLUMN_GAP = 24;           // between two columns, where the links are
const LEAST_GAP = 12;            // the smallest gap, where a tree is too wide for its area with COLUMN_GAP
const SIBLING_GAP = 4;           // between two nodes, one above the other
const MARGIN = 12;
const FULL_RIVER = 60;           // the width of a river of probability 1
const NARROW_RIVER = 30;         // the same where an area is so low that figures would have no room

/** @typedef {{top: number[], bottom: number[]}} Contour the edges of a subtree in each column, from its root's on */

/**
 * Lay out a tree, or a river: then the width of each node is its probability, and the widths of a node's children add up to
 * the node's with everything else. Where a text has stood, the river is as wide as at the start again, which `figuresSentence` says. The label of a node
 * stands above its line or river, and its odds below.
 * @param {TreeNode} root
 * @param {{river?: boolean, full?: number, spread?: number, room?: number, widthOf?: WidthOf}} [options] `full`: the width of
 *   a river of probability 1; `spread`: how many times the
 *   distance that their labels need the nodes stand apart; `room`: the width into which the drawing is to fit, see `columnGap`;
 *   `widthOf`: the widths of labels, an upper bound unless given
 * @returns {TreeLayout}
 */
export function layoutTree(root, {river = false, full = FULL_RIVER, spread = 1, room = Infinity, widthOf = labelWidth} = {}) {
  const nodes = measuredNodes(root, river ? full : 0, widthOf);
  const children = childrenByParent(nodes), mains = mainNodes(nodes);
  // From the leaves on: a child comes after its parent in the list.
  /** @type {Map<LaidNode, Contour>} */
  const contours = new Map();
  for (const node of nodes.toReversed()) contours.set(node, stack(node, children.get(node) ?? [], contours, mains));
  moveToPage(nodes, /** @type {Contour} */ (contours.get(nodes[0])));
  const highest = Math.min(...nodes.map(({y}) => y));
  for (const node of nodes) node.y = highest + spread * (node.y - highest);
  const columns = columnEdges(nodes, room);
  for (const node of nodes) [node.x, node.right] = columns[node.depth];
  return {
    width: columns[columns.length - 1][1] + MARGIN, height: Math.max(...nodes.map(node => node.y + node.height / 2)) + MARGIN, river,
    nodes, links: nodes.flatMap(node => linksOf(node, children.get(node) ?? [], river)),
  };
}

/**
 * Lay out a tree for an area: with its columns as close together as `columnGap` allows, so that they fit into the width, and with
 * its nodes as far apart as `fillingSpread` allows, so that they fill the height. Where a river is too high for the area, it is narrower.
 * @param {TreeNode} root
 * @param {{river: boolean, area: Size, least: number}} options `least`: the smallest scale that it is shown at
 */
export function layoutInArea(root, {river, area, least}) {
  const room = area.width / least, wide = layoutTree(root, {river, room}), isLow = river && area.height / wide.height < READABLE_LOW;
  const full = isLow ? NARROW_RIVER : FULL_RIVER, layout = isLow ? layoutTree(root, {river, full, room}) : wide, ys = layout.nodes.map(({y}) => y);
  const spread = fillingSpread({...layout, span: Math.max(...ys) - Math.min(...ys)}, area, least);
  return spread > 1 ? layoutTree(root, {river, full, spread, room}) : layout;
}

/**
 * The nodes with their sizes, each before its children. `full` is the width of a river of probability 1.
 * @param {TreeNode} root
 * @param {number} full
 * @param {WidthOf} widthOf
 */
function measuredNodes(root, full, widthOf) {
  /** @type {LaidNode[]} */
  const nodes = [];
  /** @type {{node: TreeNode, parent: LaidNode | null, flow: number}[]} */
  const open = [{node: root, parent: null, flow: full}];
  for (let next = open.pop(); next; next = open.pop()) {
    const laid = measuredNode(next, full, widthOf), {node: {children}, out} = laid;
    nodes.push(laid);
    const total = Math.max(1, children.reduce((all, {odds}) => all + (odds?.p ?? 0), 0));
    for (const node of children.toReversed()) open.push({node, parent: laid, flow: out * (node.odds?.p ?? 0) / total});
  }
  return nodes;
}

/** @type {(next: {node: TreeNode, parent: LaidNode | null, flow: number}, full: number, widthOf: WidthOf) => LaidNode} */
function measuredNode({node, parent, flow}, full, widthOf) {
  const out = node.reached && node.children.length ? full : flow;
  const label = nodeLabel(node, parent?.node.text), figure = node.note ?? (node.odds ? formatPercent(node.odds) : '');
  const width = 2 * LABEL_INSET + Math.max(widthOf(label, LABEL_SIZE), widthOf(figure, FIGURE_SIZE));
  const depth = parent ? parent.depth + 1 : 0, height = Math.max(flow, out) + 2 * TEXT_ROOM;
  return {node, parent, depth, x: 0, right: 0, y: 0, label, figure, width, height, flow, out};
}

/** @param {LaidNode[]} nodes */
function childrenByParent(nodes) {
  /** @type {Map<LaidNode, LaidNode[]>} */
  const found = new Map();
  for (const node of nodes) if (node.parent) found.set(node.parent, [...found.get(node.parent) ?? [], node]);
  return found;
}

/**
 * The nodes of the present text: it is drawn as a straight line.
 * @param {LaidNode[]} nodes
 */
function mainNodes(nodes) {
  /** @type {Set<LaidNode>} */
  const mains = new Set();
  for (let node = nodes.find(one => one.node.here) ?? null; node; node = node.parent) mains.add(node);
  return mains;
}

/**
 * Put the children of a node one below the other as near as their subtrees allow, and the node beside them. Their `y` counts
 * from the node's.
 * @type {(node: LaidNode, children: LaidNode[], contours: Map<LaidNode, Contour>, mains: Set<LaidNode>) => Contour}
 */
function stack(node, children, contours, mains) {
  const own = {top: -node.height / 2, bottom: node.height / 2};
  if (!children.length) {
    // The label of everything else reaches into the next column.
    const columns = node.node.state === 'rest' ? 2 : 1;
    return {top: Array(columns).fill(own.top), bottom: Array(columns).fill(own.bottom)};
  }
  /** @type {Contour} */
  const all = {top: [], bottom: []};
  for (const child of children) {
    const contour = /** @type {Contour} */ (contours.get(child));
    const shared = contour.top.slice(0, all.bottom.length);
    child.y = all.bottom.length ? Math.max(...shared.map((top, column) => all.bottom[column] + SIBLING_GAP - top)) : 0;
    contour.top.forEach((top, column) => {
      if (column >= all.top.length) all.top[column] = top + child.y;
      all.bottom[column] = contour.bottom[column] + child.y;
    });
    contours.delete(child);
  }
  const main = children.find(child => mains.has(child));
  const middle = main ? main.y : (children[0].y + children[children.length - 1].y) / 2;
  for (const child of children) child.y -= middle;
  return {top: [own.top, ...all.top.map(top => top - middle)], bottom: [own.bottom, ...all.bottom.map(bottom => bottom - middle)]};
}

/** @type {(nodes: LaidNode[], contour: Contour) => void} */
function moveToPage(nodes, {top}) {
  nodes[0].y = MARGIN - Math.min(...top);
  for (const node of nodes) if (node.parent) node.y += node.parent.y;
}

/**
 * The widths of the columns: each is as wide as its widest label. The label of everything else may reach into the next column.
 * @param {LaidNode[]} nodes
 * @param {number} gap between two columns
 */
function columnWidths(nodes, gap) {
  /** @type {number[]} */
  const widths = [];
  for (const {depth, width, node} of nodes) if (node.state !== 'rest') widths[depth] = Math.max(widths[depth] ?? 0, width);
  for (const {depth, width} of nodes) {
    const next = widths[depth + 1] ? gap + widths[depth + 1] : 0;
    widths[depth] = Math.max(widths[depth] ?? 0, width - next);
  }
  return widths;
}

/**
 * The gap between two columns: `COLUMN_GAP` if the drawing fits into `room` with it, else the largest gap down to `LEAST_GAP` with
 * which it fits. `COLUMN_GAP` if it fits with none: then the drawing is scrolled.
 * @param {LaidNode[]} nodes
 * @param {number} room pixels for all columns and the margins
 */
function columnGap(nodes, room) {
  /** @type {(gap: number) => boolean} */
  const fits = gap => {
    const widths = columnWidths(nodes, gap);
    return widths.reduce((all, width) => all + width, 2 * MARGIN + gap * (widths.length - 1)) <= room;
  };
  if (fits(COLUMN_GAP) || !fits(LEAST_GAP)) return COLUMN_GAP;
  let gap = COLUMN_GAP - 1;
  while (!fits(gap)) gap -= 1;
  return gap;
}

/**
 * The left and right edges of the columns.
 * @param {LaidNode[]} nodes
 * @param {number} room pixels for all columns and the margins
 */
function columnEdges(nodes, room) {
  const gap = columnGap(nodes, room);
  let left = MARGIN;
  return columnWidths(nodes, gap).map(width => {
    const edges = [left, left + width];
    left += width + gap;
    return edges;
  });
}

/**
 * The links from a node to its children. A river leaves as wide as the node, and arrives as wide as each child.
 * @type {(from: LaidNode, children: LaidNode[], river: boolean) => LaidLink[]}
 */
function linksOf(from, children, river) {
  const flows = children.reduce((all, {flow}) => all + flow, 0), scale = flows ? from.out / flows : 0;
  let edge = from.y - from.out / 2;
  return children.map(to => {
    const w0 = to.flow * scale, y0 = river ? edge + w0 / 2 : from.y;
    edge += w0;
    return {from, to, x0: river ? from.right : from.x + from.width, y0, x1: to.x, y1: to.y, w0, w1: to.flow};
  });
}
