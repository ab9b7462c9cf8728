import assert from 'node:assert/strict';
import {test} from 'node:test';

import {INITIAL_STATE, noteOf, reduce} from '../../../../interface/web/core/branch_view_state.js';
import {awaitedIndex, isWhole} from '../../../../interface/web/core/awaited_row.js';
import {likeliest, likelyView, viewOf} from '../../../support/scripts/views.js';

const SETTINGS = {k: 5, depth: 5, mode: 'likely', until: 'tokens'};
const show = (revision, view, state) => ({type: 'show', detail: {revision, view, state}});
const run = (events, state = INITIAL_STATE) => events.reduce(reduce, state);
const FIRSTS = likeliest([], 5);   // in the order of their shares
const growing = (depth, firsts = FIRSTS) => viewOf(firsts.map(first => [first, ...Array(depth - 1).fill(7)]), SETTINGS);
const waiting = (branch = 1) => run([{type: 'settings', settings: SETTINGS}, show(3, growing(2), 'thinking'), {type: 'await', branch}]);

test('a row that grows is awaited: it is named by its revision and its tokens, shown and announced', () => {
  const state = waiting();
  assert.deepEqual(state.awaited, {revision: 3, branch: 1, ids: [FIRSTS[1], 7]});
  assert.equal(awaitedIndex(state), 1);
  assert.match(noteOf(state).sentence, /^Branch 2 is inserted as soon as it is complete/);
  assert.equal(state.announcement, noteOf(state).sentence);
  assert.match(noteOf(state).progress, /2 of 5/);
});

test('the row is followed by its tokens, wherever it stands', () => {
  const other = run([show(3, growing(3, FIRSTS.slice(1)), 'thinking')], waiting());
  assert.equal(awaitedIndex(other), 0);
  assert.deepEqual(other.drawn.rows[0].ids, [FIRSTS[1], 7, 7]);
  assert.equal(awaitedIndex(run([show(3, growing(5, FIRSTS.slice(2)), 'settled')], waiting())), -1);
});

test('nothing is awaited that is whole, absent, or of an older text', () => {
  const thinking = run([{type: 'settings', settings: SETTINGS}, show(3, growing(2), 'thinking')]);
  assert.equal(run([{type: 'await', branch: 9}], thinking).awaited, null);
  assert.equal(run([{type: 'expect', revision: 4}, {type: 'await', branch: 1}], thinking).awaited, null);
  assert.equal(run([show(3, growing(5), 'settled'), {type: 'await', branch: 1}], thinking).awaited, null);
  assert.equal(run([show(3, growing(5), 'thinking'), {type: 'await', branch: 1}], thinking).awaited, null);
});

test('a row that is not there yet is awaited, and named by its tokens once it is', () => {
  const thinking = run([{type: 'settings', settings: SETTINGS}, {type: 'expect', revision: 3}]), early = run([{type: 'await', branch: 1}], thinking);
  assert.deepEqual([early.awaited, awaitedIndex(early)], [{revision: 3, branch: 1, ids: null}, -1]);
  assert.match(early.announcement, /^Branch 2 is inserted as soon as it is complete/);
  const few = run([show(3, growing(1, FIRSTS.slice(0, 1)), 'thinking')], early), all = run([show(3, growing(1), 'thinking')], few);
  assert.deepEqual([few.awaited.ids, awaitedIndex(few)], [null, -1]);
  assert.deepEqual([all.awaited.ids, awaitedIndex(all)], [[FIRSTS[1]], 1]);
  assert.equal(awaitedIndex(run([show(3, growing(2, FIRSTS.slice(1)), 'thinking')], all)), 0);
  assert.equal(run([{type: 'expect', revision: 4}], early).awaited, null);
  const vain = [
    [{type: 'await', branch: 5}], [{type: 'veil', veiled: true}, {type: 'await', branch: 1}], [{type: 'status', state: 'paused'}, {type: 'await', branch: 1}],
    [show(3, growing(1, FIRSTS.slice(0, 2)), 'thinking'), {type: 'expect', revision: 4}, {type: 'await', branch: 3}],
  ];
  for (const events of vain) assert.equal(run(events, thinking).awaited, null, JSON.stringify(events));
});

test('another branch takes the place of the awaited one, and a complete one ends the wait', () => {
  assert.equal(run([{type: 'await', branch: 2}], waiting()).awaited.branch, 2);
  const paths = FIRSTS.map(first => [first, 7]);
  const state = run([show(3, viewOf(paths, {...SETTINGS, ended: [1]}), 'thinking')], waiting(0));
  assert.equal(state.awaited.branch, 0);
  assert.equal(run([{type: 'await', branch: 1}], state).awaited, null);
});

const ENDS = {
  'another text': {type: 'expect', revision: 4},
  'rows of another text': show(4, growing(1), 'thinking'),
  'other settings': {type: 'settings', settings: {...SETTINGS, k: 4}},
  'Stop': {type: 'status', state: 'settled'},
  'Pause': {type: 'status', state: 'paused'},
  'Esc': {type: 'giveUp'},
  'an error': show(3, null, 'error'),
  'no text': show(3, null, 'empty'),
};
for (const [name, event] of Object.entries(ENDS)) {
  test(`the wait is given up by ${name}`, () => {
    const state = run([event], waiting());
    assert.equal(state.awaited, null);
    assert.doesNotMatch(state.announcement, /as soon as/);
  });
}

const KEEPS = {
  'a longer row': show(3, growing(4), 'thinking'),
  'the whole view': show(3, growing(5), 'settled'),
  'the same text': {type: 'expect', revision: 3},
  'a pointer': {type: 'point', target: {branch: 0, piece: 0}},
  'prefetched views': {type: 'ahead', ready: 1, keys: ['1']},
  'an overtaken view': show(2, growing(5), 'settled'),
};
for (const [name, event] of Object.entries(KEEPS)) {
  test(`the wait goes on with ${name}`, () => assert.notEqual(run([event], waiting()).awaited, null));
}

test('while a view grows, a row is whole that has ended or is as long as it was asked for', () => {
  const state = run([show(3, growing(4), 'thinking')], waiting()), [row] = state.drawn.rows;
  const of = (more, wanted = {}) => isWhole({...state, drawn: {...state.drawn, wanted: {...state.drawn.wanted, ...wanted}}}, {...row, ...more});
  assert.equal(of({}), false);
  assert.equal(of({ended: true}), true);
  assert.equal(of({}, {depth: 4}), true);
  assert.equal(of({healed: true}, {depth: 4}), true);
  assert.equal(of({healed: true, pieces: row.pieces.slice(1)}, {depth: 4}), false, 'the first token inserts nothing');
  assert.equal(of({open: true}, {until: 'sentence'}), false);
  assert.equal(of({open: false}, {until: 'sentence'}), true);
  assert.equal(of({open: true}, {depth: 4, oneWord: true}), false);
  assert.equal(of({open: false}, {oneWord: true}), true);
  assert.equal(of({}, {depth: 4, mode: 'best_first'}), false);
  assert.equal(isWhole({...state, status: {state: 'settled'}}, row), true);
});

test('a stored or settled view has whole rows only', () => {
  const state = run([show(1, likelyView())]);
  assert.ok(state.drawn.rows.every(row => isWhole(state, row)));
});
