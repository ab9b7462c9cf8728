import assert from 'node:assert/strict';
import {test} from 'node:test';

import {applyChange} from '../../../../interface/web/core/difference.js';
import {AcceptedTrail} from '../../../../interface/web/core/accepted_trail.js';
import {withDice} from '../../../support/scripts/dice.js';

const accepted = (start, inserted, ids = [1], gap = '') =>
  ({start, inserted: inserted + gap, after: [start + inserted.length, start + inserted.length], ids, healed: false});

function trailOf(...pieces) {
  const trail = new AcceptedTrail();
  pieces.forEach(({healed = false, ...piece}, index) => trail.add({healed, ...piece}, index + 1));
  return trail;
}

// The slow way: the characters of each piece, where they are now, and whether any of them or the place before was touched.
class Characters {
  pieces = [];

  add({start, inserted, ids, healed}, revision) {
    this.pieces.push({places: Array.from({length: inserted.length}, (_, index) => start + index), ids, healed, revision});
  }

  change({start, removed, inserted}) {
    const gone = new Set(Array.from({length: removed.length}, (_, index) => start + index));
    this.pieces = this.pieces.filter(({places}) => {
      const cut = places.some(place => gone.has(place)), into = places.slice(1).includes(start) && inserted;
      const before = places[0] === start || gone.has(places[0] - 1);
      return !(cut || into || before);
    });
    for (const piece of this.pieces)
      piece.places = piece.places.map(place => (place >= start + removed.length ? place - removed.length + inserted.length : place));
  }

  since(revision, caret) {
    return this.pieces.filter(piece => piece.places.at(-1) === caret - 1 || (piece.revision > revision && piece.places.at(-1) < caret))
      .sort((one, other) => one.places[0] - other.places[0]).map(({places, ids, healed}) => [places[0], ids, healed]);
  }
}

test('after any changes the trail holds the untouched pieces', () => withDice(400, dice => {
  const trail = new AcceptedTrail(), slow = new Characters();
  let text = '';
  for (let revision = 1; revision <= 15; revision += 1) {
    if (dice.chance(0.6)) {
      const [start] = dice.stretch(text), inserted = `x${dice.text(4)}`;
      const step = {...accepted(start, inserted, [revision, 7]), removed: '', healed: dice.chance(0.3)};
      for (const one of [trail, slow]) {
        if (one === trail) one.applyChange(step);
        else one.change(step);
        one.add(step, revision);
      }
      text = applyChange(text, step);
    } else {
      const change = dice.change(text, 3);
      if (!change.removed && !change.inserted) continue;
      trail.applyChange(change);
      slow.change(change);
      text = applyChange(text, change);
    }
    const since = dice.upTo(revision), caret = dice.upTo(text.length);
    assert.deepEqual(trail.since(0, text.length), slow.since(0, text.length));
    assert.deepEqual(trail.since(since, caret), slow.since(since, caret));
  }
}));

test('an insertion directly before an accepted piece drops it', () => {
  const trail = trailOf(accepted(3, ' word'));
  trail.applyChange({start: 3, removed: '', inserted: 'x'});
  assert.deepEqual(trail.since(0, 99), []);
});

test('a removal that ends directly before an accepted piece drops it', () => {
  const trail = trailOf(accepted(3, ' word'));
  trail.applyChange({start: 2, removed: 'x', inserted: ''});
  assert.deepEqual(trail.since(0, 99), []);
});

test('an insertion a character before an accepted piece moves it along', () => {
  const trail = trailOf(accepted(3, ' word', [5, 6]));
  trail.applyChange({start: 2, removed: '', inserted: 'xy'});
  assert.deepEqual(trail.since(0, 99), [[5, [5, 6], false]]);
});

test('an insertion directly behind an accepted piece leaves it where it is', () => {
  const trail = trailOf(accepted(3, ' word'));
  trail.applyChange({start: 8, removed: '', inserted: 'xy'});
  assert.deepEqual(trail.since(0, 99), [[3, [1], false]]);
});

test('a change of the last character of a piece drops it', () => {
  const trail = trailOf(accepted(3, ' word'));
  trail.applyChange({start: 7, removed: 'd', inserted: ''});
  assert.deepEqual(trail.since(0, 99), []);
});

