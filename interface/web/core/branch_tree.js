// The drawn branches as a tree: branches that begin with the same tokens share nodes.
/** @import {DrawnRow, DrawnView, Odds, TreeNode} from './types.d.ts' */

/**
 * The tree of a drawn view. Its root is the end of the text; the last child of the root, and of each node after which
 * branches part, is everything else. So what all branches hold together is what everything else leaves of 1.
 *
 * Only the branches of the newest revision are drawn. If that is older than the text's, the nodes are inert.
 * @param {Pick<DrawnView<DrawnRow>, 'rows'>} drawn
 * @param {{text: string, chosen?: boolean, revision: number}} end the text before the branches, whether its last character
 *   was chosen, and its revision
 * @returns {TreeNode}
 */
export function branchTree({rows}, {text, chosen = false, revision}) {
  const newest = Math.max(...rows.map(row => row.revision)), inert = newest < revision;
  /** @type {TreeNode} */
  const root = {key: 'here', text, state: chosen ? 'chosen' : 'typed', odds: null, children: [], rest: null, reached: true, here: true};
  rows.forEach((row, branch) => { if (row.revision === newest) addRow(root, row, {branch, inert}); });
  setRests(root);
  return root;
}

/** @type {(root: TreeNode, row: DrawnRow, about: {branch: number, inert: boolean}) => void} */
function addRow(root, row, {branch, inert}) {
  let node = root;
  row.pieces.forEach(({text, ids, odds}, piece) => {
    const key = `${node.key}/${ids.join(' ')}`;
    node = childOf(node, {key, text, state: 'ahead', odds, children: [], rest: null, piece: {row, branch, piece}, inert});
  });
  if (row.end) childOf(node, {key: `${node.key}/end`, text: '', state: 'end', odds: row.end, children: [], rest: null, inert});
}

/**
 * The child with the same key as this one, which is added if there is none.
 * @type {(parent: TreeNode, child: TreeNode) => TreeNode}
 */
function childOf(parent, child) {
  const known = parent.children.find(({key}) => key === child.key);
  if (!known) parent.children.push(child);
  return known ?? child;
}

/**
 * Set the rest of a node and of all below it, and add it to the root and to nodes after which branches part.
 * @param {TreeNode} node
 */
function setRests(node) {
  node.children.forEach(setRests);
  if (node.here || node.children.length > 1) addRest(node);
  else node.rest = restOf(node.children.map(({odds}) => odds));
}

/**
 * The probability that is left; null if no odds are known.
 * @param {(Odds | null)[]} odds
 */
function restOf(odds) {
  const known = odds.filter(one => one !== null);
  return known.length ? Math.max(0, 1 - known.reduce((all, {p}) => all + p, 0)) : null;
}

/**
 * Add everything else as the last child of a node, if its children have odds and leave something.
 * @param {TreeNode} node
 * @param {TreeNode[]} [within] children that are a part of other ones: their odds do not count
 */
export function addRest(node, within = []) {
  node.rest = restOf(node.children.filter(child => child.state !== 'rest' && !within.includes(child)).map(({odds}) => odds));
  if (node.rest) node.children.push({key: `${node.key}/rest`, text: '', state: 'rest', odds: {p: node.rest}, children: [], rest: null});
}
