import assert from 'node:assert/strict';
import {test} from 'node:test';

import {branchKey, historyKey, isPause, isSend, kindOfInput, nameKey, tabAfterKey, textKey, treeKey} from '../../../../interface/web/core/shortcuts.js';

const MODIFIERS = ['ctrlKey', 'metaKey', 'altKey', 'shiftKey'];

// A key as the browser tells of it: `Ctrl+Shift+z`, with the physical key where that says more; `held` are further facts.
function pressed(keys, code = '', {altGraph = false, isComposing = false} = {}) {
  const parts = keys.split('+'), key = parts.pop();
  const held = Object.fromEntries(MODIFIERS.map(name => [name, parts.includes({ctrlKey: 'Ctrl', metaKey: 'Meta', altKey: 'Alt', shiftKey: 'Shift'}[name])]));
  return {key, code, ...held, isComposing, getModifierState: name => name === 'AltGraph' && altGraph};
}

// Every choice of modifiers but those that are named.
const otherModifiers = (...allowed) => Array.from({length: 16}, (_, bits) => ['Ctrl', 'Meta', 'Alt', 'Shift'].filter((_, bit) => bits & (1 << bit)))
  .map(names => names.map(name => `${name}+`).join('')).filter(names => !allowed.includes(names));

const composing = {isComposing: true};

test('Ctrl or Command with z undoes, with Shift too it redoes', () => {
  for (const key of ['Ctrl+z', 'Meta+z', 'Ctrl+Z']) assert.equal(historyKey(pressed(key)), 'undo', key);
  for (const key of ['Ctrl+Shift+Z', 'Meta+Shift+z']) assert.equal(historyKey(pressed(key)), 'redo', key);
  for (const keys of otherModifiers('Ctrl+', 'Meta+', 'Ctrl+Shift+', 'Meta+Shift+', 'Ctrl+Meta+', 'Ctrl+Meta+Shift+'))
    assert.equal(historyKey(pressed(`${keys}z`)), null, keys);
});

test('Ctrl with y redoes, Command with y is not ours', () => {
  assert.equal(historyKey(pressed('Ctrl+y')), 'redo');
  for (const keys of otherModifiers('Ctrl+', 'Ctrl+Meta+')) assert.equal(historyKey(pressed(`${keys}y`)), null, keys);
});

test('no other key undoes or redoes', () => {
  for (const key of ['x', 'a', '1', 'Enter', 'ArrowLeft', 'zz']) assert.equal(historyKey(pressed(`Ctrl+${key}`)), null, key);
  assert.equal(historyKey(pressed('Ctrl+Enter', 'Enter')), null);
});

test('where the keyboard writes another script, undo and redo go by the physical key', () => {
  assert.equal(historyKey(pressed('Ctrl+я', 'KeyZ')), 'undo');
  assert.equal(historyKey(pressed('Ctrl+Shift+Я', 'KeyZ')), 'redo');
  assert.equal(historyKey(pressed('Ctrl+н', 'KeyY')), 'redo');
  assert.equal(historyKey(pressed('Ctrl+ф', 'KeyA')), null);
  assert.equal(historyKey(pressed('Ctrl+я', undefined)), null);
});

test('where the keyboard writes Latin letters, undo and redo go by the letter', () => {
  assert.equal(historyKey(pressed('Ctrl+z', 'KeyY')), 'undo');   // a German keyboard
  assert.equal(historyKey(pressed('Ctrl+y', 'KeyZ')), 'redo');
  assert.equal(historyKey(pressed('Ctrl+w', 'KeyZ')), null);     // a French one
});

test('while an input method composes no key undoes, pauses, chooses, sends or ends a name', () => {
  for (const [key, code] of [['Ctrl+z', 'KeyZ'], ['Ctrl+y', 'KeyY']]) assert.equal(historyKey(pressed(key, code, composing)), null, key);
  assert.ok(!isPause(pressed('Alt+p', 'KeyP', composing)));
  assert.ok(!isSend(pressed('Ctrl+Enter', 'Enter', composing)));
  for (const key of ['Enter', 'Escape']) assert.equal(nameKey(pressed(key, '', composing)), null, key);
  for (const [key, code] of [['Alt+1', 'Digit1'], ['Ctrl+ArrowRight', ''], ['Tab', 'Tab'], ['Escape', 'Escape']])
    assert.equal(textKey(pressed(key, code, composing), true), null, key);
  for (const key of ['ArrowLeft', '1', 'Delete', 'Home']) assert.equal(branchKey(pressed(key, '', composing)), null, key);
});

