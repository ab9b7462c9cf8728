import assert from 'node:assert/strict';
import {test} from 'node:test';
import {layoutTree} from '../../../../interface/web/core/tree_layout.js';
import {hereIn, nodeAfterMove, nodeInPlaceOf} from '../../../../interface/web/core/tree_moves.js';
import {withDice} from '../../../support/scripts/dice.js';
import {randomTree} from '../../../support/scripts/trees.js';

test('left leads to the parent, right to a child, and back', () => {
  withDice(20, dice => {
    const {nodes} = layoutTree(randomTree(dice));
    for (const node of nodes) {
      const left = nodeAfterMove(nodes, node, 'left'), right = nodeAfterMove(nodes, node, 'right');
      assert.equal(left, node.parent ?? node);
      if (node.node.children.length) assert.equal(right.parent, node);
      else assert.equal(right, node);
    }
  });
});

test('up and down lead through every node of a column in its order, and end there', () => {
  withDice(20, dice => {
    const {nodes} = layoutTree(randomTree(dice));
    for (const depth of new Set(nodes.map(node => node.depth))) {
      const column = nodes.filter(node => node.depth === depth).sort((one, other) => one.y - other.y);
      column.forEach((node, index) => {
        assert.equal(nodeAfterMove(nodes, node, 'down'), column[index + 1] ?? node);
        assert.equal(nodeAfterMove(nodes, node, 'up'), column[index - 1] ?? node);
      });
    }
  });
});

test('right follows the present text, and one key each leads to the start and to the last node on the right', () => {
  withDice(20, dice => {
    const {nodes} = layoutTree(randomTree(dice)), here = hereIn(nodes);
    for (const node of nodes) {
      assert.equal(nodeAfterMove(nodes, node, 'start'), nodes[0]);
      let last = node;
      while (last.node.children.length) last = nodeAfterMove(nodes, last, 'right');
      assert.equal(nodeAfterMove(nodes, node, 'end'), last);
    }
    let node = nodes[0];
    while (node !== here) {
      const next = nodeAfterMove(nodes, node, 'right');
      assert.notEqual(next, node);
      node = next;
    }
  });
});

test('without an end of the text the root stands for it, and right leads to the first child', () => {
  const child = key => ({key, text: key, state: 'ahead', odds: {p: 0.3}, children: [], rest: null});
  const {nodes} = layoutTree({...child('r'), children: [child('a'), child('b')]});
  assert.equal(hereIn(nodes), nodes[0]);
  assert.equal(nodeAfterMove(nodes, nodes[0], 'right').node.key, 'a');
});

test('the place of a node that is gone is taken by the sibling there, else by the last one, else by the parent', () => {
  const node = (key, children = [], state = 'ahead') => ({key, text: key, state, odds: {p: 0.3}, children, rest: null});
  const laid = (...children) => layoutTree(node('here', [...children, node('here/rest', [], 'rest')])).nodes;
  const row = (...keys) => node('a', keys.map(key => node(`a/${key}`))), before = laid(row('x', 'y', 'z'), node('b'));
  const placeOf = (key, after) => nodeInPlaceOf(after, before.find(one => one.node.key === key))?.node.key;
  assert.equal(placeOf('a/y', laid(row('x', 'z', 'new'), node('b'))), 'a/z');
  assert.equal(placeOf('a/z', laid(row('x', 'y'), node('b'))), 'a/y');
  assert.equal(placeOf('a/y', laid(row('new'), node('b'))), 'a/new');
  assert.equal(placeOf('a/y', laid(node('b'), row())), 'a');
  assert.equal(placeOf('a/y', laid(node('b'), node('c'))), 'b');
  assert.equal(placeOf('b', laid(row('x'))), 'a', 'the rest of the odds takes no place');
  assert.equal(placeOf('a/y', laid(node('b'), row('z', 'y'))), 'a/y');
  assert.equal(nodeInPlaceOf(layoutTree(node('other')).nodes, before[1]), null);
});
