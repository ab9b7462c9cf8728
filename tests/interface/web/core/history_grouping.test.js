import assert from 'node:assert/strict';
import {test} from 'node:test';

import {applyChange} from '../../../../interface/web/core/difference.js';
import {joinSteps, canJoin} from '../../../../interface/web/core/history_grouping.js';
import {withDice} from '../../../support/scripts/dice.js';

// A step at the caret of a text that ends there.
function typing(inserted, at, time = 0) {
  return {kind: 'type', start: at, removed: '', inserted, before: [at, at], after: [at + inserted.length, at + inserted.length], time};
}

// Backspace: the caret stands behind what is removed before, and at its start after.
function backspace(removed, start, time = 0) {
  const end = start + removed.length;
  return {kind: 'delete', start, removed, inserted: '', before: [end, end], after: [start, start], time};
}

// Delete: the caret stays where it is.
function forward(removed, start, time = 0) {
  return {kind: 'delete', start, removed, inserted: '', before: [start, start], after: [start, start], time};
}

// The steps that become of these, one after the other.
function grouped(steps) {
  return steps.reduce((done, step) => {
    const last = done.at(-1);
    return canJoin(last, step) ? [...done.slice(0, -1), joinSteps(last, step)] : [...done, step];
  }, []);
}

// A text that is typed key by key, as the pieces that its steps insert.
const typedAs = text => grouped([...text].map((key, index) => typing(key, [...text].slice(0, index).join('').length, 10 * index)))
  .map(({inserted}) => inserted);

test('keys that follow each other are one step', () => assert.deepEqual(typedAs('one two'), ['one two']));

test('typing after a new line begins a step', () => {
  assert.deepEqual(typedAs('one\ntwo'), ['one\n', 'two']);
});

test('several new lines end one step', () => {
  assert.deepEqual(typedAs('one\n\n\ntwo'), ['one\n\n\n', 'two']);
  assert.equal(grouped([typing('one\n', 0), typing('\ntwo', 4)]).length, 1);
});

test('a new line at the start of the text ends a step too', () => {
  assert.deepEqual(typedAs('\none'), ['\n', 'one']);
});

test('a step of forty characters ends before the next word', () => {
  assert.deepEqual(typedAs(`${'x'.repeat(39)} yy zz`), [`${'x'.repeat(39)} `, 'yy zz']);
});

test('a step of less than forty characters goes on with the next word', () => {
  assert.deepEqual(typedAs(`${'x'.repeat(38)} y`), [`${'x'.repeat(38)} y`]);
});

test('a long step does not end within a word, nor between white space', () => {
  assert.deepEqual(typedAs(`${'x'.repeat(60)}y`), [`${'x'.repeat(60)}y`]);
  assert.deepEqual(typedAs(`${'x'.repeat(40)}   y`), [`${'x'.repeat(40)}   `, 'y']);
});

test('a long step ends behind any white space, not within a word that only holds some', () => {
  assert.deepEqual(typedAs(`${'x'.repeat(40)}\u3000y`), [`${'x'.repeat(40)}\u3000`, 'y']);
  assert.equal(grouped([typing('x'.repeat(40), 0), typing('y z', 40)]).length, 1);
  assert.equal(grouped([typing(`${'x'.repeat(39)} `, 0), typing('y z', 40)]).length, 2);
  assert.deepEqual(typedAs(`${'x'.repeat(20)} ${'x'.repeat(25)}y`), [`${'x'.repeat(20)} ${'x'.repeat(25)}y`]);
});

test('a pause of a second ends a step', () => {
  assert.ok(canJoin(typing('a', 0, 5000), typing('b', 1, 5999)));
  assert.ok(!canJoin(typing('a', 0, 5000), typing('b', 1, 6000)));
});

test('a clock that was set back by a second ends a step', () => {
  assert.ok(canJoin(typing('a', 0, 5000), typing('b', 1, 4001)));
  assert.ok(!canJoin(typing('a', 0, 5000), typing('b', 1, 4000)));
});

test('the first change joins no step', () => assert.ok(!canJoin(undefined, typing('a', 0)) && !canJoin(null, typing('a', 0))));

test('typing elsewhere is a step of its own', () => {
  assert.ok(!canJoin(typing('ab', 0), typing('c', 1)));
  assert.ok(!canJoin(typing('ab', 0), typing('c', 3)));
  assert.ok(!canJoin(typing('ab', 0), {...typing('c', 2), start: 1}));
});

