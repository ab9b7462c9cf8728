import assert from 'node:assert/strict';
import {test} from 'node:test';

import {wordSentence} from '../../../../interface/web/core/word_odds.js';

const plain = (odds, reached = true) => wordSentence({word: 'sea', within: 10, ...odds}, reached).replaceAll('\u00a0', ' ');

test('while the search goes on, it is not said that there is no way', () => {
  const odds = {word: 'sea', within: 10, low: 0, high: 0.07};
  assert.equal(wordSentence(odds, false, true), '“sea”: looking for ways within 10 tokens…');
  assert.equal(wordSentence({...odds, low: 0.05}, true, true), wordSentence({...odds, low: 0.05}, true));
});

test('the odds of a word are two bounds, one figure where they agree, and one where no path is known', () => {
  assert.equal(plain({low: 0.031, high: 0.04}), '“sea”: 3.1 % to 4 % within 10 tokens');
  assert.equal(plain({low: 0.0312, high: 0.0314}), '“sea”: 3.1 % within 10 tokens');
  assert.equal(plain({low: 0, high: 0.07}, false), '“sea”: no way found within 10 tokens, 7 % at most');
  assert.equal(plain({low: 0, high: 0.87}, false), '“sea”: no way found within 10 tokens');
  assert.ok(plain({word: 'sea bird', low: 0, high: 0.87}, false).endsWith('within 10 tokens; one word alone is found more easily'));
  assert.equal(plain({low: 0.2, high: 0.4, within: 1}), '“sea”: 20 % to 40 % within 1 token');
  for (const high of [0.51, 0.98]) assert.equal(plain({low: 0.04, high}), '“sea”: at least 4 % within 10 tokens');
  assert.equal(plain({low: 0.04, high: 0.5}), '“sea”: 4 % to 50 % within 10 tokens');
  assert.equal(plain({low: 0.98, high: 0.9802}), '“sea”: 98 % within 10 tokens');
});
