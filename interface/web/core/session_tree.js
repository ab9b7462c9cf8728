// The session as a tree: the present text, abandoned texts, branches that were shown and not accepted, and present branches.
/** @import {Odds, PastText, SeenView, Span, TreeNode} from './types.d.ts' */
import {addRest} from './branch_tree.js';

/**
 * @typedef {object} Session
 * @property {string} text before the caret
 * @property {Span[]} spans its chosen stretches
 * @property {PastText[]} past texts that the document has had
 * @property {SeenView[]} seen views that were shown
 * @property {TreeNode} ahead the present branches; its root is the end of the text
 * @property {(text: string) => boolean} [hides] whether the branches after a text are hidden: then neither what was seen there
 *   nor the odds of what was accepted there are shown
 */

/**
 * The tree of a session. Every node but those of present branches is a text that stood before the caret, below the longest
 * other one that it begins with; or a beginning that was seen after such a text. An undone text that is the beginning of a piece
 * that was accepted later lies beside that piece: it does not cut it in two.
 * @param {Session} session
 * @returns {TreeNode} the empty text
 */
export function sessionTree({text, spans, past, seen, ahead, hides = () => false}) {
  const nodes = nodesByText([text, ...past.map(one => one.text), ...seen.map(one => one.text)]);
  const beside = textsBeside(text, past), isOnWay = (/** @type {string} */ full) => text.startsWith(full) && !beside.has(full);
  const root = linkByPrefix(nodes, isOnWay);
  for (const [full, node] of nodes) {
    node.goal = full;
    if (!isOnWay(full)) node.state = 'left';
    else if (touches(spans, full.length - node.text.length, full.length)) node.state = 'chosen';
  }
  for (const {text: full, base, p} of past) {
    if (base !== undefined && typeof p === 'number' && !hides(base)) setOdds(nodes, full, base, {p, raw: true});
  }
  for (const view of seen) {
    const accepted = past.filter(one => one.base === view.text).map(one => one.text.slice(view.text.length));
    if (view.text !== text && !hides(view.text)) addSeen(/** @type {TreeNode} */ (nodes.get(view.text)), view, accepted);
  }
  const here = /** @type {TreeNode} */ (nodes.get(text));
  Object.assign(here, {here: true, goal: undefined, children: [...ahead.children, ...here.children], rest: ahead.rest});
  return root;
}

/**
 * The undone texts that are a part of a piece which was accepted later, as one, on the way to a text.
 * @type {(text: string, past: PastText[]) => Set<string>}
 */
function textsBeside(text, past) {
  const taken = new Set([text, ...past.filter(one => one.taken).map(one => one.text)]);
  const pieces = past.filter(one => one.base !== undefined && text.startsWith(one.text));
  const undone = past.map(one => one.text).filter(full => !taken.has(full) && text.startsWith(full));
  return new Set(undone.filter(({length}) => pieces.some(({base = '', text: end}) => length > base.length && length < end.length)));
}

/** @type {(texts: string[]) => Map<string, TreeNode>} */
function nodesByText(texts) {
  const sorted = [...new Set(['', ...texts])].sort();
  return new Map(sorted.map(text => [text, {
    key: `=${text}`, text, state: 'typed', odds: null, children: [], rest: null, reached: true,
  }]));
}

/**
 * Hang each text below the longest other one that it begins with: in their order that is the last one that it begins with. Those
 * on the way to the present text hang below each other.
 * @param {Map<string, TreeNode>} nodes in the order of their texts
 * @param {(text: string) => boolean} isOnWay
 */
function linkByPrefix(nodes, isOnWay) {
  /** @type {[text: string, node: TreeNode][]} */
  const open = [];
  for (const [text, node] of nodes) {
    while (open.length && !text.startsWith(open[open.length - 1][0])) open.pop();
    const above = open.findLast(([own]) => isOnWay(own) || !isOnWay(text));
    if (above) {
      const [parentText, parent] = above;
      parent.children.push(node);
      node.text = text.slice(parentText.length);
    }
    open.push([text, node]);
  }
  return /** @type {TreeNode} */ (nodes.get(''));
}

/** @type {(spans: Span[], start: number, end: number) => boolean} */
const touches = (spans, start, end) => spans.some(([from, to]) => from < end && to > start);

/** @type {(nodes: Map<string, TreeNode>, text: string, base: string, odds: Odds) => void} */
function setOdds(nodes, text, base, odds) {
  const node = nodes.get(text);
  if (node && base.length === text.length - node.text.length) node.odds = odds;
}

/**
 * Give a node's children the odds that the view after it showed, and add the beginnings that led to none of them.
 * @param {TreeNode} node
 * @param {SeenView} view
 * @param {string[]} accepted the pieces that were accepted after the node's text
 */
function addSeen(node, {beginnings, odds}, accepted) {
  const led = node.children.filter(child => child.state !== 'seen');
  /** @type {Map<TreeNode, string>} the text that a child's odds are those of */
  const known = new Map();
  for (const child of led) {
    const own = odds.get(child.text), isAccepted = accepted.includes(child.text);
    const taken = own || !isAccepted ? undefined : beginnings.find(({text}) => beginsWithWords(child.text, text));
    child.odds = own ?? (taken && !taken.odds.atLeast ? {...taken.odds, bound: true} : null);
    if (child.odds) known.set(child, taken?.text ?? child.text);
  }
  const passed = beginnings.filter(({text}) => ![...known.keys()].some(child => child.text.startsWith(text)));
  for (const {text, odds: own} of passed) {
    node.children.push({key: `${node.key}+${text}`, text, state: 'seen', odds: own, children: [], rest: null, goal: node.goal});
  }
  node.children.sort((one, other) => (other.odds?.p ?? 1) - (one.odds?.p ?? 1));
  // The odds of a piece are a part of those of its beginning.
  const parts = [...known].filter(([, text]) => [...known.values()].some(other => other !== text && text.startsWith(other)));
  addRest(node, parts.map(([child]) => child));
}

/**
 * Whether a piece begins with a text whose last word ends there.
 * @type {(piece: string, text: string) => boolean}
 */
const beginsWithWords = (piece, text) => piece.startsWith(text) && !/^[\p{L}\p{N}\p{M}]/u.test(piece.slice(text.length));
