import assert from 'node:assert/strict';
import {test} from 'node:test';

import {ReplayPlayer} from '../../../../interface/tabs/writer/replay_player.js';

const piece = (text, author, note = author) => ({text, author, note});
const sentenceOf = (did, ...pieces) => ReplayPlayer.sentenceOf({start: 0, removed: 0, wait: 0, did, pieces});

test('a step is told with what it brought', () => {
  assert.equal(sentenceOf('typed', piece('Once ', 'typed')), 'typed “Once”');
  assert.equal(sentenceOf('chosen', piece(' upon', 'chosen', 'chosen · 50 % chance of the whole piece · m')), 'chosen “upon” · 50 % chance of the whole piece · m');
  assert.equal(sentenceOf('deleted'), 'deleted');
  assert.equal(sentenceOf('chosen', piece('\n', 'chosen', 'chosen · m')), 'chosen “↵” · m');
  assert.equal(sentenceOf('typed', piece('\n\n', 'typed')), 'typed “↵↵”');
  assert.equal(sentenceOf('typed', piece(' ', 'typed')), 'typed “␣”');
  assert.equal(sentenceOf('typed', piece('sea.\nThe ', 'typed')), 'typed “sea.↵The”');
  assert.equal(sentenceOf('went back to an earlier text', piece('Once', 'typed')), 'went back to an earlier text');
  assert.equal(sentenceOf('pasted', piece('a'.repeat(61), 'pasted')), `pasted “${'a'.repeat(60)}…”`);
});

test('the opening of the example is not told: nobody has chosen it', () => {
  assert.equal(sentenceOf('chosen', piece('It was late', 'example'), piece(' and', 'chosen')), 'chosen “and”');
});

test('of an accepted row, what was chosen and what was written into it are told apart, in their order', () => {
  const chosen = text => piece(text, 'chosen', 'chosen · m');
  assert.equal(sentenceOf('chosen', chosen(' was'), piece(' dusting', 'typed'), chosen(' the keys')), 'chosen “was”, typed “dusting”, chosen “the keys” · m');
  assert.equal(sentenceOf('chosen', piece(' dusting', 'typed')), 'typed “dusting”');
});