test('the trail lists the pieces accepted after a revision that end before the caret, and the one that ends there, in order', () => {
  const trail = trailOf(accepted(10, 'bb', [2]), {...accepted(0, 'aa', [1]), healed: true}, accepted(20, 'cc', [3]));
  assert.deepEqual(trail.since(0, 22), [[0, [1], true], [10, [2], false], [20, [3], false]]);
  assert.deepEqual(trail.since(1, 22), [[0, [1], true], [20, [3], false]]);
  assert.deepEqual(trail.since(0, 21), [[0, [1], true], [10, [2], false]]);
  assert.deepEqual(trail.since(3, 22), [[20, [3], false]], 'a letter typed after it, and undone, may have split its last token');
  assert.deepEqual(trail.since(3, 23), []);
});

test('a space that was inserted behind an accepted piece is no part of it', () => {
  const trail = trailOf(accepted(0, 'is', [5], ' '), accepted(2, ' a', [6]));
  assert.deepEqual(trail.spans.map(({start, end}) => [start, end]), [[0, 2], [2, 4]]);
  assert.deepEqual(trail.since(0, 4), [[0, [5], false], [2, [6], false]]);
});

test('a text without token ids is not part of the trail', () => {
  for (const ids of [[], null, undefined]) assert.deepEqual(trailOf({...accepted(0, 'a'), ids}).since(0, 99), []);
});

test('the newest ten thousand pieces are kept', () => {
  const trail = new AcceptedTrail(), most = 10_000;
  for (let start = 0; start <= most; start += 1) trail.add({healed: false, ...accepted(start, 'x', [start])}, start + 1);
  assert.deepEqual(trail.since(0, 99_999).map(([start]) => start), Array.from({length: most}, (_, index) => index + 1));
});

test('pieces behind what the server has read are sent again', () => {
  const trail = trailOf(accepted(0, 'Once '), accepted(5, 'upon', [2, 3]));
  assert.deepEqual(trail.since(2, 10), []);
  assert.deepEqual(trail.since(2, 10, 9), []);
  assert.deepEqual(trail.since(2, 10, 8), [[5, [2, 3], false]]);
  assert.deepEqual(trail.since(2, 8, 0), [[0, [1], false]]);
});

test('stored pieces are restored, with a revision of their own', () => {
  const trail = trailOf(accepted(0, 'Once '), accepted(5, 'upon', [2, 3]), {...accepted(5, 'x', [4]), healed: true});
  trail.applyChange({start: 5, removed: '', inserted: 'x'});
  const stored = JSON.parse(JSON.stringify(trailOf(accepted(5, 'upon', [2, 3]), accepted(0, 'Once ')).spans));
  assert.deepEqual(stored, [{start: 0, end: 5, ids: [1], healed: false}, {start: 5, end: 9, ids: [2, 3], healed: false}]);
  const other = trailOf(accepted(0, 'gone'));
  other.restore(stored, 7);
  assert.deepEqual(other.since(6, 9), [[0, [1], false], [5, [2, 3], false]]);
  assert.deepEqual(other.since(7, 10), []);
  assert.deepEqual(other.since(6, 8), [[0, [1], false]]);
});

test('a step back to an earlier text brings the accepted pieces of that text', () => {
  const pieces = [{start: 0, end: 4, ids: [9], healed: false}, {start: 4, end: 6, ids: [8], healed: false}];
  const back = {start: 0, removed: 'Once ', inserted: '', accepted: pieces}, trail = trailOf(accepted(0, 'gone'));
  const steps = [accepted(0, 'Once '), accepted(5, 'upon', [2]), accepted(9, ' a', [3])].map(step => ({...step, removed: ''}));
  trail.restoreFrom({steps: [...steps, back], position: 4}, 3);
  assert.deepEqual(trail.spans, [pieces[0], {...pieces[1], ids: [3]}], 'where one is known it stays');
  assert.deepEqual(trail.since(2, 6), [[0, [9], false], [4, [3], false]]);
});

test('the steps of a history leave the pieces that are still unchanged', () => {
  const steps = [
    {...accepted(0, 'Once '), removed: ''}, {...accepted(5, 'upon', [2]), removed: ''}, {start: 9, removed: '', inserted: ' a'},
    {start: 5, removed: 'upon', inserted: 'there'}, {...accepted(12, ' time', [5]), removed: ''},
  ];
  const trail = trailOf(accepted(0, 'gone'));
  trail.restoreFrom({steps, position: 4}, 3);
  assert.deepEqual(trail.spans, [{start: 0, end: 5, ids: [1], healed: false}]);
  trail.restoreFrom({steps, position: 5}, 3);
  assert.deepEqual(trail.since(2, 100), [[0, [1], false], [12, [5], false]]);
  assert.deepEqual(trail.since(3, 100), []);
});
