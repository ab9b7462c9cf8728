import assert from 'node:assert/strict';
import {test} from 'node:test';

import {beginsWith, otherWords} from '../../../../interface/web/core/other_beginnings.js';
import {shapeRows} from '../../../../interface/web/core/branch_rows.js';
import {assertNear, likelyView, likeliest, oddsOf, pathOf, viewOf} from '../../../support/scripts/views.js';

const near = (found, wanted, what) => assertNear(assert, found, wanted, what);

test('a path begins with its own beginnings alone', () => {
  assert.deepEqual([[], [1], [1, 2], [1, 2, 3], [2]].map(ids => beginsWith([1, 2], ids)), [true, true, true, false, false]);
});

test('the others are the likeliest beginnings that no row has', () => {
  const view = likelyView(2, 2), drawn = shapeRows(view);
  assert.deepEqual(drawn.others.map(({ids}) => ids[0]), likeliest([], 10).slice(2));
  drawn.others.forEach(other => near(other.odds.p, oddsOf(other.ids), 'of each'));
  assert.deepEqual(shapeRows({...view, rest: undefined}).others, []);
  const cold = shapeRows(view, {temperature: 0.5});
  cold.others.forEach(other => near(other.odds.p, oddsOf(other.ids, 0.5), 'of each, colder'));
});

test('the others are ordered by their odds, and by the model’s own where these are equal', () => {
  const view = likelyView(2, 2);
  view.rest.reverse();
  assert.deepEqual(shapeRows(view).others.map(({ids}) => ids[0]), likeliest([], 10).slice(2));
  // One token against two: their order depends on the temperature.
  const [first] = view.rest, two = {...first, ids: [77, 78], logprobs: [-1, -1.5], at: [0, 0], text: 'two'}, one = {...first, ids: [79], logprobs: [-2.4], at: [0], text: 'one'};
  view.rest = [two, one];
  assert.deepEqual([1, 2].map(temperature => shapeRows(view, {temperature}).others.map(({text}) => text)), [['one', 'two'], ['one', 'two']]);
  assert.deepEqual(shapeRows(view, {temperature: 0.2}).others.map(({text}) => text), ['two', 'one']);
});

test('what temperature 0 or top-p leaves out is not among the others', () => {
  const view = likelyView(2, 2), texts = settings => shapeRows(view, settings).others.map(({text}) => text), all = texts({});
  assert.ok(all.length > 2);
  assert.deepEqual(texts({temperature: 0}), []);
  const [first, second] = view.branches.map(({logprobs}) => Math.exp(logprobs[0])), [third] = view.rest.map(({logprobs}) => Math.exp(logprobs[0]));
  assert.deepEqual(texts({top_p: first + second + third / 2}), all.slice(0, 1));
  const [likely, unlikely] = shapeRows(view, {top_p: first / 2}).rows;
  assert.deepEqual([likely, unlikely].map(({cut, excludes}) => [cut, excludes]), [[false, `top-p ${first / 2}`], [true, `top-p ${first / 2}`]]);
});

test('others whose ids read alike are different', () => {
  const view = likelyView(1, 1), [first] = view.rest;
  view.rest = [{...first, ids: [77]}, {...first, ids: [7, 7], logprobs: [-3, -3], at: [0, 0]}];
  assert.deepEqual(shapeRows(view).others.map(({ids}) => ids), [[77], [7, 7]]);
});

test('what counts in a row or in another entry is not among the others a second time', () => {
  const view = likelyView(2, 2), [next, other] = view.rest, row = view.branches[0].ids[0];
  const longer = (first, last, text) => ({...next, ids: [first, last], logprobs: [next.logprobs[0], -1], at: [0, undefined], text});
  view.rest = [longer(row, 90, 'of a row'), longer(next.ids[0], 91, 'of an entry'), next, longer(other.ids[0], 92, 'kept'), longer(other.ids[0], 93, 'the same')];
  const {others, rest} = shapeRows(view, {temperature: 0.7});
  assert.deepEqual(others.map(({text}) => text), [next.text, 'kept']);
  assert.ok(others.reduce((sum, {odds}) => sum + odds.p, 0) <= rest.p + 1e-9);
});

