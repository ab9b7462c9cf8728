import assert from 'node:assert/strict';
import {test} from 'node:test';
import {layoutTree} from '../../../../interface/web/core/tree_layout.js';
import {linkShape, pixels, riverRectangles, textPositions, textsWithoutRoom} from '../../../../interface/web/core/tree_shapes.js';
import {labelWidth} from '../../../../interface/web/core/label_width.js';
import {withDice} from '../../../support/scripts/dice.js';
import {randomTree} from '../../../support/scripts/trees.js';

const numbers = d => d.match(/-?[\d.]+/g).map(Number);
const near = (found, wanted) => assert.ok(Math.abs(found - wanted) < 0.011, `${found}, and not ${wanted}`);

test('figures have at most two decimals and no negative zero', () => {
  assert.deepEqual([1 / 3, 2, -0.001, 10.005, 1e-9].map(pixels), ['0.33', '2', '0', '10.01', '0']);
});

test('a line leaves at the label, stays level to the end of the column and arrives at the child', () => {
  withDice(20, dice => {
    for (const link of layoutTree(randomTree(dice)).links) {
      const {d, filled, weight} = linkShape(link, false), found = numbers(d);
      near(found[0], link.x0 + 2);
      near(found[1], link.y0);
      near(found[2], link.from.right);
      near(found.at(-2), link.x1 - 3);
      near(found.at(-1), link.y1);
      assert.equal(filled, false);
      near(weight, link.to.node.odds ? 1 + 4 * Math.sqrt(link.to.node.odds.p) : 2);
    }
  });
});

test('a river is filled, as wide at its ends as its link says, and a thin line where its odds are not known', () => {
  withDice(20, dice => {
    for (const link of layoutTree(randomTree(dice), {river: true}).links) {
      const {d, filled, state} = linkShape(link, true);
      assert.equal(filled, link.w1 > 0);
      assert.equal(state, link.to.node.state);
      if (!filled) continue;
      const found = numbers(d), [, top0] = found, top1 = found[7], bottom1 = found[8], bottom0 = found.at(-1);
      near(bottom0 - top0, link.w0);
      near(bottom1 - top1, link.w1);
      near((top0 + bottom0) / 2, link.y0);
      near((top1 + bottom1) / 2, link.y1);
    }
  });
});

test('a river fills its column, and a bar stands where the odds begin anew', () => {
  withDice(20, dice => {
    for (const laid of layoutTree(randomTree(dice), {river: true}).nodes) {
      const [own, bar] = riverRectangles(laid), inner = laid.node.children.length > 0;
      near(own.height, inner ? laid.out : laid.flow);
      near(own.x + own.width, laid.node.state === 'rest' ? Math.max(laid.right, laid.x + laid.width) : laid.right);
      near(own.y + own.height / 2, laid.y);
      assert.equal(Boolean(bar), Boolean(inner && laid.node.reached));
      if (!bar) continue;
      near(bar.x + bar.width, laid.x);
      near(bar.height, laid.out);
      near(bar.y + bar.height / 2, laid.y);
      assert.ok(bar.bar && !own.bar);
    }
  });
});

// The boxes that the texts of a node fill, with the parts of letters below the base line.
function textBoxes(laid) {
  const {x, label, figure} = textPositions(laid);
  const box = (text, size, base) => ({left: x, right: x + labelWidth(text, size), top: base - 0.8 * size, bottom: base + 0.2 * size});
  return [box(laid.label, 15, label), ...(laid.figure ? [box(laid.figure, 13, figure)] : [])];
}

