import assert from 'node:assert/strict';
import {test} from 'node:test';
import {SeenViews} from '../../../../interface/web/core/seen_views.js';
import {drawnOf} from '../../../support/scripts/trees.js';
import {likelyView, oddsOf, textOf, viewOf} from '../../../support/scripts/views.js';

const near = (found, wanted) => assert.ok(Math.abs(found - wanted) < 1e-9, `${found}, and not ${wanted}`);

test('a view keeps the beginnings of its rows, and the odds of all that its rows begin with', () => {
  const seen = new SeenViews();
  seen.add('Once', drawnOf(viewOf([[1, 2, 3], [1, 4, 5], [6, 7, 8]], {mode: 'forks'})));
  const [view] = seen.list;
  assert.equal(view.text, 'Once');
  assert.deepEqual(new Set(view.beginnings.map(({text}) => text)), new Set([textOf(1), textOf(6)]));
  for (const {text, odds} of view.beginnings) near(odds.p, oddsOf([Number(text.slice(2))]));
  for (const path of [[1], [1, 2], [1, 2, 3], [1, 4], [1, 4, 5], [6], [6, 7], [6, 7, 8]]) near(view.odds.get(path.map(textOf).join('')).p, oddsOf(path));
});

test('the odds of a text that two tokens spell are those of both', () => {
  const view = viewOf([[1, 2], [3, 4]]);
  view.branches[1].pieces[0].text = textOf(1);
  const seen = new SeenViews();
  seen.add('', drawnOf(view));
  assert.equal(seen.list[0].beginnings.length, 1);
  near(seen.list[0].beginnings[0].odds.p, oddsOf([1]) + oddsOf([3]));
  near(seen.list[0].odds.get(textOf(1)).p, oddsOf([1]) + oddsOf([3]));
});

test('a beginning that no row has is known with its odds, and is none of the beginnings', () => {
  const seen = new SeenViews(), drawn = drawnOf(viewOf([[1, 2]], {rest: 3}));
  seen.add('', drawn);
  for (const other of drawn.others) near(seen.list[0].odds.get(other.text).p, oddsOf(other.ids));
  assert.equal(seen.list[0].beginnings.length, 1);
});

test('the record is bounded: the oldest views, rows beyond ten and pieces beyond twelve are dropped', () => {
  const seen = new SeenViews();
  for (let index = 0; index < 75; index += 1) seen.add(`${index} `, drawnOf(likelyView(15, 14)));
  assert.deepEqual(seen.list.map(({text}) => text), Array.from({length: 60}, (_, index) => `${index + 15} `));
  assert.equal(seen.list[0].beginnings.length, 10);
  assert.equal(Math.max(...[...seen.list[0].odds.keys()].map(text => text.trim().split(' ').length)), 12);
});

test('the same text again replaces its view and is the newest', () => {
  const seen = new SeenViews();
  for (const text of ['a ', 'b ', 'a ']) seen.add(text, drawnOf(likelyView(text === 'b ' ? 2 : seen.list.length + 1, 2)));
  assert.deepEqual(seen.list.map(({text, beginnings}) => [text, beginnings.length]), [['b ', 2], ['a ', 3]]);
});

test('the view of a half-typed word is dropped when more of the word is typed, and kept when a word of it was chosen', () => {
  const texts = (...all) => {
    const seen = new SeenViews();
    for (const text of all) seen.add(text, drawnOf(likelyView(2, 2)));
    return seen.list.map(({text}) => text);
  };
  const [chosen] = drawnOf(likelyView(2, 2)).rows[0].pieces.map(({text}) => text);
  assert.deepEqual(texts('The li', 'The light'), ['The light']);
  assert.deepEqual(texts('The li', 'The light was'), ['The li', 'The light was']);
  assert.deepEqual(texts('The ', 'The light'), ['The ', 'The light']);
  assert.deepEqual(texts('The li', 'The lo'), ['The li', 'The lo']);
  const joined = viewOf([[1, 2]]);
  joined.branches[0].pieces[0].text = 'ght';
  const seen = new SeenViews();
  seen.add('The li', drawnOf(joined));
  seen.add('The light', drawnOf(joined));
  assert.deepEqual(seen.list.map(({text}) => text), ['The li', 'The light']);
  assert.ok(chosen.startsWith(' '));
  seen.clear();
  assert.deepEqual(seen.list, []);
});
