import assert from 'node:assert/strict';
import {test} from 'node:test';

import {spansAfterChange, spansPatch, redoSpans, undoSpans, spansWithin} from '../../../../interface/web/core/chosen_spans.js';
import {applyChange, lengthDifference} from '../../../../interface/web/core/difference.js';
import {withDice} from '../../../support/scripts/dice.js';
import {Owners, randomMarks} from '../../../support/scripts/owners.js';

// A text with its spans before and after each of some random changes; `run` gets the change too.
function changes(dice, count, run) {
  const owners = new Owners();
  let text = '', spans = [];
  for (let turn = 0; turn < count; turn += 1) {
    const change = dice.change(text, 6), marks = randomMarks(dice, change.inserted.length), before = spans;
    owners.change(change, marks);
    text = applyChange(text, change);
    spans = run({before, change, marks, wanted: owners.spans, text});
  }
}

test('after any changes the spans are those of the characters that were chosen', () => withDice(300, dice => {
  changes(dice, 12, ({before, change, marks, wanted}) => {
    const spans = spansAfterChange(before, change, marks);
    assert.deepEqual(spans, wanted);
    return spans;
  });
}));

test('removing the middle of a span leaves one span', () => {
  assert.deepEqual(spansAfterChange([[0, 6]], {start: 2, removed: 'xy', inserted: ''}), [[0, 4]]);
});

test('typing into the middle of a span leaves two spans', () => {
  assert.deepEqual(spansAfterChange([[0, 6]], {start: 2, removed: 'xy', inserted: 'a'}), [[0, 2], [3, 5]]);
});

test('two spans stay two when the text between them is removed', () => {
  assert.deepEqual(spansAfterChange([[0, 2], [3, 5]], {start: 2, removed: 'x', inserted: ''}), [[0, 2], [2, 4]]);
});

test('a removal from the end of one span into the next leaves two spans', () => {
  assert.deepEqual(spansAfterChange([[0, 3], [3, 6]], {start: 2, removed: 'xy', inserted: ''}), [[0, 2], [2, 4]]);
});

test('a patch of the spans can be undone and redone', () => withDice(300, dice => {
  changes(dice, 12, ({before, change, marks}) => {
    const spans = spansAfterChange(before, change, marks), by = lengthDifference(change), step = spansPatch(before, spans, by);
    assert.deepEqual(redoSpans(before, step, by), spans);
    assert.deepEqual(undoSpans(spans, step, by), before);
    return spans;
  });
}));

test('a patch holds the shortest stretch of spans that differs', () => withDice(300, dice => {
  changes(dice, 12, ({before, change, marks}) => {
    const spans = spansAfterChange(before, change, marks), by = lengthDifference(change), step = spansPatch(before, spans, by);
    const moved = before.map(([start, end]) => [start + by, end + by]), most = Math.min(before.length, spans.length);
    const alike = count => JSON.stringify(before.slice(0, count)) === JSON.stringify(spans.slice(0, count));
    const alikeAtTheEnd = count => !count || JSON.stringify(moved.slice(-count)) === JSON.stringify(spans.slice(-count));
    const counts = [...Array(most + 1).keys()];
    const from = Math.max(...counts.filter(alike)), kept = Math.max(...counts.filter(count => count <= most - from && alikeAtTheEnd(count)));
    assert.deepEqual(step, {from, before: before.slice(from, before.length - kept), after: spans.slice(from, spans.length - kept)});
    return spans;
  });
}));

test('the spans of a stretch are counted from its start', () => withDice(300, dice => {
  changes(dice, 8, ({before, change, marks, wanted, text}) => {
    const [start, end] = dice.stretch(text), inside = new Set();
    for (const [from, to] of wanted) for (let index = from; index < to; index += 1) if (index >= start && index < end) inside.add(index - start);
    const found = spansWithin(wanted, start, end);
    assert.deepEqual(new Set(found.flatMap(([from, to]) => Array.from({length: to - from}, (_, index) => from + index))), inside);
    assert.ok(found.every(([from, to]) => from < to));
    return spansAfterChange(before, change, marks);
  });
}));
