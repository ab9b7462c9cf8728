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

// Views after texts of which each begins like the one before.
function seenAfter(texts, branches = 3, depth = 3) {
  const seen = new SeenViews();
  for (const text of texts) seen.add(text, drawnOf(likelyView(branches, depth)));
  return seen;
}

function restored(stored) {
  const seen = new SeenViews();
  seen.restore(JSON.parse(JSON.stringify(stored) ?? 'null'));
  return seen;
}

test('views that were stored as JSON are the same when they are restored, to six digits of their odds', () => {
  const seen = seenAfter(['Once ', 'Once upon a time ', 'Once more ', '', '🙂 Once ']), again = restored(seen.stored);
  assert.deepEqual(again.list.map(({text}) => text), seen.list.map(({text}) => text));
  seen.list.forEach((view, index) => {
    const other = again.list[index];
    assert.deepEqual([...other.odds.keys()], [...view.odds.keys()]);
    assert.deepEqual(other.beginnings.map(({text}) => text), view.beginnings.map(({text}) => text));
    for (const [path, {p}] of view.odds) assert.ok(Math.abs(other.odds.get(path).p - p) <= 1e-5 * p);
  });
  assert.deepEqual(again.stored, seen.stored);
});

test('bounds stay bounds when they are stored', () => {
  const drawn = drawnOf(viewOf([[1, 2]]));
  drawn.others = [{text: ' most', odds: {p: 0.5, bound: true}}, {text: ' least', odds: {p: 0.25, atLeast: true}}, {text: ' raw', odds: {p: 0.125, raw: true}}];
  const seen = new SeenViews();
  seen.add('Once', drawn);
  const {odds} = restored(seen.stored).list[0];
  assert.deepEqual([odds.get(' most'), odds.get(' least'), odds.get(' raw')], drawn.others.map(other => other.odds));
});

test('the newest views are stored, as many as have room, and a long text before them is stored once', () => {
  const long = 'word '.repeat(20_000), texts = Array.from({length: 60}, (_, index) => `${long}${index} `);
  const size = seen => JSON.stringify(seen.stored).length;
  const few = seenAfter(texts, 5, 5), many = seenAfter(texts, 15, 14);
  assert.equal(few.stored.length, 60);
  assert.ok(size(few) < 2.2 * long.length && size(many) <= 201_000);
  const {list} = restored(many.stored);
  assert.ok(list.length > 2 && list.length < 60);
  assert.deepEqual(list.map(({text}) => text), texts.slice(-list.length));
});

test('restored views are older than those that are known, and not more than sixty', () => {
  const seen = seenAfter(['b ', 'c ']);
  seen.restore(seenAfter(Array.from({length: 60}, (_, index) => `${index} `)).stored);
  assert.deepEqual(seen.list.map(({text}) => text), [...Array.from({length: 58}, (_, index) => `${index + 2} `), 'b ', 'c ']);
});

test('what is no stored view is left out, with those that build on it', () => {
  const {stored} = seenAfter(['a ', 'ab ', 'abc ']);
  for (const value of [undefined, null, 1, 'x', {}, [], [null], [[]], [{}], [{same: 1, text: 'a'}], [{same: 0}], [{same: -1, text: ''}]]) {
    assert.deepEqual(restored(value).list, []);
    assert.deepEqual(restored([stored[0], value]).list.map(({text}) => text), ['abc ']);
  }
  const strange = {same: 0, text: 'a', beginnings: {}, odds: [null, [1, 0.5], ['a', 2], ['b', '1'], ['c', 0.5, 1], ['d', 0.5, {bound: 1}]]};
  assert.deepEqual(restored([strange]).list, [{text: 'a', beginnings: [], odds: new Map([['d', {p: 0.5}]])}]);
});
