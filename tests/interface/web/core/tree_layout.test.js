import assert from 'node:assert/strict';
import {test} from 'node:test';
import {layoutInArea, layoutTree} from '../../../../interface/web/core/tree_layout.js';
import {labelWidth} from '../../../../interface/web/core/label_width.js';
import {withDice} from '../../../support/scripts/dice.js';
import {allNodes, randomTree} from '../../../support/scripts/trees.js';

const both = run => withDice(40, dice => { for (const river of [false, true]) run(randomTree(dice), river); });

// The box that a node's label and, in a river, the river itself fill.
const boxOf = ({x, y, width, height}) => ({left: x, right: x + width, top: y - height / 2, bottom: y + height / 2});
const overlap = (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

test('no two labels overlap, and all lie on the page', () => {
  both((root, river) => {
    for (const spread of [1, 1.7]) {
      const {nodes, width, height} = layoutTree(root, {river, spread}), boxes = nodes.map(boxOf);
      boxes.forEach((box, index) => {
        for (const other of boxes.slice(index + 1)) assert.ok(!overlap(box, other), JSON.stringify([box, other]));
        assert.ok(box.left >= 0 && box.right <= width && box.top >= 0 && box.bottom <= height);
      });
    }
  });
});

test('columns are moved closer together where all have room only so, and no label overlaps another', () => {
  both((root, river) => {
    const usual = layoutTree(root, {river}), columns = Math.max(...usual.nodes.map(({depth}) => depth));
    const tight = layoutTree(root, {river, room: usual.width - columns}), boxes = tight.nodes.map(boxOf);
    boxes.forEach((box, index) => { for (const other of boxes.slice(index + 1)) assert.ok(!overlap(box, other)); });
    for (const {x0, x1} of tight.links) assert.ok(x1 - x0 >= 12);
    const rest = tight.nodes.some(({node}) => node.state === 'rest');   // its label may need the room that a gap loses
    if (!rest) assert.equal(tight.width, usual.width - columns);
    for (const room of [usual.width, Infinity, usual.width / 3]) assert.equal(layoutTree(root, {river, room}).width, usual.width);
  });
});

test('a tree that has room in its area only with smaller gaps gets them, at the least scale', () => {
  both((root, river) => {
    const {width} = layoutTree(root, {river}), area = {width: 0.5 * (width - 2), height: 100};
    assert.ok(layoutInArea(root, {river, area, least: 0.5}).width <= width - 2);
    assert.equal(layoutInArea(root, {river, area, least: 0.4}).width, width, 'it fits at a smaller scale');
  });
});

test('each node of the tree is laid out once, right of its parent', () => {
  both((root, river) => {
    const {nodes} = layoutTree(root, {river}), all = allNodes(root);
    assert.deepEqual(new Set(nodes.map(({node}) => node)), new Set(all));
    assert.equal(nodes.length, all.length);
    for (const laid of nodes) {
      if (!laid.parent) continue;
      assert.ok(laid.parent.node.children.includes(laid.node));
      assert.ok(laid.x > laid.parent.x && (laid.parent.node.state === 'rest' || laid.x > laid.parent.x + laid.parent.width));
      assert.equal(laid.depth, laid.parent.depth + 1);
    }
  });
});

test('labels are as wide as they are measured', () => {
  const root = {key: '', text: 'a text', state: 'typed', odds: null, children: []};
  const {nodes: [{width, label}]} = layoutTree(root, {widthOf: text => 7 * text.length});
  assert.equal(width, 2 * 2 + 7 * label.length);
});

test('the label and its odds fit into the width of the node, one above the other', () => {
  both((root, river) => {
    for (const {label, figure, width, x, right, node} of layoutTree(root, {river}).nodes) {
      assert.ok(width >= labelWidth(label, 15) && width >= labelWidth(figure, 13));
      assert.ok(node.state === 'rest' || x + width <= right);
    }
  });
});

test('the widths of the children of a river are their odds, and never exceed the width of the parent', () => {
  withDice(60, dice => {
    const {nodes} = layoutTree(randomTree(dice), {river: true}), full = nodes[0].out;
    for (const parent of nodes.filter(({node}) => node.children.length)) {
      const children = nodes.filter(one => one.parent === parent), p = parent.node.children.map(({odds}) => odds?.p ?? 0);
      const sum = children.reduce((all, {flow}) => all + flow, 0);
      assert.ok(sum <= parent.out + 1e-9);
      if (p.reduce((all, one) => all + one, 0) > 0.999) assert.ok(Math.abs(sum - parent.out) <= 0.01 * parent.out);
      children.forEach(child => assert.ok(Math.abs(child.flow - parent.out * (child.node.odds?.p ?? 0)) < 1e-9));
      assert.equal(parent.out, parent.node.reached ? full : parent.flow);
    }
  });
});

test('a leaf is as wide as its odds, also where the text has stood', () => {
  withDice(20, dice => {
    for (const {node, flow, out, height} of layoutTree(randomTree(dice), {river: true}).nodes) {
      if (!node.children.length) assert.equal(out, flow);
      assert.equal(height, Math.max(flow, out) + 34);
    }
  });
});

test('odds that add up to more than 1 are narrowed to the width of the parent', () => {
  const child = (key, p) => ({key, text: key, state: 'ahead', odds: {p}, children: [], rest: null});
  const {nodes} = layoutTree({key: 'r', text: 'r', state: 'typed', odds: null, children: [child('a', 0.9), child('b', 0.6)], rest: 0, reached: true}, {river: true});
  assert.ok(Math.abs(nodes[1].flow + nodes[2].flow - nodes[0].out) < 1e-9);
  assert.ok(Math.abs(nodes[1].flow / nodes[2].flow - 1.5) < 1e-9);
});

test('a river leaves its node in one piece: its slices lie one below the other, in the order of the children', () => {
  withDice(40, dice => {
    const {nodes, links} = layoutTree(randomTree(dice), {river: true});
    for (const parent of nodes) {
      const own = links.filter(({from}) => from === parent).filter(({w0}) => w0 > 0);
      let edge = parent.y - parent.out / 2;
      for (const {y0, w0, w1, to, y1, x1, x0} of own) {
        assert.ok(Math.abs(y0 - w0 / 2 - edge) < 1e-6);
        assert.ok(w0 >= w1 - 1e-9 && w1 === to.flow && y1 === to.y && x1 === to.x && x0 === parent.right);
        edge += w0;
      }
      if (own.length) assert.ok(Math.abs(edge - parent.y - parent.out / 2) < 1e-6);
    }
  });
});

test('links of siblings do not cross: children stand in the order of the tree, in every column', () => {
  both((root, river) => {
    const {nodes} = layoutTree(root, {river}), depths = new Set(nodes.map(({depth}) => depth));
    const inOrder = allNodes(root);
    for (const depth of depths) {
      const column = nodes.filter(one => one.depth === depth).sort((one, other) => inOrder.indexOf(one.node) - inOrder.indexOf(other.node));
      column.forEach((one, index) => assert.ok(!index || one.y > column[index - 1].y));
    }
  });
});

test('the present text is a straight line', () => {
  withDice(40, dice => {
    const {nodes} = layoutTree(randomTree(dice)), here = nodes.find(({node}) => node.here);
    for (let node = here; node?.parent; node = node.parent) assert.ok(Math.abs(node.y - node.parent.y) < 1e-9);
  });
});

test('ten times as many nodes are laid out in less than thirty times the time', () => {
  withDice(1, dice => {
    const [small, large] = [100, 1000].map(most => randomTree(dice, {most}));
    const secondsOf = root => {
      const began = performance.now();
      for (let repeat = 0; repeat < 5; repeat += 1) layoutTree(root, {river: true});
      return performance.now() - began;
    };
    const ratios = Array.from({length: 7}, () => {
      const base = secondsOf(small);
      return secondsOf(large) / base;
    });
    assert.ok(Math.min(...ratios) < 30, String(ratios));
  });
});
