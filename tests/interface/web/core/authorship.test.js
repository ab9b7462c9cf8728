import assert from 'node:assert/strict';
import {test} from 'node:test';

import {
  agreeWithSpans, changeWithAuthors, earlierRuns, joinRuns, lengthOfRuns, runsAfterChange, runsAfterStep, runsWithin,
} from '../../../../interface/web/core/authorship.js';
import {applyChange, changeBetween} from '../../../../interface/web/core/difference.js';
import {withDice} from '../../../support/scripts/dice.js';

const typed = (length, step) => ({length, author: 'typed', step});
const chosen = (length, step, logprob = null, model = null) => ({length, author: 'chosen', step, model, logprob});

// The slow way: an author for each unit of the text.
const unitsOf = runs => runs.flatMap(({length, ...run}) => Array.from({length}, () => JSON.stringify(run)));
const someRun = (dice, length) => dice.among([typed(length, dice.upTo(2)), chosen(length, dice.upTo(2), -dice.upTo(1)), {length, author: 'earlier'}]);

function someRuns(dice, length) {
  const runs = [];
  for (let left = length; left > 0;) {
    const part = 1 + dice.upTo(left - 1);
    runs.push(someRun(dice, part));
    left -= part;
  }
  return runs;
}

test('runs that follow each other and differ in nothing are one', () => {
  assert.deepEqual(joinRuns([typed(1, 1), typed(2, 1), typed(1, 2), chosen(0, 3), typed(1, 2)]), [typed(3, 1), typed(2, 2)]);
  for (const other of [chosen(1, 1, -1, 'm'), chosen(1, 2, -2, 'm'), chosen(1, 2, -1, 'n'), {...chosen(1, 2, -1, 'm'), author: 'typed'}])
    assert.equal(joinRuns([chosen(1, 2, -1, 'm'), other]).length, 2);
  assert.deepEqual(joinRuns([]), []);
});

test('joining runs changes no author', () => withDice(100, dice => {
  const runs = someRuns(dice, 20), joined = joinRuns(runs);
  assert.deepEqual(unitsOf(joined), unitsOf(runs));
  assert.equal(lengthOfRuns(joined), 20);
}));

test('the runs of a stretch are those of its characters', () => withDice(200, dice => {
  const runs = someRuns(dice, 12), [start, end] = dice.stretch('x'.repeat(12));
  assert.deepEqual(unitsOf(runsWithin(runs, start, end)), unitsOf(runs).slice(start, end));
}));

test('after any change every other character has its author still', () => withDice(300, dice => {
  const text = dice.text(12), runs = someRuns(dice, text.length), change = dice.change(text, 5), inserted = someRuns(dice, change.inserted.length);
  const wanted = unitsOf(runs).toSpliced(change.start, change.removed.length, ...unitsOf(inserted));
  assert.deepEqual(unitsOf(runsAfterChange(runs, change, inserted)), wanted);
}));

test('a text from before its history is chosen where its spans say so', () => {
  assert.deepEqual(earlierRuns({text: 'abcdef', spans: [[0, 2], [3, 5]]}).map(({length, author}) => [length, author]),
    [[2, 'chosen'], [1, 'earlier'], [2, 'chosen'], [1, 'earlier']]);
  assert.deepEqual(earlierRuns({text: 'abc', spans: []}), [{length: 3, author: 'earlier'}]);
  assert.deepEqual(earlierRuns({text: '', spans: []}), []);
});

test('runs that agree with the spans stay; the others become chosen or earlier', () => {
  const runs = [typed(3, 1), chosen(3, 2, -1)];
  assert.deepEqual(agreeWithSpans(runs, [[3, 6]]), runs);
  assert.deepEqual(agreeWithSpans(runs, [[1, 2], [3, 5]]).map(({length, author, step}) => [length, author, step]),
    [[1, 'typed', 1], [1, 'chosen', undefined], [1, 'typed', 1], [2, 'chosen', 2], [1, 'earlier', undefined]]);
});

test('a change with authors leads to the text and to all of its authors', () => withDice(400, dice => {
  const from = {text: dice.text(8)}, to = {text: dice.chance(0.5) ? applyChange(from.text, dice.change(from.text)) : dice.text(8)};
  for (const state of [from, to]) state.authors = someRuns(dice, state.text.length);
  const smallest = changeBetween(from.text, to.text);
  if (dice.chance(0.3)) to.authors = runsAfterChange(from.authors, smallest, someRuns(dice, smallest.inserted.length));
  const change = changeWithAuthors(from, to, smallest), {start, inserted} = change;
  assert.equal(applyChange(from.text, change), to.text);
  assert.deepEqual(unitsOf(runsAfterChange(from.authors, change, runsWithin(to.authors, start, start + inserted.length))), unitsOf(to.authors));
  assert.ok(start <= smallest.start && start + change.removed.length >= smallest.start + smallest.removed.length);
}));

