import assert from 'node:assert/strict';
import {test} from 'node:test';

import {costRows, csvOf, depthCells, depthHeads, equalNote, formatBytes, methodSentence, precisionSentence, progressSentence, verdictOf, verdictSentence} from '../../../../interface/tabs/lab/cache_sentences.js';

const row = (depth, more = {}) => ({
  depth, rows: depth === 1 ? 1 : 5, equal: true, difference: 1.5e-5, relative_difference: 8e-7, compared: 'logit', bound: 1e-5, other_tokens: 0,
  cached_seconds: 0.5 * depth, cached_cpu_seconds: depth, cached_passes: depth, cached_tokens: 2 + 5 * (depth - 1), cached_joules: 3 * depth,
  uncached_seconds: 2 * depth, uncached_cpu_seconds: 4 * depth, uncached_passes: depth, uncached_tokens: 12 * depth, uncached_joules: 12 * depth,
  cache_bytes: 1_500_000, cached_seconds_least: 0.5 * depth, cached_seconds_most: 0.5 * depth,
  uncached_seconds_least: 2 * depth, uncached_seconds_most: 2 * depth, runs: 1, ...more,
});
// Without what keeps figures and units on one line.
const said = texts => texts.map(text => (Array.isArray(text) ? said(text) : text.replaceAll('\u00a0', ' ')));
const view = (...steps) => ({prompt_tokens: 2, equal: steps.every(({equal}) => equal), steps, branches: ['a', 'b'], runs: [steps.length], precisions: [], energy_source: 'estimated'});

test('the verdict answers the question of the form', () => {
  assert.deepEqual([false, true].map(settled => verdictOf(view(row(1)), settled)), ['So far yes, the cache is right', 'Yes, the cache is right']);
  for (const settled of [false, true]) assert.equal(verdictOf(view(row(1), row(2, {equal: false})), settled), 'No, the predictions differ');
});

test('its sentence says how many predictions were compared and how far they differ', () => {
  assert.equal(verdictSentence(view(row(1), row(2, {relative_difference: 2e-6}))),
    'In 6 predictions the logits with the cache and without it differ by at most 0.0002 %. Up to 0.001 % is rounding, so both are right. The likeliest token is the same in all of them.');
});

test('where another token is the likeliest, it is said that rounding decides', () => {
  const right = 'so both are right. In 3 predictions two tokens are so close that rounding decides which is the likeliest.';
  const sentence = verdictSentence(view(row(1), row(2, {other_tokens: 2}), row(3, {other_tokens: 1})));
  assert.ok(sentence.startsWith('In 11 predictions ') && sentence.endsWith(` ${right}`), sentence);
});

test('in bfloat16 log-probabilities are compared', () => {
  const half = {compared: 'log-probability', bound: 0.1};
  assert.match(verdictSentence(view(row(1, {...half, relative_difference: 0.05}))),
    /the log-probabilities with the cache and without it differ by at most 5 %\. Up to 10 % is rounding, so both are right\./);
});

test('a verdict of No says at which depth the logits differ first', () => {
  const sentence = verdictSentence(view(row(1), row(2, {equal: false, difference: 3}), row(3, {equal: false, difference: 4})));
  assert.match(sentence, /^The logits with the cache and without it differ first at depth 2, by .* Up to 0\.001 % is rounding, so one of the two is wrong\.$/);
  assert.match(verdictSentence(view(row(1, {equal: false, relative_difference: null}))), /by not a number\./);
});

test('the costs are those of the last depth, with their ratios', () => {
  assert.deepEqual(said(costRows(view(row(1), row(2)))), [
    ['Tokens computed', '7', '24', '3.43 ×'], ['Time', '1 s', '4 s', '4 ×'], ['Processor time', '2 s', '8 s', '4 ×'],
    ['Forward passes', '2', '2', '1 ×'], ['Energy', '6 J', '24 J', '4 ×'], ['Memory of the cache', '1.5 MB', 'none', '–'],
  ]);
  assert.equal(costRows(view(row(1, {cached_seconds: 0})))[1][3], '–');
});

