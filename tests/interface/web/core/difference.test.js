import assert from 'node:assert/strict';
import {test} from 'node:test';

import {applyChange, changeBetween, changeFits, lengthDifference, inverseChange, changeTyped} from '../../../../interface/web/core/difference.js';
import {withDice} from '../../../support/scripts/dice.js';

// The same in characters instead of UTF-16 units.
function smallestChange(old, now) {
  const [before, after] = [[...old], [...now]];
  let head = 0, tail = 0;
  while (head < Math.min(before.length, after.length) && before[head] === after[head]) head += 1;
  while (tail < Math.min(before.length, after.length) - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const middle = characters => characters.slice(head, characters.length - tail).join('');
  return {start: before.slice(0, head).join('').length, removed: middle(before), inserted: middle(after)};
}

test('the change between two texts is the smallest one that cuts no character', () => withDice(500, dice => {
  const old = dice.text(12), {start, removed, inserted} = dice.change(old);
  const now = old.slice(0, start) + inserted + old.slice(start + removed.length);
  assert.deepEqual(changeBetween(old, now), smallestChange(old, now));
  assert.deepEqual(changeBetween(now, old), smallestChange(now, old));
}));

test('the change between two unlike texts is the smallest one that cuts no character', () => withDice(500, dice => {
  const old = dice.text(5, ['a', '🙂', '😂', '🩂']), now = dice.text(5, ['a', '🙂', '😂', '🩂']);
  assert.deepEqual(changeBetween(old, now), smallestChange(old, now));
}));

test('two characters that share their first half are exchanged whole', () => {
  assert.deepEqual(changeBetween('a🙂b', 'a😂b'), {start: 1, removed: '🙂', inserted: '😂'});
});

test('two characters that share their second half are exchanged whole', () => {
  assert.deepEqual(changeBetween('a🙂b', 'a🩂b'), {start: 1, removed: '🙂', inserted: '🩂'});
});

test('the first and the last character of each half are told from other characters', () => {
  const high = ['\ud800', '\udbff'], low = ['\udc00', '\udfff'];
  for (const first of high) {
    for (const [second, other] of [low, low.toReversed()]) {
      assert.deepEqual(changeBetween(first + second, first + other), {start: 0, removed: first + second, inserted: first + other});
    }
  }
  for (const second of low) {
    for (const [first, other] of [high, high.toReversed()]) {
      assert.deepEqual(changeBetween(first + second, other + second), {start: 0, removed: first + second, inserted: other + second});
    }
  }
  for (const second of low) assert.equal(changeBetween(`\ud800${second}a`, `\ud800${second}b`).start, 2);
  for (const first of high) assert.equal(changeBetween(`a${first}\udc00`, `b${first}\udc00`).removed, 'a');
  assert.deepEqual(changeBetween('\ud7ffa', '\ud7ffb'), {start: 1, removed: 'a', inserted: 'b'});
  assert.deepEqual(changeBetween('a\ue000', 'b\ue000'), {start: 0, removed: 'a', inserted: 'b'});
});

test('a text with half a character can be changed like any other', () => {
  for (const [old, now] of [['\ud83d', '\ud83d\ude42'], ['\ude42', '\ud83d\ude42'], ['a\ud83d', 'a'], ['\ude42', '\ude42a']]) {
    assert.equal(applyChange(old, changeBetween(old, now)), now);
    assert.equal(applyChange(now, changeBetween(now, old)), old);
  }
});

test('a change leads from the one text to the other, and its inverse back', () => withDice(300, dice => {
  const old = dice.text(12), change = dice.change(old);
  const now = applyChange(old, change);
  assert.equal(now, old.slice(0, change.start) + change.inserted + old.slice(change.start + change.removed.length));
  assert.equal(applyChange(now, inverseChange(change)), old);
  assert.equal(lengthDifference(change), now.length - old.length);
  assert.ok(changeFits(old, change) && changeFits(now, inverseChange(change)));
}));

test('a change fits a text that contains the removed stretch at its start', () => {
  assert.ok(changeFits('abc', {start: 1, removed: 'bc'}));
  assert.ok(!changeFits('abc', {start: 0, removed: 'bc'}));
  assert.ok(!changeFits('abc', {start: 2, removed: 'cd'}));
});

test('an insertion fits up to the end of a text, and not beyond', () => {
  assert.ok(changeFits('abc', {start: 3, removed: ''}));
  assert.ok(!changeFits('abc', {start: 4, removed: ''}));
});

test('typing, pasting and replacing a selection are found at their position', () => withDice(500, dice => {
  // With few different characters the two texts alone would often not tell where.
  const old = dice.text(10, ['a', 'a', 'b']), [from, to] = dice.stretch(old), inserted = dice.text(4, ['a', 'b']);
  const now = old.slice(0, from) + inserted + old.slice(to);
  const found = changeTyped(old, now, [from, to], from + inserted.length);
  assert.deepEqual(found, {start: from, removed: old.slice(from, to), inserted});
}));

test('a deletion before the caret is found at its position', () => withDice(300, dice => {
  const old = dice.text(10, ['a', 'a', 'b']), [from, to] = dice.stretch(old);
  assert.deepEqual(changeTyped(old, old.slice(0, from) + old.slice(to), [to, to], from), {start: from, removed: old.slice(from, to), inserted: ''});
}));

test('a deletion behind the caret is found at its position', () => withDice(300, dice => {
  const old = dice.text(10, ['a', 'a', 'b']), [from, to] = dice.stretch(old);
  assert.deepEqual(changeTyped(old, old.slice(0, from) + old.slice(to), [from, from], from), {start: from, removed: old.slice(from, to), inserted: ''});
}));

test('where selection and caret do not explain the change, the texts alone decide', () => withDice(500, dice => {
  const old = dice.text(8), {start, removed, inserted} = dice.change(old), [from, to] = dice.stretch(old);
  const now = old.slice(0, start) + inserted + old.slice(start + removed.length), caret = dice.upTo(now.length);
  const found = changeTyped(old, now, [from, to], caret);
  assert.equal(applyChange(old, found), now);
  const explained = found.start === Math.min(from, caret) && found.start + found.inserted.length === caret;
  if (!explained) assert.deepEqual(found, smallestChange(old, now));
}));

test('a change elsewhere than at the caret is found by the texts', () => {
  assert.deepEqual(changeTyped('one two', 'One two', [7, 7], 7), {start: 0, removed: 'o', inserted: 'O'});
  assert.deepEqual(changeTyped('one two', 'one two!', [0, 0], 0), {start: 7, removed: '', inserted: '!'});
  // The caret stands before the change although more was removed than stands behind it.
  assert.deepEqual(changeTyped('abcd', 'ad', [3, 3], 2), {start: 1, removed: 'bc', inserted: ''});
});
