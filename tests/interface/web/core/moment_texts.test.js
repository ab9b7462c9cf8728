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
  assert.deepEqual([piece({written: [[0, 3]]}), piece({})], [true, undefined]);
});

test('a piece that cannot be seen has signs', () => {
  assert.deepEqual([' ', '\n', ''].map(text => momentTexts({before: '', text}).piece), ['␣', '↵', '↵']);
});

test('a message stands behind the name of who sent it', () => {
  const line = momentTexts({before: 'User:', text: 'Hello', earlier: {messages: [], role: 'user'}});
  assert.equal(line.before + line.piece, 'User: Hello');
});