// The upper and lower edges of a link, point by point.
function bandOf(link) {
  const found = numbers(linkShape(link, true).d), [x0, top0, middle] = found, [x1, top1, bottom1, bottom0] = [found[6], found[7], found[8], found.at(-1)];
  return Array.from({length: 21}, (_, step) => {
    const t = step / 20, curve = (a, b, c, d) => (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t * t * c + t ** 3 * d;
    return {x: curve(x0, middle, middle, x1), top: curve(top0, top0, top1, top1), bottom: curve(bottom0, bottom0, bottom1, bottom1)};
  });
}

test('no river runs through a label or its odds', () => {
  withDice(40, dice => {
    const {nodes, links} = layoutTree(randomTree(dice), {river: true}), texts = nodes.flatMap(textBoxes);
    const over = (box, {x, y, width, height}) => box.left < x + width && x < box.right && box.top < y + height - 0.01 && y + 0.01 < box.bottom;
    for (const rectangle of nodes.flatMap(riverRectangles)) {
      for (const box of texts) assert.ok(!rectangle.height || !over(box, rectangle), JSON.stringify([box, rectangle]));
    }
    for (const point of links.filter(({w1}) => w1).flatMap(bandOf)) {
      for (const {left, right, top, bottom} of texts) assert.ok(point.x <= left || point.x >= right || point.top >= bottom || point.bottom <= top);
    }
  });
});

test('the texts of a node lie in its box, and the odds of everything else in its river', () => {
  withDice(20, dice => {
    for (const river of [false, true]) {
      for (const laid of layoutTree(randomTree(dice), {river}).nodes) {
        for (const {left, right, top, bottom} of textBoxes(laid)) {
          assert.ok(left >= laid.x && right <= laid.x + laid.width && top >= laid.y - laid.height / 2 && bottom <= laid.y + laid.height / 2);
          if (river && laid.node.state === 'rest') assert.ok(right <= laid.x + riverRectangles(laid)[0].width);
        }
      }
    }
  });
});

test('in a tree, a label without odds stands beside its line', () => {
  const {label} = textPositions({x: 0, y: 100, flow: 0, out: 0, figure: ''});
  assert.ok(label - 15 * 0.8 < 100 && label > 100);
});

test('in a small tree the odds overlap neither their label nor the label below, though letters keep 12 pixels', () => {
  withDice(20, dice => {
    for (const scale of [0.6, 0.66, 0.75, 0.9]) {
      const {nodes} = layoutTree(randomTree(dice)), figured = nodes.filter(({figure}) => figure);
      for (const laid of figured) {
        const {label, figure} = textPositions(laid, scale), descent = 0.22 * Math.max(12, 15 * scale), ascent = 0.73 * Math.max(12, 13 * scale);
        assert.ok((figure - label) * scale >= descent + ascent);
        const below = figured.filter(({x, y}) => x === laid.x && y > laid.y).map(other => textPositions(other, scale).label);
        assert.ok(below.every(other => (other - figure) * scale >= 0.73 * Math.max(12, 15 * scale)));
      }
    }
  });
});

test('in a small river no texts of different nodes touch, and odds are left out before their label', () => {
  const scale = 0.62;
  withDice(20, dice => {
    const {nodes} = layoutTree(randomTree(dice), {river: true}), {labels, figures} = textsWithoutRoom(nodes, scale, labelWidth), boxes = [];
    for (const laid of nodes) {
      const at = textPositions(laid, scale);
      if (labels.has(laid) && laid.figure) assert.ok(figures.has(laid));
      for (const [kind, size, hidden] of [['label', 15, labels], ['figure', 13, figures]]) {
        if (!laid[kind] || hidden.has(laid)) continue;
        const left = at.x * scale, base = at[kind] * scale;
        boxes.push({laid, left, right: left + labelWidth(laid[kind], size) * 12 / size, top: base - 9, bottom: base});
      }
    }
    for (const [index, one] of boxes.entries()) {
      for (const other of boxes.slice(index + 1)) {
        if (one.laid === other.laid) continue;
        assert.ok(Math.max(one.left - other.right, other.left - one.right) > 5.99 || Math.max(one.top - other.bottom, other.top - one.bottom) > 3.99);
      }
    }
  });
});

test('at a scale that is readable as it is, no text of a river is left out', () => {
  withDice(5, dice => {
    const {labels, figures} = textsWithoutRoom(layoutTree(randomTree(dice), {river: true}).nodes, 1, labelWidth);
    assert.equal(labels.size + figures.size, 0);
  });
});