test('times of several runs are medians, with the shortest and the longest', () => {
  const last = row(2, {cached_seconds_least: 0.9, cached_seconds_most: 1.25, uncached_seconds_least: 3.8, uncached_seconds_most: 4.1, runs: 3});
  const rows = said(costRows(view(row(1), last)));
  assert.deepEqual(rows[1].slice(1), ['1 s (0.9 to 1.25)', '4 s (3.8 to 4.1)', '4 ×']);
  assert.deepEqual(rows.map(([name]) => name), [
    'Tokens computed in each run', 'Time, median of 3 runs (shortest to longest)', 'Processor time, first of 3 runs', 'Forward passes in each run', 'Energy, first of 3 runs', 'Memory of the cache',
  ]);
});

test('a short time is in milliseconds', () => {
  const short = row(2, {cached_seconds: 0.00123, cached_seconds_least: 0.00111, cached_seconds_most: 0.0025, runs: 3});
  assert.equal(said(costRows(view(row(1), short)))[1][1], '1.23 ms (1.11 to 2.5)');
  assert.deepEqual(costRows(view(row(1), short))[1][1].split(' '), ['1.23\u00a0ms', '(1.11', 'to\u00a02.5)']);
});

test('the progress says which depth of which run was computed', () => {
  const said = (runs, all) => progressSentence({...view(row(1)), runs}, 10, all);
  assert.equal(said([3], 1), 'Depth 3 of 10');
  assert.equal(said([10, 4], 3), 'Depth 4 of 10 in run 2 of 3');
  assert.equal(said([10, 10, 10], 3), 'Comparing float32 and bfloat16 …');
});

test('the precisions part at the first depth where another token is the likeliest', () => {
  const step = (depth, other_tokens = 0) => ({depth, relative_difference: 0.0123, other_tokens});
  const sentence = (...precisions) => precisionSentence({...view(row(1)), precisions});
  assert.equal(sentence(), '');
  assert.equal(sentence(step(1), step(2)), 'In float32 and in bfloat16 every likeliest token is the same; their logits differ by up to 1.23 % of the largest logit.');
  assert.equal(sentence(step(1), step(2, 1), step(3, 2)),
    'In float32 and in bfloat16 the likeliest tokens part first at depth 2, in 1 of 2 branches, and at 2 depths in all; their logits differ by up to 1.23 % of the largest logit.');
});

test('the heads of the table of every depth differ, and have the unit of the difference and the limit of what is equal', () => {
  const half = row(1, {compared: 'log-probability', bound: 0.1});
  for (const [one, equal, difference] of [[row(1), 'Equal within 0.001 %', 'Difference in % of the largest logit'], [half, 'Equal within 10 %', 'Difference in % of the log-probability farthest from 0']]) {
    const heads = depthHeads(view(one));
    assert.equal(new Set(heads).size, heads.length);
    assert.deepEqual(heads.slice(1, 3), [equal, difference]);
  }
  assert.match(equalNote(view(half)), /the log-probability farthest from 0.*at most 10 %, which counts as rounding of numbers of 16 bits: with the default model two right computations differ by up to 7 % .* It does not say that the likeliest token is the same/);
  assert.match(equalNote(view(row(1))), /the largest logit of the same prediction, whatever its sign\./);
});

test('it is said which code computes each side, and where the energy is from', () => {
  assert.match(methodSentence(view(row(1))), /by the same code as in the Write tab\. Without it, the model’s original code, from the library transformers, reads the prompt and a whole branch again/);
  assert.match(methodSentence(view(row(1))), /energy is estimated\.$/);
});

test('bytes have units', () => {
  assert.deepEqual(said([formatBytes(92_160), formatBytes(11_800_000)]), ['92.2 KB', '11.8 MB']);
});

test('a depth has a cell for each column, and the CSV a line', () => {
  assert.deepEqual(depthCells(row(2)), ['2', 'yes', '0.00008', '0 of 5', '1.000 s', '4.000 s', '4', '7', '24']);
  assert.equal(depthCells(row(2, {relative_difference: null}))[2], 'not a number');
  assert.equal(depthHeads(view(row(1))).length, depthCells(row(1)).length);
  const [head, first, second, end] = csvOf(view(row(1), row(2, {difference: null}))).split('\n');
  assert.equal(head, Object.keys(row(1)).join(','));
  assert.equal(first, Object.values(row(1)).join(','));
  assert.equal(second.split(',')[3], '');
  assert.equal(end, '');
});
