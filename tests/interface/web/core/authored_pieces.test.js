import assert from 'node:assert/strict';
import {test} from 'node:test';

import {AUTHOR_MEANINGS, AUTHOR_NAMES, authoredPieces, countByAuthor, pieceSentence} from '../../../../interface/web/core/authored_pieces.js';

const RUNS = [
  {length: 4, author: 'earlier'}, {length: 5, author: 'chosen', step: 9, model: 'm', logprob: Math.log(0.25)}, {length: 2, author: 'typed', step: 3},
];

test('pieces cover the text, and their order is that of time', () => {
  assert.deepEqual(authoredPieces('Once upon a', RUNS), [
    {start: 0, end: 4, text: 'Once', author: 'earlier', order: null, model: null, probability: null},
    {start: 4, end: 9, text: ' upon', author: 'chosen', order: 2, model: 'm', probability: 0.25},
    {start: 9, end: 11, text: ' a', author: 'typed', order: 1, model: null, probability: null},
  ]);
  assert.deepEqual(authoredPieces('', []), []);
});

test('two steps that end up side by side are two pieces, and one step that was split has one order', () => {
  const typed = (length, step) => ({length, author: 'typed', step});
  assert.deepEqual(authoredPieces('abcd', [typed(1, 2), typed(1, 10), typed(2, 2)]).map(({text, order}) => [text, order]), [['a', 1], ['b', 2], ['cd', 1]]);
});

test('the probability has six digits', () => {
  assert.equal(authoredPieces('a', [{length: 1, author: 'chosen', step: 1, model: null, logprob: -1}])[0].probability, 0.367879);
});

test('a sentence says who wrote a piece, and what is known of it', () => {
  const [earlier, chosen, typed] = authoredPieces('Once upon a', RUNS).map(pieceSentence);
  assert.deepEqual([earlier, chosen, typed], ['earlier text', 'chosen · order 2 · 25 % chance of the whole piece · m', 'typed · order 1']);
});

test('characters are counted whole, by author, the most first', () => {
  const pieces = [{author: 'typed', text: '🙂'}, {author: 'chosen', text: 'ab'}, {author: 'typed', text: ''}, {author: 'chosen', text: 'é'}];
  assert.deepEqual(countByAuthor(pieces), [['chosen', 3], ['typed', 1]]);
});

test('every author has a name and a meaning', () => {
  for (const author of ['typed', 'pasted', 'chosen', 'example', 'earlier']) assert.ok(AUTHOR_NAMES[author] && AUTHOR_MEANINGS[author]);
});