test('a sign that is typed with AltGr is a sign', () => {
  assert.ok(!isPause(pressed('Alt+p', 'KeyP', {altGraph: true})));
  assert.equal(textKey(pressed('Alt+²', 'Digit2', {altGraph: true}), true), null);
});

test('Alt with the key of p pauses, whatever it writes', () => {
  assert.ok(isPause(pressed('Alt+p', 'KeyP')) && isPause(pressed('Alt+π', 'KeyP')));
  assert.ok(!isPause(pressed('Alt+p', 'KeyL')));
  for (const keys of otherModifiers('Alt+')) assert.ok(!isPause(pressed(`${keys}p`, 'KeyP')), keys);
});

test('Alt with a digit takes the next word of a branch, with Shift the whole branch', () => {
  for (let digit = 1; digit <= 9; digit += 1) {
    for (const atEnd of [true, false]) {
      assert.deepEqual(textKey(pressed('Alt+¡', `Digit${digit}`), atEnd), {verb: 'word', branch: digit - 1, ours: true});
      assert.deepEqual(textKey(pressed('Alt+Shift+!', `Digit${digit}`), atEnd), {verb: 'whole', branch: digit - 1, ours: true});
    }
  }
  for (const keys of otherModifiers('Alt+', 'Alt+Shift+')) assert.equal(textKey(pressed(`${keys}1`, 'Digit1'), true), null, keys);
  for (const code of ['Digit0', 'Numpad1', 'xDigit1', 'Digit12', 'KeyA']) assert.equal(textKey(pressed('Alt+1', code), true), null, code);
});

test('Ctrl with the right arrow takes the next word where the caret stands at the end', () => {
  assert.deepEqual(textKey(pressed('Ctrl+ArrowRight'), true), {verb: 'word', branch: 0});
  assert.equal(textKey(pressed('Ctrl+ArrowRight'), false), null);
  assert.equal(textKey(pressed('Ctrl+ArrowLeft'), true), null);
  for (const keys of otherModifiers('Ctrl+')) assert.equal(textKey(pressed(`${keys}ArrowRight`), true), null, keys);
});

test('Tab takes the grey text and Escape hides it', () => {
  assert.deepEqual(textKey(pressed('Tab'), false), {verb: 'ghost'});
  assert.deepEqual(textKey(pressed('Escape'), false), {verb: 'hide'});
  for (const keys of otherModifiers('')) for (const key of ['Tab', 'Escape']) assert.equal(textKey(pressed(keys + key), true), null, keys + key);
  assert.equal(textKey(pressed('a'), true), null);
});

test('Ctrl or Command with Enter sends a message', () => {
  assert.ok(isSend(pressed('Ctrl+Enter')) && isSend(pressed('Meta+Enter')));
  assert.ok(!isSend(pressed('Enter')) && !isSend(pressed('Shift+Enter')) && !isSend(pressed('Ctrl+a')));
});

test('Enter keeps a name and Escape leaves it as it was', () => {
  assert.deepEqual(['Enter', 'Escape', 'a', 'Tab'].map(key => nameKey(pressed(key))), ['keep', 'leave', null, null]);
});

test('arrows move among the branches, Home and End to the first and the last choice of a row', () => {
  assert.deepEqual(['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End'].map(key => branchKey(pressed(key))), [
    {move: [0, -1]}, {move: [0, 1]}, {move: [-1, 0]}, {move: [1, 0]}, {move: [0, -Infinity]}, {move: [0, Infinity]},
  ]);
});

test('among the branches a digit takes a word, Delete bans, and F2 or E changes', () => {
  for (const key of ['F2', 'e']) assert.deepEqual(branchKey(pressed(key)), {edit: true});
  for (let digit = 1; digit <= 9; digit += 1) assert.deepEqual(branchKey(pressed(String(digit))), {word: digit - 1});
  assert.deepEqual(branchKey(pressed('Delete')), {ban: true});
  for (const key of ['0', '12', 'F1', 'a', 'Enter', ' ', 'Backspace', 'toString']) assert.equal(branchKey(pressed(key)), null, key);
});

test('among the branches Alt and a digit take a word as in the text box, also where they type another sign', () => {
  assert.deepEqual([branchKey(pressed('Alt+1', 'Digit1')), branchKey(pressed('Alt+¡', 'Digit1')), branchKey(pressed('Alt+9', 'Digit9'))], [{word: 0}, {word: 0}, {word: 8}]);
  for (const keys of otherModifiers('Alt+')) if (keys) assert.equal(branchKey(pressed(`${keys}1`, 'Digit1')), null, keys);
});

