import assert from 'node:assert/strict';
import {test} from 'node:test';

import {bracketParts, forkOf, forkSentence, partingPhrase, samePhrase, sameRowAbove, waysSentence} from '../../../../interface/web/core/row_forks.js';

const rowOf = (paths, revision = 1) => ({revision, pieces: paths.map(ids => ({ids: [ids].flat()}))});
const forks = rows => rows.map((_, index) => forkOf(rows, index));

test('a row forks from the row above that it is the same as for longest', () =>
  assert.deepEqual(forks([rowOf([1, 2, 3]), rowOf([1, 5, 6]), rowOf([1, 5, 7]), rowOf([9, 2, 3]), rowOf([1, 2, 8])]),
    [null, {piece: 1, row: 0}, {piece: 2, row: 1}, null, {piece: 2, row: 0}]));

test('forks are counted in pieces that can be seen, however many tokens these have', () =>
  assert.deepEqual(forkOf([rowOf([[1, 2], 3]), rowOf([[1, 2], 4])], 1), {piece: 1, row: 0}));

test('a row that ends where another goes on has no fork, and the other one has', () => {
  assert.deepEqual(forks([rowOf([1, 2]), rowOf([1])]), [null, null]);
  assert.deepEqual(forks([rowOf([1]), rowOf([1, 2])]), [null, {piece: 1, row: 0}]);
});

test('rows of different texts have no forks', () => assert.equal(forkOf([rowOf([1, 2], 1), rowOf([1, 3], 2)], 1), null));

test('a row is the same as the first row above it with all its tokens, of the same text', () => {
  const same = rows => rows.map((_, index) => sameRowAbove(rows, index));
  const of = (ids, revision = 1) => ({ids, revision});
  assert.deepEqual(same([of([1, 2]), of([1]), of([1, 2]), of([1, 2, 3]), of([1, 2])]), [null, null, 0, null, 0]);
  assert.deepEqual(same([of([1, 2], 1), of([1, 2], 2), of([]), of([])]), [null, null, null, null]);
  assert.equal(samePhrase(1), 'same as row 2');
});

test('every fork agrees with a search over all pairs', () => {
  let seed = 7;
  const dice = () => (seed = seed * 48271 % 2147483647) % 3;
  for (let turn = 0; turn < 200; turn += 1) {
    const rows = Array.from({length: 6}, () => rowOf(Array.from({length: 1 + dice() + dice()}, dice)));
    rows.forEach((row, index) => {
      const own = row.pieces.map(({ids}) => ids[0]).join('');
      let best = 0, from = -1;
      for (let other = 0; other < index; other += 1) {
        const text = rows[other].pieces.map(({ids}) => ids[0]).join('');
        for (let length = own.length; length > best; length -= 1) if (text.startsWith(own.slice(0, length))) [best, from] = [length, other];
      }
      assert.deepEqual(forkOf(rows, index), best > 0 && best < own.length ? {piece: best, row: from} : null);
    });
  }
});

test('the sentence names the row that is left', () =>
  assert.equal(forkSentence({piece: 2, row: 0}), 'Fork: up to here this row is the same as row 1; from here on it goes another way.'));

test('in words, a row parts from another one after the last words that both have', () => {
  const row = texts => ({pieces: texts.map(text => ({text}))}), fork = {piece: 2, row: 0};
  assert.equal(partingPhrase(fork, row([' the', ' sea', ' and']), 'It was '), 'parts from branch 1 after “the sea”');
  assert.equal(partingPhrase(fork, row(['ho', 'use', ' and']), 'The light'), 'parts from branch 1 after “lighthouse”');
  assert.equal(partingPhrase(fork, row([' the keeper of the', ' old lighthouse', ' and']), ''), 'parts from branch 1 after “of the old lighthouse”');
});

test('the words after which a row parts are cut before signs are named, so that no sign is left out', () => {
  const after = (texts, before = 'It was ') => partingPhrase({piece: texts.length, row: 2}, {pieces: [...texts, ' The'].map(text => ({text}))}, before);
  assert.equal(after(['.', '.', '.']), 'parts from branch 3 after “full stop, full stop, full stop”');
  assert.equal(after(['...']), 'parts from branch 3 after “full stop, full stop, full stop”');
  assert.equal(after(['.', '.']), 'parts from branch 3 after “full stop, full stop”');
  assert.equal(after(['…', '…']), 'parts from branch 3 after “ellipsis, ellipsis”');
  assert.equal(after([' no', '!', '!', '!', ' No']), 'parts from branch 3 after “no, exclamation mark, exclamation mark, exclamation mark, No”');
  assert.equal(after(['house', ' of the old keeper and', ' his'], 'The light'), 'parts from branch 3 after “the old keeper and his”', 'the letters are cut off');
  assert.equal(after(['\n']), 'parts from branch 3 after “line break”');
});

test('a bracket joins the rows that part where the text ends, past those that fork later', () => {
  const own = false, fork = true;
  assert.deepEqual(bracketParts([own, fork, own, own, fork]), ['first', 'passes', 'arm', 'last', null]);
  assert.deepEqual(bracketParts([own, own]), ['first', 'last']);
  for (const none of [[], [own], [own, fork, fork]]) assert.deepEqual(bracketParts(none), none.map(() => null));
});

test('the fork at the end of the text is spoken with the number of its ways', () =>
  assert.deepEqual([0, 5].map(waysSentence), ['', 'Fork: the text can go on here in 5 ways.']));
