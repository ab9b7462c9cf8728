import assert from 'node:assert/strict';
import {test} from 'node:test';
import {layoutTree} from '../../../../interface/web/core/tree_layout.js';
import {linkShape, pixels, riverRectangles} from '../../../../interface/web/core/tree_shapes.js';
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
      near(own.x + own.width, laid.right);
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
