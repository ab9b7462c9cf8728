import assert from 'node:assert/strict';
import {test} from 'node:test';
import {branchTree} from '../../../../interface/web/core/branch_tree.js';
import {allNodes, drawnOf} from '../../../support/scripts/trees.js';
import {ASKED, likelyView, oddsOf, pathOf, textOf, viewOf} from '../../../support/scripts/views.js';

const END = {text: 'Once upon', revision: 3};
const near = (found, wanted) => assert.ok(Math.abs(found - wanted) < 1e-9, `${found}, and not ${wanted}`);
const idsOf = node => (node.key === 'here' ? [] : node.key.replace('here/', '').split('/').map(Number));
const pieces = root => allNodes(root).filter(({state}) => state === 'ahead');

test('the tree holds each beginning of a branch once, with its odds after the one before', () => {
  const paths = [[1, 2, 3, 4], [1, 2, 5, 6], [1, 7, 8, 9], [10, 2, 3, 4]];
  const root = branchTree(drawnOf(viewOf(paths, {mode: 'forks'})), END);
  const wanted = new Set(paths.flatMap(path => path.map((_, index) => path.slice(0, index + 1).join(' '))));
  assert.deepEqual(new Set(pieces(root).map(node => idsOf(node).join(' '))), wanted);
  assert.equal(pieces(root).length, wanted.size);
  for (const node of pieces(root)) {
    const ids = idsOf(node);
    near(node.odds.p, oddsOf(ids) / oddsOf(ids.slice(0, -1)));
    assert.equal(node.text, textOf(ids.at(-1)));
  }
});

test('the odds of the children and what is left of them add up to 1 at every node', () => {
  const root = branchTree(drawnOf(viewOf([pathOf([3], 5), pathOf([4], 5), pathOf([3, 9], 5)], {mode: 'forks'})), END);
  for (const node of allNodes(root).filter(({children, state}) => children.length && state !== 'rest')) {
    const own = node.children.filter(({state}) => state !== 'rest');
    near(own.reduce((all, {odds}) => all + odds.p, 0) + node.rest, 1);
  }
  const last = root.children.at(-1);
  assert.equal(last.state, 'rest');
  near(last.odds.p, root.rest);
});

test('everything else at the end of the text and at each fork leaves of 1 what the branches hold together', () => {
  const paths = [[1, 2, 3, 4], [1, 2, 5, 6], [1, 7, 8, 9], [10, 2, 3, 4]];
  const view = viewOf(paths, {mode: 'forks'}), root = branchTree(drawnOf(view), END);
  const massOf = node => idsOf(node).reduce((mass, _, place, ids) => mass * oddsOf(ids.slice(0, place + 1)) / oddsOf(ids.slice(0, place)), 1);
  const forks = allNodes(root).filter(({children}) => children.some(({state}) => state === 'rest'));
  assert.deepEqual(forks.map(({key}) => key), ['here', 'here/1', 'here/1/2']);
  const left = forks.reduce((all, node) => all + massOf(node) * node.children.at(-1).odds.p, 0);
  const together = [[1, 2, 3], [1, 2, 5], [1, 7], [10]].reduce((all, ids) => all + oddsOf(ids), 0);
  near(together, 1 - left);
});

test('everything else is left out where the branches hold all', () => {
  const view = viewOf([[1]]);
  view.branches[0].logprobs = [0];
  assert.deepEqual(branchTree(drawnOf(view), END).children.map(({state}) => state), ['ahead']);
});

test('a click on a node accepts a branch that has it, up to it', () => {
  const drawn = drawnOf(likelyView(4, 5));
  for (const node of pieces(branchTree(drawn, END))) {
    const {row, branch, piece} = node.piece, ids = row.pieces.slice(0, piece + 1).flatMap(one => one.ids);
    assert.equal(drawn.rows[branch], row);
    assert.deepEqual(ids, idsOf(node));
  }
});

test('an ending is a node of its own that accepts nothing', () => {
  const view = viewOf([[1, 2, 0], [4, 5, 6]], {ended: [0]}), root = branchTree(drawnOf(view), END);
  const ends = allNodes(root).filter(({state}) => state === 'end');
  assert.equal(ends.length, 1);
  assert.equal(ends[0].piece, undefined);
  assert.equal(ends[0].text, '');
  near(ends[0].odds.p, oddsOf([1, 2, 0]) / oddsOf([1, 2]));
});

test('branches of an older text are inert, and are not drawn beside newer ones', () => {
  const old = drawnOf(likelyView(2, 3), {revision: 2}), both = {rows: [...drawnOf(viewOf([[7, 8]])).rows, ...old.rows]};
  assert.ok(pieces(branchTree(old, END)).every(({inert}) => inert));
  const newer = pieces(branchTree(both, END));
  assert.deepEqual(newer.map(node => idsOf(node)), [[7], [7, 8]]);
  assert.ok(newer.every(({inert}) => !inert));
  assert.equal(newer[0].piece.branch, 0);
});

test('without branches the tree is the end of the text alone', () => {
  assert.deepEqual(branchTree({rows: []}, {...END, chosen: true}), {
    key: 'here', text: 'Once upon', state: 'chosen', odds: null, children: [], rest: null, reached: true, here: true,
  });
  assert.equal(ASKED.k, 5);
});
