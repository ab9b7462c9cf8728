// The shapes that a laid out tree is drawn with, on the page and in files.
/** @import {LaidLink, LaidNode, TreeState} from './types.d.ts' */
/** @import {WidthOf} from './label_width.js' */
/** @import {Box} from './tip_position.js' */
import {FIGURE_SIZE, LABEL_INSET, LABEL_SIZE} from './tree_layout.js';
import {LEGIBLE, READABLE} from './tree_scale.js';

const LABEL_GAP = 4;        // pixels between a label's base line and the river below it
const FIGURE_DROP = 13;     // from a line to the base line of the odds below it; from a river one more
const LINE_HEIGHT = 13;     // pixels of the screen between the base lines of a label and its odds, at least
const UNKNOWN_WEIGHT = 2;   // of a line to a text whose odds are not known

/** @typedef {{d: string, state: TreeState, filled: boolean, weight: number}} LinkShape a line of this weight, or a filled river */

/** @param {number} value in pixels, with two decimals: the same bytes on every machine */
export const pixels = value => String(Math.round(value * 100) / 100 || 0);

/**
 * The shape of a link.
 * @param {LaidLink} link
 * @param {boolean} river
 * @returns {LinkShape}
 */
export function linkShape({from, to, x0, y0, x1, y1, w0, w1}, river) {
  const {state, odds} = to.node;
  if (!river) return {d: line(x0 + 2, from.right, y0, x1 - 3, y1), state, filled: false, weight: odds ? 1 + 4 * Math.sqrt(odds.p) : UNKNOWN_WEIGHT};
  if (!w1) return {d: line(x0, x0, y0, x1, y1), state, filled: false, weight: 1};
  const middle = pixels((x0 + x1) / 2), edge = (/** @type {number} */ y) => pixels(y);
  const d = `M${pixels(x0)} ${edge(y0 - w0 / 2)}C${middle} ${edge(y0 - w0 / 2)} ${middle} ${edge(y1 - w1 / 2)} ${pixels(x1)} ${edge(y1 - w1 / 2)}`
    + `V${edge(y1 + w1 / 2)}C${middle} ${edge(y1 + w1 / 2)} ${middle} ${edge(y0 + w0 / 2)} ${pixels(x0)} ${edge(y0 + w0 / 2)}Z`;
  return {d, state, filled: true, weight: 1};
}

/**
 * A straight line to the edge of the column, so that it crosses no label, and a curve from there.
 * @type {(x0: number, edge: number, y0: number, x1: number, y1: number) => string}
 */
function line(x0, edge, y0, x1, y1) {
  const middle = pixels((edge + x1) / 2);
  return `M${pixels(x0)} ${pixels(y0)}H${pixels(edge)}C${middle} ${pixels(y0)} ${middle} ${pixels(y1)} ${pixels(x1)} ${pixels(y1)}`;
}

/**
 * The rectangles of a node in a river: the river through its column, and a bar where the odds begin anew. That of everything
 * else is at least as long as its label.
 * @param {LaidNode} node
 * @returns {{x: number, y: number, width: number, height: number, bar: boolean}[]}
 */
export function riverRectangles({node, x, right, y, flow, out, width}) {
  const inner = node.children.length > 0, through = inner ? out : flow;
  const length = node.state === 'rest' ? Math.max(right - x, width) : right - x;
  const own = {x, y: y - through / 2, width: length, height: through, bar: false};
  const bar = {x: x - 3, y: y - out / 2, width: 3, height: out, bar: true};
  return node.reached && inner ? [own, bar] : [own];
}

/**
 * Where the texts of a node begin: their left edge, and the base lines of the label and of the odds. They stand above and
 * below the node's line or river; a label without odds, in a tree, beside its line.
 * @param {Pick<LaidNode, 'x' | 'y' | 'flow' | 'out' | 'figure'>} node
 * @param {number} [scale] at which the drawing is shown: letters keep 12 pixels at any scale, and the odds stay below the label
 */
export function textPositions({x, y, flow, out, figure}, scale = 1) {
  const half = Math.max(flow, out) / 2, beside = !half && !figure, label = beside ? y + LABEL_SIZE / 3 : y - half - LABEL_GAP;
  return {x: x + LABEL_INSET, label, figure: Math.max(y + half + FIGURE_DROP + (half ? 1 : 0), label + LINE_HEIGHT / Math.max(LEGIBLE, scale))};
}

const BESIDE = 6, ABOVE = 4;   // pixels of the screen between texts of different nodes, sideways and upwards
const LEAST_FONT = 12;   // pixels of the screen that letters have at any scale: see tree_panel.css

/**
 * The nodes of a river whose label, and those whose odds, are left out at a scale. Letters keep 12 pixels where the drawing is smaller
 * than READABLE, so that texts can meet: then those of the less likely node are left out, its odds first.
 * @param {LaidNode[]} nodes
 * @param {number} scale
 * @param {WidthOf} widthOf
 */
export function textsWithoutRoom(nodes, scale, widthOf) {
  /** @type {(Box & {laid: LaidNode})[]} */
  const shown = [];
  const labels = new Set(), figures = new Set();
  const likeliest = scale < READABLE ? nodes.toSorted((one, other) => other.flow - one.flow) : [];
  for (const [left, kind, size] of /** @type {const} */ ([[labels, 'label', LABEL_SIZE], [figures, 'figure', FIGURE_SIZE]])) {
    for (const laid of likeliest.filter(one => one[kind])) {
      const at = textPositions(laid, scale), font = Math.max(LEAST_FONT, size * scale), x = at.x * scale, y = at[kind] * scale;
      const box = {laid, left: x, right: x + widthOf(laid[kind], size) * font / size, top: y - 0.75 * font, bottom: y + (kind === 'label' ? 0.2 * font : 0)};
      if (labels.has(laid) || shown.some(other => isClose(box, other, other.laid === laid))) left.add(laid);
      else shown.push(box);
    }
  }
  return {labels, figures};
}

/** @type {(one: Box, other: Box, isSameNode: boolean) => boolean} */
const isClose = (one, other, isSameNode) =>
  Math.max(one.left - other.right, other.left - one.right) < BESIDE && Math.max(one.top - other.bottom, other.top - one.bottom) < (isSameNode ? 0.5 : ABOVE);