test('a change that does not start at the last caret is a step of its own', () => {
  const step = typing('c', 2);
  assert.ok(canJoin(typing('ab', 0), step));
  assert.ok(!canJoin(typing('ab', 0), {...step, before: [1, 1]}));
  assert.ok(!canJoin({...typing('ab', 0), after: [1, 1]}, step));
});

test('replacing a selection is a step of its own', () => {
  assert.ok(!canJoin(typing('ab', 0), {...typing('c', 2), removed: 'x'}));
  for (const before of [[1, 2], [2, 3]]) assert.ok(!canJoin(typing('ab', 0), {...typing('c', 2), before}));
  assert.ok(!canJoin({...typing('ab', 0), after: [1, 2]}, typing('c', 2)));
  assert.ok(!canJoin({...typing('ab', 0), after: [2, 3]}, {...typing('c', 2), before: [2, 3]}));
});

test('more than twenty characters at once were not typed by hand', () => {
  assert.ok(canJoin(typing('a', 0), typing('b'.repeat(20), 1)));
  assert.ok(!canJoin(typing('a', 0), typing('b'.repeat(21), 1)));
  assert.ok(canJoin(backspace('b', 30), backspace('a'.repeat(20), 10)));
  assert.ok(!canJoin(backspace('b', 31), backspace('a'.repeat(21), 10)));
});

test('only typing and deleting can join the last step', () => {
  assert.ok(!canJoin(typing('a', 0), {...typing('b', 1), kind: 'accept'}));
  for (const kind of ['accept', 'paste', 'cut', 'composition', 'replace'])
    for (const [last, step] of [[typing('a', 0), typing('b', 1)], [backspace('c', 2), backspace('b', 1)]])
      assert.ok(!canJoin({...last, kind}, {...step, kind}), kind);
});

test('typing does not go on with deleting, nor deleting with typing', () => {
  assert.ok(!canJoin(backspace('b', 1), typing('c', 1)));
  assert.ok(!canJoin(typing('ab', 0), backspace('b', 1)));
});

test('backspaces are one step, and so are deletions forward', () => {
  assert.deepEqual(grouped([backspace('c', 2), backspace('b', 1), backspace('a', 0)]).map(({start, removed}) => [start, removed]), [[0, 'abc']]);
  assert.deepEqual(grouped([forward('a', 4), forward('b', 4), forward('c', 4)]).map(({start, removed}) => [start, removed]), [[4, 'abc']]);
});

test('a deletion elsewhere is a step of its own', () => {
  assert.ok(!canJoin(backspace('c', 5), {...backspace('b', 2), before: [5, 5]}));
  assert.ok(!canJoin(forward('c', 5), {...forward('b', 6), before: [5, 5]}));
});

test('forty deleted characters end a step before the next word is deleted', () => {
  assert.ok(!canJoin(backspace('x'.repeat(40), 10), backspace('a ', 8)));
  assert.ok(canJoin(backspace('x'.repeat(40), 10), backspace('a', 9)));
  assert.ok(canJoin(backspace('x'.repeat(40), 10), backspace(' a', 8)));
  assert.ok(canJoin(backspace('x'.repeat(39), 10), backspace('a ', 8)));
});

test('two joined steps lead from the state before the first to the state after the second', () => withDice(300, dice => {
  const text = dice.text(20), at = dice.upTo(text.length);
  const step = at => {
    if (dice.chance(0.5)) return typing(dice.text(5) || 'x', at, dice.upTo(500));
    const [from, to] = [dice.upTo(at), Math.min(text.length, at + dice.upTo(3))];
    return dice.chance(0.5) ? backspace(text.slice(from, at), from) : forward(text.slice(at, to), at);
  };
  const first = step(at), then = applyChange(text, first), [caret] = first.after;
  let second = first.kind === 'type' ? typing(dice.text(5) || 'y', caret, 600) : null;
  if (!second) {
    const from = dice.upTo(caret), to = Math.min(then.length, caret + dice.upTo(3));
    second = dice.chance(0.5) ? backspace(then.slice(from, caret), from, 600) : forward(then.slice(caret, to), caret, 600);
  }
  if (!canJoin(first, second)) return;
  const both = joinSteps(first, second);
  assert.equal(applyChange(text, both), applyChange(then, second));
  assert.equal(text.slice(both.start, both.start + both.removed.length), both.removed);
  assert.deepEqual([both.before, both.after, both.time, both.kind], [first.before, second.after, second.time, first.kind]);
}));
