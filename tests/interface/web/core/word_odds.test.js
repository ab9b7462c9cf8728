import assert from 'node:assert/strict';
import {test} from 'node:test';

import {steeringSentence, wordSentence} from '../../../../interface/web/core/word_odds.js';

const plain = (odds, reached = true) => wordSentence({word: 'sea', within: 10, ...odds}, reached).replaceAll('\u00a0', ' ');

test('while the search goes on, it is not said that there is no way', () => {
  const odds = {word: 'sea', within: 10, low: 0, high: 0.07};
  assert.equal(wordSentence(odds, false, {searching: true}), '“sea”: looking for ways within 10 tokens…');
  assert.equal(wordSentence({...odds, low: 0.05}, true, {searching: true}), wordSentence({...odds, low: 0.05}, true));
});

test('the odds of a word are two bounds, one figure where they agree, and one where no path is known', () => {
  assert.equal(plain({low: 0.031, high: 0.04}), '“sea”: 3.1 % to 4 % within 10 tokens, as a whole word');
  assert.equal(plain({low: 0.0312, high: 0.0314}), '“sea”: 3.1 % within 10 tokens, as a whole word');
  assert.equal(plain({low: 0, high: 0.07}, false), '“sea”: no way found within 10 tokens, 7 % at most');
  assert.equal(plain({low: 0, high: 0.87}, false), '“sea”: no way found within 10 tokens');
  assert.ok(plain({word: 'sea bird', low: 0, high: 0.87}, false).endsWith('within 10 tokens; one word alone is found more easily'));
  assert.equal(plain({low: 0.2, high: 0.4, within: 1}), '“sea”: 20 % to 40 % within 1 token, as a whole word');
  for (const high of [0.51, 0.98]) assert.equal(plain({low: 0.04, high}), '“sea”: at least 4 % within 10 tokens, as a whole word');
  assert.equal(plain({low: 0.04, high: 0.5}), '“sea”: 4 % to 50 % within 10 tokens, as a whole word');
  assert.equal(plain({low: 0.98, high: 0.9802}), '“sea”: 98 % within 10 tokens, as a whole word');
});

test('odds below what figures show are said in words, never as “at least <”', () => {
  assert.equal(plain({low: 1e-7, high: 0.9}), '“sea”: the ways found have less than 0.0001 % within 10 tokens, as a whole word');
  assert.equal(plain({low: 1e-7, high: 0.03}), '“sea”: at most 3 % within 10 tokens, as a whole word');
  assert.equal(plain({low: 1e-7, high: 2e-7}), '“sea”: less than 0.0001 % within 10 tokens, as a whole word');
  assert.equal(plain({low: 1e-7, high: 0.0004}), '“sea”: at most 0.04 % within 10 tokens, as a whole word', 'small bounds may be far apart');
  assert.equal(plain({low: 0.00001, high: 0.0004}), '“sea”: 0.001 % to 0.04 % within 10 tokens, as a whole word');
  assert.equal(plain({low: 0, high: 2e-7}, false), '“sea”: no way found within 10 tokens, less than 0.0001 % in any case');
});

test('where no way is found, banned tokens may be the reason', () => {
  const odds = {word: 'sea', within: 10, low: 0, high: 0.87};
  assert.equal(wordSentence(odds, false, {banned: 1}).replaceAll('\u00a0', ' '), '“sea”: no way found within 10 tokens; 1 banned token may be the reason');
  assert.ok(!wordSentence({...odds, low: 0.2}, true, {banned: 1}).includes('banned'));
});

test('rows that go towards no word have no such sentence', () => {
  assert.equal(steeringSentence({rows: []}), '');
  assert.equal(steeringSentence({word: {word: 'sea', within: 10, low: 0.031, high: 0.04}, rows: [{branch: {word: [1, 2]}}]}).slice(0, 6), '“sea”:');
});
