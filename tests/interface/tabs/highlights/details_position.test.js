import assert from 'node:assert/strict';
import {test} from 'node:test';

import {horizontalPosition, verticalPosition} from '../../../../interface/tabs/highlights/details_position.js';
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