test('among the branches no other key with a modifier is ours', () => {
  for (const keys of otherModifiers('')) for (const key of ['ArrowLeft', '1', 'Delete']) assert.equal(branchKey(pressed(keys + key)), null, keys + key);
});

test('the kind of a change follows from the type of its input event', () => {
  const kinds = {
    type: ['insertText', 'insertLineBreak', 'insertParagraph'],
    paste: ['insertFromPaste', 'insertFromPasteAsQuotation', 'insertFromDrop', 'insertFromYank'],
    cut: ['deleteByCut', 'deleteByDrag'],
    delete: ['deleteContentBackward', 'deleteWordForward', 'deleteSoftLineBackward', 'deleteContent'],
    composition: ['insertCompositionText', 'insertFromComposition'],
    replace: ['insertReplacementText', 'insertTranspose', 'formatBold', 'xinsertText', 'xinsertFromPaste', 'xdeleteByCut', 'xdelete', '', undefined, null],
  };
  for (const [kind, types] of Object.entries(kinds)) for (const type of types) assert.equal(kindOfInput(type), kind, type);
});

test('Alt and an arrow lead from the text to the branches and back', () => {
  for (const atEnd of [true, false]) assert.deepEqual(textKey(pressed('Alt+ArrowDown'), atEnd), {verb: 'rows'});
  assert.deepEqual(branchKey(pressed('Alt+ArrowUp')), {leave: true});
  for (const keys of otherModifiers('Alt+')) {
    assert.equal(textKey(pressed(`${keys}ArrowDown`), true), null, keys);
    if (keys) assert.equal(branchKey(pressed(`${keys}ArrowUp`)), null, keys);
  }
  assert.deepEqual([textKey(pressed('Alt+ArrowUp'), true), branchKey(pressed('Alt+ArrowDown'))], [null, null]);
  assert.deepEqual([textKey(pressed('Alt+ArrowDown', '', composing), true), branchKey(pressed('Alt+ArrowUp', '', composing))], [null, null]);
});

test('in the tree arrows move, Enter and space click, and signs zoom, also where Shift writes them', () => {
  const moves = {ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down', Home: 'start', End: 'end'};
  for (const [key, move] of Object.entries(moves)) assert.deepEqual(treeKey(pressed(key)), {move});
  for (const key of ['Enter', ' ']) assert.deepEqual(treeKey(pressed(key)), {click: true});
  for (const [key, zoom] of [['Shift+=', 'in'], ['=', 'in'], ['-', 'out'], ['0', 'fit']]) assert.deepEqual(treeKey(pressed(key)), {zoom});
  assert.deepEqual(treeKey({...pressed('Shift+x'), key: '+'}), {zoom: 'in'});
  assert.deepEqual(treeKey(pressed('Alt+ArrowUp')), {leave: true});
  assert.deepEqual(treeKey(pressed('Delete')), {ban: true});
});

test('in the tree no other key is ours, none with a modifier but Shift, and none while an input method composes', () => {
  for (const key of ['a', '1', 'Tab', 'Escape', 'toString', 'PageDown']) assert.equal(treeKey(pressed(key)), null, key);
  for (const keys of otherModifiers('', 'Shift+', 'Alt+')) for (const key of ['ArrowLeft', '0', 'Enter', 'ArrowUp']) assert.equal(treeKey(pressed(keys + key)), null, keys + key);
  assert.equal(treeKey(pressed('Alt+ArrowDown')), null);
  assert.equal(treeKey(pressed('Enter', '', composing)), null);
});

test('arrows, Home and End lead from tab to tab, round the ends, and no other key does', () => {
  const led = (keys, index, more) => tabAfterKey(pressed(keys, '', more), index, 5);
  assert.deepEqual(['ArrowRight', 'ArrowLeft', 'Home', 'End'].map(key => led(key, 2)), [3, 1, 0, 4]);
  assert.deepEqual([led('ArrowRight', 4), led('ArrowLeft', 0)], [0, 4]);
  for (const key of ['ArrowDown', 'ArrowUp', 'Enter', ' ', 'a', 'Tab']) assert.equal(led(key, 2), null, key);
  for (const modifiers of otherModifiers('')) assert.equal(led(`${modifiers}ArrowRight`, 2), null, modifiers);
  assert.equal(led('ArrowRight', 2, composing), null);
});
