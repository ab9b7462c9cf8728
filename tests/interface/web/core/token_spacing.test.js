import assert from 'node:assert/strict';
import {test} from 'node:test';

import {isJoined, tokenOverlaps} from '../../../../interface/web/core/token_spacing.js';

const pieces = (...texts) => texts.map(text => ({text}));
const overlaps = (...texts) => tokenOverlaps(pieces(...texts)).map(({start, end}) => [Math.sign(start), Math.sign(end)]);

test('a token is joined to the one before it if no space is between them', () => {
  const row = pieces(' didn', '’', 't', ' know', '\n', 'He');
  assert.deepEqual(row.map((_, index) => isJoined(row, index)), [false, true, true, false, false, false]);
  assert.equal(isJoined(row, row.length), false);
  assert.equal(isJoined(pieces('t'), 0, 's'), true, 'the row continues a word');
  assert.equal(isJoined(pieces(' t'), 0, 's'), false);
});

test('a narrow token within a word lies over the neighbour that has room', () => {
  assert.deepEqual(overlaps(' didn', '’', 't', ' know'), [[0, 0], [1, 0], [0, 0], [0, 0]]);
  assert.deepEqual(overlaps(' I', '’', 'mmmmm'), [[0, 0], [0, 1], [0, 0]]);
  assert.deepEqual(overlaps(' E', 'leanor'), [[0, 0], [0, 0]], 'the first has room before it');
  assert.deepEqual(overlaps(' fulcr', 'um'), [[0, 0], [0, 0]], 'the last has room after it');
  assert.deepEqual(overlaps(' i', 'i', 'i'), [[0, 0], [0, 0], [0, 0]], 'none has room for another');
});

test('a narrow token that continues a half-typed word lies over its letters, which are no button', () => {
  const [first, second] = tokenOverlaps(pieces('t', 'umbled', ' out'), 'sleepy-');
  assert.ok(first.start > 1 && first.end === 0 && second.start === 0);
  const [short] = tokenOverlaps(pieces('t', 'umbled'), 's');
  assert.ok(short.start > 0.3 && short.start < 0.6 && short.end > 0.5, 'what one letter leaves comes from the other side');
  for (const letters of ['', 'sleepy ']) assert.equal(tokenOverlaps(pieces('t', 'umbled'), letters)[0].start, 0);
});

test('each token keeps the width of a finger', () => {
  const one = tokenOverlaps(pieces(' keeper', '’', 'keeper', '-', 'keeper'));
  for (const [index, {start, end}] of one.entries()) assert.ok(index % 2 === 0 || (start > 0 && start + end <= 1.5));
  // Six letters are 2.6 rem at least: what two neighbours lie over leaves 1.5 of them.
  assert.ok(one[1].end + one[3].start <= 2.7 - 1.5);
});
