// Where a key leads in a laid out tree.
/** @import {LaidNode} from './types.d.ts' */

/** @typedef {'left' | 'right' | 'up' | 'down' | 'start' | 'end'} TreeMove */

/**
 * The node that a key leads to; the same one where there is none. Left leads to the parent, right to the child in which the
 * present text goes on, else the first one; up and down to the next node of the column. Start leads to the root, and end to the
 * node at which repeated moves to the right end.
 * @param {LaidNode[]} nodes
 * @param {LaidNode} from
 * @param {TreeMove} move
 */
export function nodeAfterMove(nodes, from, move) {
  if (move === 'start') return nodes[0];
  if (move === 'end') return lastTowards(nodes, from);
  if (move === 'left') return from.parent ?? from;
  if (move === 'right') return childTowards(nodes, from) ?? from;
  const sign = move === 'down' ? 1 : -1, beyond = nodes.filter(one => one.depth === from.depth && sign * (one.y - from.y) > 0);
  return beyond.sort((one, other) => sign * (one.y - other.y))[0] ?? from;
}

/**
 * The end of the text, or the root.
 * @param {LaidNode[]} nodes
 */
export const hereIn = nodes => nodes.find(({node}) => node.here) ?? nodes[0];

/**
 * The node that takes the place of a node of an earlier drawing of the same text: the node itself, else the sibling that is now
 * where it was, else the last sibling, else its parent or what takes the place of that. Null if nothing does.
 * @param {LaidNode[]} nodes
 * @param {LaidNode} former
 * @returns {LaidNode | null}
 */
export function nodeInPlaceOf(nodes, {node, parent}) {
  const same = nodes.find(one => one.node.key === node.key);
  if (same || !parent) return same ?? null;
  const siblings = nodes.filter(one => one.parent?.node.key === parent.node.key && one.node.state !== 'rest');
  return siblings[parent.node.children.indexOf(node)] ?? siblings[siblings.length - 1] ?? nodeInPlaceOf(nodes, parent);
}

/** The last node to the right: that which moves to the right lead to in the end. @type {(nodes: LaidNode[], from: LaidNode) => LaidNode} */
function lastTowards(nodes, from) {
  const child = childTowards(nodes, from);
  return child ? lastTowards(nodes, child) : from;
}

/** @type {(nodes: LaidNode[], from: LaidNode) => LaidNode | undefined} */
function childTowards(nodes, from) {
  const children = nodes.filter(({parent}) => parent === from);
  for (let node = /** @type {LaidNode | null} */ (hereIn(nodes)); node; node = node.parent) if (node.parent === from) return node;
  return children[0];
}
