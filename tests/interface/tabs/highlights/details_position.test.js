import assert from 'node:assert/strict';
import {test} from 'node:test';

import {detailsPosition, horizontalPosition, verticalPosition} from '../../../../interface/tabs/highlights/details_position.js';
import {Dice} from '../../../support/scripts/dice.js';

const line = (top, height = 20) => ({top, bottom: top + height});
const covers = ({top, most}, height, {top: from, bottom: to}) => top < to && top + Math.min(height, most) > from;

test('details stand under a word, or above it where they do not fit under it', () => {
  assert.equal(verticalPosition([line(100)], 200, 800).top, 128);
  assert.equal(verticalPosition([line(700)], 200, 800).top, 492);
});

test('details never cover a line of their word and never leave the window, however high they are', () => {
  const dice = new Dice(7);
  for (let turn = 0; turn < 500; turn += 1) {
    const viewport = 300 + dice.upTo(900), lines = [line(dice.upTo(viewport - 60))], height = 20 + dice.upTo(900);
    if (turn % 3 === 0) lines.push(line(lines[0].bottom + 10));
    const found = verticalPosition(lines, height, viewport);
    for (const one of lines) assert.ok(!covers(found, height, one), JSON.stringify([lines, height, viewport, found]));
    assert.ok(found.top >= 8 && found.top + Math.min(height, found.most) <= viewport - 8);
  }
});

test('where they fit on neither side, details are on the side with more space', () => {
  assert.deepEqual(verticalPosition([line(100)], 900, 800), {top: 128, most: 664});
  assert.deepEqual(verticalPosition([line(600)], 900, 800), {top: 8, most: 584});
});

test('details begin where the word begins, and stay in the window', () => {
  assert.deepEqual([horizontalPosition(50, 300, 390), horizontalPosition(300, 300, 390), horizontalPosition(3, 300, 390)], [50, 82, 8]);
});

const box = (left, top, right, bottom) => ({left, top, right, bottom});
const meet = (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
const page = {width: 1280, height: 720}, text = box(600, 230, 1250, 400), size = {width: 560, height: 200};
const at = (lines, after, more = {}) => detailsPosition({lines, text, after, size, page, ...more});
const boxOf = ({left, top}, {width, height} = size) => box(left, top, left + width, top + height);

test('details stand under their word where no highlight follows below it', () => {
  assert.deepEqual(at([box(700, 330, 760, 350)], []), {left: 700, top: 358, most: 200});
});

test('details leave the highlights after their word free: they stand under the text', () => {
  const after = [box(900, 265, 960, 285), box(650, 300, 720, 320), box(1000, 370, 1080, 390)];
  assert.deepEqual(at([box(700, 265, 760, 285)], after), {left: 700, top: 408, most: 200});
});

test('under a text that fills the window there is no room: they stand above the word, or beside the text', () => {
  const long = box(600, 230, 1250, 650), after = [box(650, 560, 720, 580)];
  assert.equal(at([box(700, 500, 760, 520)], after, {text: long}).top, 292, 'above the word');
  const first = box(620, 240, 700, 260), low = {width: 560, height: 260};
  assert.deepEqual(at([first], [box(650, 300, 720, 320)], {text: long, size: low}), {left: 32, top: 240, most: 260});
});

test('details stay in the window and off their word, and cover a following highlight only where every place does', () => {
  const dice = new Dice(11);
  for (let turn = 0; turn < 400; turn += 1) {
    const own = {width: 100 + dice.upTo(500), height: 60 + dice.upTo(300)}, area = box(600, 150 + dice.upTo(150), 1250, 350 + dice.upTo(330));
    const word = () => { const [x, y] = [610 + dice.upTo(540), area.top + dice.upTo(area.bottom - area.top - 20)]; return box(x, y, x + 80, y + 20); };
    const line = word(), after = Array.from({length: dice.upTo(6)}, word).filter(one => !meet(one, line));
    const found = at([line], after, {text: area, size: own});
    if (found.most < own.height) continue;
    const mine = boxOf(found, own);
    assert.ok(!meet(mine, line) && mine.left >= 8 && mine.top >= 8 && mine.right <= 1272 && mine.bottom <= 712);
    const covered = after.filter(one => meet(one, mine)).length;
    const below = box(mine.left, area.bottom + 8, mine.right, area.bottom + 8 + own.height);
    if (covered && below.bottom <= 712) assert.fail('there was room under the text');
  }
});

test('what is to be kept free is free, even where highlights are covered then', () => {
  const long = box(600, 230, 1250, 650), word = box(700, 420, 760, 440), button = box(900, 200, 1000, 230);
  const after = [box(650, 460, 720, 480), box(650, 500, 720, 520)], wide = {text: long, size: {width: 620, height: 200}};
  assert.equal(at([word], after, wide).top, 212, 'above the word, where it covers the button');
  assert.equal(at([word], after, {...wide, keep: [button]}).top, 448, 'under the word');
});

test('details higher than the window stand beside the text, cut at the height of the window', () => {
  const low = {text: box(430, 240, 887, 490), size: {width: 416, height: 546}, page: {width: 911, height: 512}};
  const word = box(500, 261, 550, 286), button = box(447, 138, 563, 166);
  assert.deepEqual(at([word], [], {...low, keep: [button]}), {left: 8, top: 8, most: 496});
});

test('where there is no room beside the text, details are cut between the button and the word, or under the word', () => {
  const narrow = {text: box(13, 240, 377, 700), size: {width: 370, height: 500}, page: {width: 390, height: 844}}, button = box(203, 60, 365, 100);
  assert.deepEqual(at([box(80, 600, 200, 620)], [], {...narrow, keep: [button]}), {left: 12, top: 108, most: 484});
  assert.deepEqual(at([box(80, 400, 200, 420)], [], {...narrow, keep: [button]}), {left: 12, top: 428, most: 408});
});

test('in a small window, details that would cover the button above their word stand left of the text, as far as there is room', () => {
  const low = {text: box(430, 240, 887, 600), size: {width: 416, height: 245}, page: {width: 911, height: 512}};
  const word = box(500, 261, 550, 286), button = box(447, 138, 563, 166);
  assert.deepEqual(at([word], [], {...low, keep: [button]}), {left: 8, top: 259, most: 245});
  assert.equal(at([word], [], low).top, 8, 'above the word, where there is nothing to keep free');
});
