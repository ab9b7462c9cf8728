import assert from 'node:assert/strict';
import {test} from 'node:test';

import {KnownViews, isComplete, idsKey, showsMore} from '../../../../interface/web/core/known_views.js';

const SETTINGS = {k: 2, depth: 3, mode: 'likely', until: 'tokens'};

const branch = (length, ended = false) => ({ids: Array(length).fill(1), logprobs: Array(length).fill(-1), pieces: [], ended, healed: false});

// A view that was asked for with some settings; its branches are as long as they say.
const viewOf = (asked = {}, branches = [branch(3), branch(3)]) => ({asked: {...SETTINGS, ...asked}, branches});

const settings = changes => ({...SETTINGS, ...changes});

test('tokens are a key by their ids', () => assert.deepEqual([idsKey([5, 12]), idsKey([512]), idsKey([])], ['5 12', '512', '']));

test('at first nothing is known', () => {
  const known = new KnownViews();
  assert.deepEqual([known.revision, known.view, known.complete, known.tokens], [-1, null, false, 0]);
  assert.equal(known.at('text', SETTINGS), null);
  assert.equal(known.after([1], SETTINGS), null);
  assert.deepEqual(known.ready(SETTINGS), []);
});

test('a complete view is found again for the same text', () => {
  const known = new KnownViews(), view = viewOf();
  known.take(1, 'one', view, true);
  known.take(2, 'two', viewOf(), true);
  assert.equal(known.at('one', SETTINGS), view);
  assert.equal(known.at('one ', SETTINGS), null);
});

test('of one text a view with odds of words and one with odds of tokens are kept', () => {
  const known = new KnownViews(), views = ['words', 'tokens'].map(odds => viewOf({odds}));
  for (const view of views) known.take(1, 'one', view, true);
  assert.deepEqual(['words', 'tokens'].map(odds => known.at('one', settings({odds}))), views);
});

test('a growing view is not kept for later', () => {
  const known = new KnownViews();
  known.take(1, 'one', viewOf(), false);
  assert.equal(known.at('one', SETTINGS), null);
});

test('a kept view is found only if it covers the settings', () => {
  const known = new KnownViews();
  known.take(1, 'one', viewOf(), true);
  assert.ok(known.at('one', settings({k: 1})));
  assert.equal(known.at('one', settings({k: 3})), null);
  assert.equal(known.at('one', settings({depth: 4})), null);
});

test('the views of the last forty texts are kept', () => {
  const known = new KnownViews();
  for (let index = 0; index < 40; index += 1) known.take(index, `text ${index}`, viewOf(), true);
  assert.ok(known.at('text 0', SETTINGS));
  known.take(40, 'text 0', viewOf(), true);     // it is shown last now
  known.take(41, 'text 40', viewOf(), true);
  assert.ok(known.at('text 0', SETTINGS));
  assert.equal(known.at('text 1', SETTINGS), null);
  assert.ok(known.at('text 2', SETTINGS) && known.at('text 40', SETTINGS));
});

test('prefetched views are kept while their view grows, and dropped when it is complete or another', () => {
  const known = new KnownViews();
  known.take(1, 'one', viewOf(), false);
  known.add('1', viewOf());
  known.tokens = 7;
  const grown = viewOf();
  known.take(1, 'one', grown, false);
  assert.deepEqual([known.ready(SETTINGS), known.tokens, known.view === grown, known.complete], [['1'], 7, true, false]);
  known.take(1, 'one', viewOf(), true);
  assert.deepEqual([known.ready(SETTINGS), known.tokens, known.complete], [[], 0, true]);
  known.add('1', viewOf());
  known.take(2, 'two', viewOf(), false);
  assert.deepEqual([known.ready(SETTINGS), known.revision, known.complete], [[], 2, false]);
});

