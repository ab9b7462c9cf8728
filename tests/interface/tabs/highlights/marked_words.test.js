import assert from 'node:assert/strict';
import {test} from 'node:test';

import {markedEntries, markedWords, relativeEntropies, replacedPart} from '../../../../interface/tabs/highlights/marked_words.js';

const entry = (token, from, more = {}) => ({token, ids: [1], word: [from, from + 9], entropy: 1, ...more});

test('a word consists of its tokens', () => {
  const words = markedWords({entries: [entry('On', 0), entry('ce', 0), entry(' up', 4)], marks: []});
  assert.deepEqual(words.map(({text, from, rank, entries}) => [text, from, rank, entries.length]), [['Once', 0, Infinity, 2], [' up', 4, Infinity, 1]]);
});

test('a word shows the entry that is marked, with its rank, else its first one', () => {
  const entries = [entry('On', 0), entry('ce', 0), entry(' up', 4), entry(' a', 7)];
  const [once, up, a] = markedWords({entries, marks: [3, 1]});
  assert.deepEqual([once.entry, once.rank], [entries[1], 1]);
  assert.deepEqual([up.entry, up.rank], [entries[2], Infinity]);
  assert.deepEqual([a.entry, a.rank], [entries[3], 0]);
});

test('words with fewer than four tokens before them have the last ranks, but not after an instruction', () => {
  const entries = ['It', ' was', '🙂', ' so', ' dark', ' there'].map((token, at) => entry(token, 10 * at, token === '🙂' ? {ids: [1, 2]} : {}));
  const view = {entries, marks: [1, 4, 2, 3, 5]}, ranks = words => words.map(({rank}) => rank);
  assert.deepEqual(ranks(markedWords(view)), [Infinity, 3, 4, 1, 0, 2], 'the sign has two tokens: four stand before “so”');
  assert.deepEqual(markedWords(view).map(({early}) => early), [true, true, true, false, false, false]);
  assert.deepEqual(ranks(markedWords(view, true)), [Infinity, 0, 2, 3, 1, 4]);
  assert.ok(markedWords(view, true).every(({early}) => !early));
});

test('the entries of the first highlights are those of the words that are marked', () => {
  const entries = [entry('On', 0), entry('ce', 0), entry(' up', 4), entry(' a', 7)], words = markedWords({entries, marks: [3, 1]});
  assert.deepEqual([0, 1, 2, 9].map(count => [...markedEntries(words, count)]), [[], [entries[3]], [entries[1], entries[3]], [entries[1], entries[3]]]);
});

test('a word says what stands in it before the entry that is shown, and branches replace what follows that', () => {
  const [once, up] = markedWords({entries: [entry(' On', 0), entry('ce', 0), entry(' up', 4)], marks: [1]});
  assert.deepEqual([once.given, up.given], [' On', ' Once'], 'letters that an alternative may continue');
  assert.deepEqual([once.begun, replacedPart(once), up.begun, replacedPart(up), replacedPart()], [' On', 'ce', '', 'up', '']);
});

test('words before a word are counted, signs are not, and an instruction is more than a few', () => {
  const entries = [entry('On', 0), entry('ce', 0), entry(',', 4), entry(' up', 5), entry(' a', 8)], before = words => words.map(word => word.before);
  assert.deepEqual(before(markedWords({entries, marks: []})), [0, 1, 1, 2]);
  assert.deepEqual(before(markedWords({entries, marks: []}, true)), Array(4).fill(Infinity));
});

test('a text without tokens has no words', () => assert.deepEqual(markedWords({entries: [], marks: []}), []));

test('the fork at a word is the entropy before its first token, against the highest', () => {
  const entries = [entry('a', 0, {entropy: 1}), entry('b', 0, {entropy: 9}), entry(' c', 4, {entropy: 4}), entry(' d', 7, {entropy: null})];
  assert.deepEqual(relativeEntropies(markedWords({entries, marks: []})), [0.25, 1, 0]);
});

test('without entropy all shares are 0', () => {
  assert.deepEqual(relativeEntropies(markedWords({entries: [entry('a', 0, {entropy: 0}), entry(' b', 2, {entropy: null})], marks: []})), [0, 0]);
  assert.deepEqual(relativeEntropies([]), []);
});