test('a change with authors is no larger than it has to be', () => {
  const from = {text: 'one two', authors: [typed(7, 1)]}, to = {text: 'one two three', authors: [typed(7, 1), typed(6, 2)]};
  assert.deepEqual(changeWithAuthors(from, to, changeBetween(from.text, to.text)), {start: 7, removed: '', inserted: ' three'});
  const other = {...to, authors: [typed(5, 1), chosen(2, 3), typed(6, 2)]};
  assert.deepEqual(changeWithAuthors(from, other, changeBetween(from.text, to.text)), {start: 5, removed: 'wo', inserted: 'wo three'});
});

const step = (fields, after = []) => ({start: 0, removed: '', inserted: 'abc', after: [3, 3], number: 4, marks: {from: 0, before: [], after}, ...fields});

test('each kind of step has its author', () => {
  const authors = {type: 'typed', composition: 'typed', replace: 'typed', paste: 'pasted', reenter: 'earlier', send: 'earlier'};
  for (const [kind, author] of Object.entries(authors)) assert.deepEqual(runsAfterStep([], step({kind})), [{length: 3, author, step: 4}]);
});

test('an accepted piece has the instruction that its rows followed, and pieces under others stay apart', () => {
  const accepted = step({kind: 'accept', model: 'm', instruction: 'Be brief.', logprobs: [-1, -0.5]}, [[0, 3]]);
  const told = {...chosen(3, 4, -1.5, 'm'), instruction: 'Be brief.'};
  assert.deepEqual(runsAfterStep([], accepted), [told]);
  assert.deepEqual(joinRuns([told, chosen(3, 4, -1.5, 'm')]), [told, chosen(3, 4, -1.5, 'm')]);
});

test('an accepted piece has its model and its odds, and an opening of the example has none', () => {
  const accepted = step({kind: 'accept', model: 'm', logprobs: [-1, -0.5]}, [[0, 3]]);
  assert.deepEqual(runsAfterStep([], accepted), [chosen(3, 4, -1.5, 'm')]);
  assert.deepEqual(runsAfterStep([], {...accepted, model: undefined, logprobs: []}), [chosen(3, 4)]);
  const written = runsAfterStep([], {...accepted, written: [[1, 2]]});
  assert.deepEqual(written, [chosen(1, 4, null, 'm'), typed(1, 4), chosen(1, 4, null, 'm')], 'the odds would be those of the written part too');
  assert.deepEqual(runsAfterStep([], {...accepted, written: [[1, 2]], chosenLogprobs: [-1, -0.25]}),
    [chosen(1, 4, -1, 'm'), typed(1, 4), chosen(1, 4, -0.25, 'm')], 'each stretch has its own');
  assert.deepEqual(runsAfterStep([], {...accepted, written: [[0, 1]], chosenLogprobs: [-0.25]}), [typed(1, 4), chosen(2, 4, -0.25, 'm')]);
  assert.deepEqual(runsAfterStep([], {...accepted, written: [[1, 2]], chosenLogprobs: [-1]}), written, 'a stored step with too few');
  assert.deepEqual(runsAfterStep([], {...accepted, logprobs: null, marks: {...accepted.marks, after: [[1, 3]]}}),
    [{length: 1, author: 'example', step: 4}, chosen(2, 4, null, 'm')]);
  const apart = runsAfterStep([], {...accepted, after: [2, 2], written: [[2, 3]]});
  assert.deepEqual(apart, [chosen(2, 4, -1.5, 'm'), typed(1, 4)], 'a space behind the caret does not change the odds');
  assert.deepEqual(runsAfterStep([typed(1, 1)], {...accepted, marks: {from: 1, before: [], after: []}}), [chosen(3, 4, -1.5, 'm'), typed(1, 1)]);
});

test('a step that restored an earlier text has the authors of that text, if they fit it', () => {
  const back = step({kind: 'reenter', start: 1, inserted: 'b', authors: [chosen(1, 1), typed(2, 2)]});
  assert.deepEqual(runsAfterStep([typed(2, 1)], back), back.authors);
  assert.deepEqual(runsAfterStep([typed(2, 1)], {...back, authors: [typed(2, 2)]}), [typed(1, 1), {length: 1, author: 'earlier', step: 4}, typed(1, 1)]);
});