test('a beginning is among the others once, and never if a row has it', () => {
  const view = likelyView(2, 2), [first] = view.rest;
  view.rest.push({...first, text: 'twice'}, {...first, ids: view.branches[0].ids.slice(0, 1), logprobs: [0]});
  view.rest.push({...first, ids: [...first.ids, 1], logprobs: [first.logprobs[0], -1], at: [0, 0], text: 'longer'});
  const drawn = shapeRows(view);
  assert.deepEqual(drawn.others.filter(({ids}) => ids[0] === first.ids[0]).map(({text}) => text), [first.text, 'longer']);
  assert.ok(!drawn.others.some(({ids}) => ids.length === 1 && ids[0] === view.branches[0].ids[0]));
  const longer = drawn.others.find(({text}) => text === 'longer');
  near(longer.odds.p, Math.exp(longer.logprobs[0]) * Math.exp(-1), 'of two tokens');
  assert.equal(longer.raw, first.logprobs[0] - 1);
});

test('another beginning without a node has the odds after the first node', () => {
  const view = likelyView(1, 2);
  delete view.rest[0].at;
  const [other] = shapeRows(view, {temperature: 0.5}).others;
  near(other.odds.p, oddsOf(other.ids, 0.5), 'after the first node');
});

test('a row that is not shown is among the others by its first piece', () => {
  const view = likelyView(2, 3), [, branch] = view.branches;
  branch.pieces = [{text: '🙂', tokens: 2, ends: 1}, {text: '!', tokens: 3, ends: 1}];
  const other = shapeRows(view, {k: 1}).others.find(({ids}) => ids[0] === branch.ids[0]);
  assert.deepEqual([other.ids, other.text, other.end, other.at], [branch.ids.slice(0, 2), '🙂', false, branch.at.slice(0, 2)]);
  near(other.odds.p, oddsOf(branch.ids.slice(0, 2)), 'of the piece');
  branch.pieces = [];
  const bare = shapeRows(view, {k: 1}).others.find(({ids}) => ids[0] === branch.ids[0]);
  assert.deepEqual([bare.ids.length, bare.text, bare.end], [1, null, false]);
});

test('a row that is not shown and ends at once is an ending among the others', () => {
  const firsts = likeliest([], 2), view = viewOf([pathOf([firsts[0]], 2), [firsts[1]]], {k: 2, ended: [1]});
  assert.equal(shapeRows(view, {k: 1}).others.find(({ids}) => ids[0] === firsts[1]).end, true);
  const later = viewOf([pathOf([firsts[0]], 2), pathOf([firsts[1]], 2)], {k: 2, ended: [1]});
  assert.equal(shapeRows(later, {k: 1}).others.find(({ids}) => ids[0] === firsts[1]).end, false);
});

test('the share of another word is a bound where its error is more than a tenth of it', () => {
  const rest = (share, error) => ({ids: [1], logprobs: [-1], text: ' crim', end: false, next_word: {text: ' crim', share, error, tokens: 1}});
  const odds = (share, error) => otherWords({branches: [], rest: [rest(share, error)]}, [], 0.5)[0].odds;
  assert.deepEqual(odds(0.05, 0.001), {p: 0.05});
  assert.deepEqual(odds(0.0006, 0.00005), {p: 0.0006});
  assert.equal(odds(0.0006, 0.0005).bound, true, 'known to 0.1 points, and still nearly nothing of it is known');
  assert.equal(odds(0.05, 0.01).bound, true);
});

test('a word without a space before it says so where a row begins with the same word after a space', () => {
  const rest = text => ({ids: [1], logprobs: [-1], text, end: false, next_word: {text, share: 0.1, error: 0, tokens: 1}});
  const rows = [{ids: [2], pieces: [], extra: true, next_word: {text: ' She'}}];
  const joined = otherWords({branches: [], rest: [rest('She'), rest('he')]}, rows, 0.5).map(other => other.joined ?? false);
  assert.deepEqual(joined, [true, false]);
});

test('other words are in the order of their figures, bounds among them', () => {
  const rest = (text, share, error) => ({ids: [text.length], logprobs: [-1], text, end: false, next_word: {text, share, error, tokens: 1}});
  const words = [rest(' at', 0.0138, 0.0122), rest(' a', 0.0016, 0.0005), rest('…', 0.007, 0), rest(' abandoned', 0.008, 0.0475), rest(' put', 0.041, 0.0005)];
  const others = otherWords({branches: [], rest: words}, [], 0.5);
  assert.deepEqual(others.map(({text}) => text), [' abandoned', ' put', ' at', '…', ' a']);
  assert.deepEqual(others.map(({odds}) => [odds.p.toFixed(4), Boolean(odds.bound)]), [
    ['0.0555', true], ['0.0410', false], ['0.0260', true], ['0.0070', false], ['0.0021', true],
  ]);
});
