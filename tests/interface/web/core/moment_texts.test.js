import assert from 'node:assert/strict';
import {test} from 'node:test';

import {EditHistory} from '../../../../interface/web/core/history.js';
import {momentTexts} from '../../../../interface/web/core/moment_texts.js';

// The line of a piece that was accepted behind a text.
function lineOf(text, piece) {
  const history = new EditHistory(), start = text.length, end = start + piece.length, before = {text, spans: [], earlier: undefined};
  const spans = history.add({start, removed: '', inserted: piece, kind: 'accept', time: 1, before: [start, start], after: [end, end]}, before, {marks: [[0, piece.length]]});
  const [moment] = history.moments({text: text + piece, spans, earlier: undefined}), line = momentTexts(moment);
  return line.before + line.piece;
}

test('a line of the history has the spaces of the text, neither more nor fewer', () => {
  for (const [text, piece] of [['The light', ' went out'], ['The light ', 'went out'], ['The light', 'house'], ['The light', ','], ['', 'The']]) {
    assert.equal(lineOf(text, piece), text + piece);
  }
  assert.equal(lineOf(`${'word '.repeat(20)}li`, 'ght'), `…${'word '.repeat(9)}light`);
  assert.equal(lineOf(`${'word '.repeat(20)}`, 'light'), `…${'word '.repeat(9)}light`);
  assert.equal(lineOf('The light ', ' went'), 'The light went', 'two spaces are shown as one');
  assert.equal(lineOf('The light.', '\n\nHe'), 'The light. He', 'line breaks are one space');
});

test('a piece of which a part was written by the person is marked', () => {
  const piece = written => {
    const history = new EditHistory(), spans = history.add({start: 0, removed: '', inserted: 'sea', kind: 'accept', time: 1, before: [0, 0], after: [3, 3], ...written}, {text: '', spans: [], earlier: undefined}, {marks: []});
    return history.moments({text: 'sea', spans, earlier: undefined})[0].written;
  };
  assert.deepEqual([piece({written: [[0, 3]]}), piece({})], [[[0, 3]], undefined]);
});

test('the chosen parts of a piece are told from those that the person has written', () => {
  const history = new EditHistory(), text = 'The light', piece = ' went  far out', written = [[6, 10]];
  const marks = [[0, 6], [10, 14]], spans = history.add({start: 9, removed: '', inserted: piece, kind: 'accept', time: 1, before: [9, 9], after: [23, 23], written}, {text, spans: [], earlier: undefined}, {marks});
  const [moment] = history.moments({text: text + piece, spans, earlier: undefined}), {before, stretches} = momentTexts(moment);
  assert.equal(before, 'The light ');
  assert.deepEqual(stretches, [{text: 'went', chosen: true}, {text: ' far ', chosen: false}, {text: 'out', chosen: true}]);
});

test('a piece that begins with a written part begins with it', () => {
  const history = new EditHistory(), written = [[0, 4]];
  const spans = history.add({start: 0, removed: '', inserted: 'Once upon', kind: 'accept', time: 1, before: [0, 0], after: [9, 9], written}, {text: '', spans: [], earlier: undefined}, {marks: [[4, 9]]});
  const [moment] = history.moments({text: 'Once upon', spans, earlier: undefined});
  assert.deepEqual(momentTexts(moment).stretches, [{text: 'Once ', chosen: false}, {text: 'upon', chosen: true}]);
  assert.deepEqual(momentTexts({before: '', text: 'Once upon'}).stretches, [{text: 'Once upon', chosen: true}]);
});

test('a piece that cannot be seen has signs', () => {
  assert.deepEqual([' ', '\n', ''].map(text => momentTexts({before: '', text}).piece), ['␣', '↵', '↵']);
});

test('a piece of signs alone has names for a screen reader, and any other is read as it is shown', () => {
  const spoken = ['\n', '', ' ', ',', ' sea, and'].map(text => momentTexts({before: 'My dog is ', text}).spoken);
  assert.deepEqual(spoken, ['My dog is line break', 'My dog is line break', 'My dog is space', 'My dog is comma', '']);
});

test('a message stands behind the name of who sent it', () => {
  const line = momentTexts({before: 'User:', text: 'Hello', earlier: {messages: [], role: 'user'}});
  assert.equal(line.before + line.piece, 'User: Hello');
});
