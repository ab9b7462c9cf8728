import assert from 'node:assert/strict';
import {test} from 'node:test';
import {READABLE, fillingSpread, fittingScale} from '../../../../interface/web/core/tree_scale.js';
import {FIGURE_SIZE, layoutInArea, layoutTree} from '../../../../interface/web/core/tree_layout.js';
import {labelWidth} from '../../../../interface/web/core/label_width.js';
import {textsWithoutRoom} from '../../../../interface/web/core/tree_shapes.js';
import {Dice} from '../../../support/scripts/dice.js';

test('all of a drawing is seen, unless it would be too small to read or larger than a class needs', () => {
  const dice = new Dice(3), area = {width: 650, height: 330};
  for (let turn = 0; turn < 300; turn += 1) {
    const drawing = {width: 50 + dice.upTo(3000), height: 50 + dice.upTo(1500)}, scale = fittingScale(drawing, area, READABLE);
    const fits = scale * drawing.width <= area.width + 1e-9 && scale * drawing.height <= area.height + 1e-9;
    assert.ok(fits || scale === READABLE);
    assert.ok(scale <= 2 && scale >= READABLE);
    if (scale < 2 && fits) assert.ok(Math.max(scale * drawing.width / area.width, scale * drawing.height / area.height) > 0.999 || scale === READABLE);
  }
});

test('the odds of any drawing have twelve pixels until Fit shows all of it', () => {
  const wide = {width: 3000, height: 100}, area = {width: 600, height: 300};
  assert.ok(FIGURE_SIZE * fittingScale(wide, area, READABLE) >= 12);
  assert.equal(fittingScale(wide, area), 0.2);
});

// Five branches of five common words, as a drawn view of the page has them.
function fiveBranches() {
  const words = [' said', ' it', ' was', ' found', ' happy'], odds = {p: 0.077};
  const chain = (row, index) => ({
    key: `${row}/${index}`, text: words[index], state: 'ahead', odds, children: index < 4 ? [chain(row, index + 1)] : [], rest: null,
  });
  const rest = {key: 'rest', text: '', state: 'rest', odds: {p: 0.67}, children: [], rest: null};
  return {key: 'here', text: ' and counted it. He', state: 'typed', odds: null, here: true, reached: true, rest: null, children: [...[0, 1, 2, 3, 4].map(row => chain(row, 0)), rest]};
}

test('five branches of five words are drawn with words of 18 pixels and odds of 15 in the panel of a small projector', () => {
  const scale = fittingScale(layoutTree(fiveBranches()), {width: 655, height: 336}, READABLE);
  assert.ok(15 * scale >= 18 && 13 * scale >= 15, String(scale));
  const river = fittingScale(layoutTree(fiveBranches(), {river: true}), {width: 655, height: 336}, READABLE);
  assert.ok(15 * river >= 16 && 13 * river >= 14, String(river));
});

test('nodes stand farther apart where the height of the area is to spare, and never nearer', () => {
  const area = {width: 600, height: 300}, spread = (height, span, width = 600) => fillingSpread({width, height, span}, area, READABLE);
  assert.deepEqual([spread(300, 250), spread(900, 850), spread(100, 0)], [1, 1, 1]);
  assert.equal(spread(199, 100), 2);
  assert.equal(spread(50, 20), 2.5, 'within bounds');
  assert.equal(spread(99, 100, 1200), 2.5, 'a drawing that is too wide is scrolled');
});

test('a tree of few rows fills its area, at the same size of letters', () => {
  const few = fiveBranches(), area = {width: 655, height: 336};
  few.children.splice(2, 3);
  for (const river of [false, true]) {
    const plain = layoutTree(few, {river}), layout = layoutInArea(few, {river, area, least: READABLE}), scale = fittingScale(layout, area, READABLE);
    assert.equal(scale, fittingScale(plain, area, READABLE));
    assert.ok(plain.height * scale < 0.75 * area.height && layout.height * scale > 0.9 * area.height, `${plain.height * scale} ${layout.height * scale}`);
    assert.ok(layout.height * scale <= area.height);
    const highest = ({nodes}) => Math.min(...nodes.map(({y}) => y));
    assert.equal(highest(layout), highest(plain), 'nothing is left free above it');
    layout.nodes.forEach(({x, height}, index) => assert.deepEqual([x, height], [plain.nodes[index].x, plain.nodes[index].height]));
  }
});

test('in a low area a river is half as wide, so that all its figures have room', () => {
  const low = {width: 455, height: 191}, least = 0.75, options = {river: true, least};
  const layout = layoutInArea(fiveBranches(), {...options, area: low}), scale = fittingScale(layout, low);
  const {labels, figures} = textsWithoutRoom(layout.nodes, scale, labelWidth);
  assert.deepEqual([layout.nodes[0].out, labels.size, figures.size], [30, 0, 0]);
  assert.equal(layoutInArea(fiveBranches(), {...options, area: {width: 455, height: 400}}).nodes[0].out, 60);
});
