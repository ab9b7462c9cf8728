import assert from 'node:assert/strict';
import {test} from 'node:test';

import {offerSentence, painted, ratioLabel, ratiosThatFit, readingOf, saysTooLong, shortSentence, shortSourceOf} from '../../../../interface/tabs/rewrite/shortening_choices.js';

test('the ratios that fit are offered, the largest first', () => {
  assert.deepEqual(ratiosThatFit({tokens: 9000, most: 6000}), [0.5, 0.25]);
  assert.deepEqual(ratiosThatFit({tokens: 12000, most: 6000}), [0.5, 0.25]);
  assert.deepEqual(ratiosThatFit({tokens: 12001, most: 6000}), [0.25]);
  assert.deepEqual(ratiosThatFit({tokens: 24001, most: 6000}), []);
});

test('both ratios are offered where the tokens are not known', () => {
  assert.deepEqual(ratiosThatFit({tokens: null, most: null}), [0.5, 0.25]);
  assert.deepEqual(ratiosThatFit({}), [0.5, 0.25]);
});

test('of a shortened source that is still too long only smaller ratios are offered, counted from the whole one', () => {
  assert.deepEqual(ratiosThatFit({tokens: 7000, most: 6000}, 0.5), [0.25]);
  assert.deepEqual(ratiosThatFit({tokens: 12001, most: 6000}, 0.5), []);
  assert.deepEqual(ratiosThatFit({}, 0.25), []);
});

test('the sentence says why, and what can be done', () => {
  const said = offerSentence({tokens: 9000, most: 6144}, [0.5]);
  assert.match(said, /^The source is too long for this model: instruction and source have 9,000 tokens, and 6,144 fit\. /);
  assert.match(said, /names and numbers stay longest; your source is not changed\.$/);
  assert.match(offerSentence({tokens: 90000, most: 6144}, []), /Even a quarter of it would not fit: shorten it yourself\.$/);
  assert.match(offerSentence({}, [0.5]), /^The source is too long for this model\. The model can/);
});

test('the sentence of a shortened source has both counts', () => {
  assert.equal(
    shortSentence({text: '', parts: [], before: 8000, after: 1999, ratio: 0.25}),
    'The model reads 1,999 of the 8,000 tokens of your source. What is struck through is left out.',
  );
  assert.deepEqual([0.5, 0.25].map(ratioLabel), ['Shorten to 1/2', 'Shorten to 1/4']);
});

test('how far a source is read comes from an answer that says so', () => {
  assert.deepEqual(readingOf({reading: [2048, 8192]}), {share: 0.25, sentence: '2,048 of 8,192 tokens read'});
  assert.equal(readingOf({reading: [9, 8]})?.share, 1);
  for (const none of [null, undefined, {}, {reading: 3}, {reading: []}, {reading: [0, 0]}, {reading: ['1', 2]}]) assert.equal(readingOf(none), null);
});

const answer = {text: 'a c', parts: [['a', true], [' b', false], [' c', true]], tokens_before: 3, tokens_after: 2};

test('an answer of the server becomes a shortened source, and is read again from storage', () => {
  const short = shortSourceOf({...answer, ratio: 0.5}, 'a b c');
  assert.deepEqual(short, {text: 'a c', parts: answer.parts, before: 3, after: 2, ratio: 0.5});
  assert.deepEqual(shortSourceOf(JSON.parse(JSON.stringify(short)), 'a b c'), short);
});

test('what is not of this source is refused', () => {
  const whole = {...answer, ratio: 0.5};
  assert.equal(shortSourceOf(whole, 'a b d'), null);
  for (const wrong of [null, 7, 'x', [], {}, {sentence: 'No.'}]) assert.equal(shortSourceOf(wrong, 'a b c'), null);
  for (const change of [{text: 3}, {parts: 'a b c'}, {parts: [['a b c']]}, {parts: [['a b c', 1]]}, {parts: [3]}, {ratio: 2}, {tokens_after: null}, {tokens_before: '3'}]) {
    assert.equal(shortSourceOf({...whole, ...change}, 'a b c'), null, JSON.stringify(change));
  }
});

test('only an error with its reason says that the source is too long', () => {
  assert.ok(saysTooLong({state: 'error', reason: 'source_too_long'}));
  assert.ok(!saysTooLong({state: 'error'}));
  assert.ok(!saysTooLong({state: 'settled', reason: 'source_too_long'}));
});

test('white space at the edges of a removed part is not struck through', () => {
  assert.deepEqual(painted([['a', true], [' b c\n\n', false], ['d ', true], [' ', false], ['e', false]]), [
    ['a', false], [' ', false], ['b c', true], ['\n\n', false], ['d ', false], [' ', false], ['e', true],
  ]);
  assert.deepEqual(painted([]), []);
});
