import assert from 'node:assert/strict';
import {test} from 'node:test';

import {buttonsFor, isPartOfWord, pieceName, sharedButtons, tokensOfDepth, wordOfPiece} from '../../../../interface/web/core/row_tokens.js';

const row = (...texts) => texts.map(text => ({text, ends: 1, ids: [1]}));

test('pieces that make one word together are parts of it, and others are not', () => {
  const pieces = row(' cre', 'pt', ' out', '.', 'x');
  assert.deepEqual(pieces.map((_, index) => wordOfPiece(pieces, index)), ['crept', 'crept', '', '', '']);
  assert.equal(wordOfPiece(row(' un', 'fort', 'unate'), 1), 'unfortunate');
});

test('letters that stand in the text belong to the word', () => {
  assert.equal(wordOfPiece(row('house', ' keeper'), 0, 'light'), 'lighthouse');
  assert.equal(wordOfPiece(row('house', ' keeper'), 1, 'light'), '');
});

test('a word that the row does not end is shown as unfinished', () => {
  const pieces = [...row(' un'), {text: 'fort', ends: 0, ids: [1]}];
  assert.deepEqual([wordOfPiece(pieces, 0), wordOfPiece(pieces, 1)], ['unfort…', 'unfort…']);
});

test('in scripts without spaces no piece is called a part', () => assert.equal(wordOfPiece(row('中', '文'), 0), ''));

test('a piece is named with what it is', () => {
  const pieces = row(' cre', 'pt', ' out');
  assert.equal(pieceName({pieces}, pieces[1]), 'token “pt”, a part of “crept”');
  assert.equal(pieceName({pieces}, pieces[2]), 'token “out”');
  assert.equal(pieceName({}, {text: ' '}), 'token “␣” (space)');
  assert.equal(pieceName({}, {text: '\n'}), 'token “↵” (line break)');
  const fox = {text: '🦊', ends: 1, ids: [1, 2, 3]}, opened = {text: 'house', ends: 1, ids: [1, 2]};
  assert.equal(pieceName({pieces: [fox]}, fox), '3 tokens “🦊”');
  assert.equal(pieceName({pieces: [opened], healed: true}, opened), 'token “house”', 'one of its tokens stands in the text');
  assert.equal(pieceName({pieces: [opened, fox], healed: true}, fox), '3 tokens “🦊”');
});

test('tokens are counted in buttons', () => {
  const pieces = [{tokens: 2}, {tokens: 3}, {tokens: 6}];
  assert.deepEqual([1, 2, 3, 4, 6, 7].map(count => buttonsFor(pieces, count)), [1, 1, 2, 3, 3, 0]);
});

/** @param {[string, number][]} parts texts, and how much each ends */
const pieces = (...parts) => parts.map(([text, ends], index) => ({text, ends, ids: [index], tokens: index + 1}));

test('a share is that of the buttons up to where the row differs from all others, or of its next word', () => {
  const row = pieces([' the', 1], [' of', 1], [' sea', 1]);
  assert.equal(sharedButtons({apart: 1, pieces: row}), 1);
  assert.equal(sharedButtons({apart: 2, pieces: row}), 2);
  assert.equal(sharedButtons({apart: 9, pieces: row}), 3, 'a row that nothing sets apart counts whole');
  assert.equal(sharedButtons({apart: 0, pieces: row}), 0, 'a share of nothing is that of no button');
  const word = (text, tokens) => ({text, tokens});
  const split = pieces([' is', 0], ['n', 0], ['’t', 1], [' just', 1]);
  assert.equal(sharedButtons({apart: 1, pieces: split, next_word: word(' isn’t', 3)}), 3);
  assert.equal(sharedButtons({apart: 1, pieces: split, next_word: word(' is', 1)}), 1);
  assert.equal(sharedButtons({apart: 1, pieces: split, next_word: word('', 1)}), 0, 'the text ends');
  assert.equal(sharedButtons({apart: 1, pieces: pieces(['\n', 1], ['The', 1]), next_word: word('\n', 1)}), 1);
});

test('a row is a part of a word if it has one word alone and nothing says that this ends', () => {
  const piece = (text, ends = 0) => ({text, ends});
  const row = (pieces, more = {}) => ({branch: {}, pieces, ids: [1], share: {p: 0.1}, ended: false, repeats: false, unsaid: 0, ...more});
  assert.equal(isPartOfWord(row([piece(' n')])), true);
  assert.equal(isPartOfWord(row([piece(' n'), piece('ew')])), true);
  for (const whole of [[piece(' n', 1)], [piece(' n'), piece(' sea')], [piece(' n'), piece(',')], [piece(',')], [piece('字')], []]) assert.equal(isPartOfWord(row(whole)), false);
  for (const more of [{ended: true}, {repeats: true}, {unsaid: 1}, {branch: {word: [0, 1]}}]) assert.equal(isPartOfWord(row([piece(' n')], more)), false);
  const word = {next_word: {tokens: 1}};
  assert.equal(isPartOfWord(row([piece(' n')], word)), false, 'the share of the whole word is known');
  assert.equal(isPartOfWord(row([piece(' n')], {...word, share: {p: 0.1, atLeast: true}})), true);
  assert.equal(isPartOfWord(row([piece(' n')], {...word, ids: [1, 2], share: {p: 0.1, atLeast: true}})), false, 'the row goes on after its word');
});

test('a depth counts the token that replaces the typed one where it inserts characters', () => {
  const branch = (healed, ...tokens) => ({healed, pieces: tokens.map(count => ({tokens: count}))});
  assert.deepEqual([branch(false, 1), branch(false, 2), branch(true, 1), branch(true, 2), branch(true)].map(one => tokensOfDepth(one, 5)), [5, 5, 5, 6, 6]);
});