test('a prefetched view is found by its tokens, even if its rows are shorter than asked for', () => {
  const known = new KnownViews(), short = viewOf({depth: 1}, [branch(1), branch(1)]);
  known.take(1, 'one', viewOf(), true);
  known.add('1', viewOf());
  known.add('1 2', short);
  known.add('3', viewOf({k: 1}, [branch(3)]));
  assert.equal(known.after([1, 2], SETTINGS), short);
  assert.equal(known.after([3], SETTINGS), null);
  assert.equal(known.after([4], SETTINGS), null);
  assert.deepEqual(known.ready(SETTINGS), ['1', '1 2']);
  assert.deepEqual(known.ready(settings({k: 1})), ['1', '1 2', '3']);
  assert.deepEqual(known.ready(settings({mode: 'forks'})), []);
});

test('a prefetched view deeper than asked for is found too', () => {
  const known = new KnownViews();
  known.take(1, 'one', viewOf(), true);
  known.add('1', viewOf());
  assert.ok(known.after([1], settings({depth: 2})));
});

test('after the prompt changes, no view is known', () => {
  const known = new KnownViews();
  known.take(1, 'one', viewOf(), true);
  known.add('1', viewOf());
  known.forget();
  assert.deepEqual([known.revision, known.view, known.complete, known.ready(SETTINGS), known.at('one', SETTINGS)], [-1, null, false, [], null]);
});

test('a view is complete if it covers the settings', () => {
  assert.ok(isComplete(viewOf(), SETTINGS));
  assert.ok(isComplete(viewOf(), settings({depth: 2})));
  assert.ok(!isComplete(viewOf(), settings({k: 3})));
  assert.ok(!isComplete(viewOf(), settings({depth: 4})));
});

test('a view up to an end is complete if it was computed as deep as asked for', () => {
  const view = viewOf({until: 'word', depth: 40});
  assert.ok(isComplete(view, settings({until: 'word', depth: 40})));
  assert.ok(isComplete(view, settings({until: 'word', depth: 39})));
  assert.ok(!isComplete(view, settings({until: 'word', depth: 41})));
});

test('a view of a number of tokens that reaches the end is complete at any depth', () => {
  const view = viewOf();
  view.branches.forEach(one => { one.pieces = [{text: 'a', tokens: 3, ends: 1}]; });
  assert.ok(isComplete(view, settings({until: 'word', depth: 40})));
});

test('a growing view shows more if it has more rows, deeper rows or another mode', () => {
  const had = viewOf({}, [branch(2), branch(3)]);
  assert.ok(!showsMore(viewOf({}, [branch(2), branch(4)]), had));
  assert.ok(!showsMore(viewOf({}, [branch(1), branch(3)]), had));
  assert.ok(showsMore(viewOf({}, [branch(3), branch(3)]), had));
  assert.ok(!showsMore(viewOf({}, [branch(2)]), had));
  assert.ok(showsMore(viewOf({}, [branch(1), branch(1), branch(1)]), had));
  assert.ok(showsMore(viewOf({mode: 'forks'}, [branch(1)]), had));
});

test('rows that would repeat themselves do not count for the depth of a view', () => {
  const had = viewOf({}, [branch(2), branch(2)]), repeats = {...branch(1), repeats: true};
  assert.ok(showsMore(viewOf({}, [branch(3), repeats]), had));
});

test('ended rows do not count for the depth of a view', () => {
  const had = viewOf({}, [branch(2), branch(1, true)]);
  assert.ok(showsMore(viewOf({}, [branch(3), branch(1, true)]), had));
  assert.ok(showsMore(viewOf({}, [branch(2, true), branch(1, true)]), had));
});

test('a view with a changed row is not found again for its text', () => {
  const known = new KnownViews();
  known.take(1, 'one', viewOf({}, [branch(3), {...branch(3), edited: [0, 1]}]), true);
  known.take(2, 'two', viewOf(), true);
  assert.equal(known.at('one', SETTINGS), null);
});
