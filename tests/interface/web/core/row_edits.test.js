import assert from 'node:assert/strict';
import {test} from 'node:test';

import {MOST_EDITS, bannedTokenIn, editOf, editedPosition, editsAfter, replacementText, restoredPosition} from '../../../../interface/web/core/row_edits.js';

test('a word that is typed keeps the white space before it, a sign does not, and nothing new is no change', () => {
  assert.equal(replacementText(' sea', 'sky'), ' sky');
  assert.equal(replacementText('\n\nsea', 'éa'), '\n\néa');
  assert.equal(replacementText('son', 'side'), 'side');
  assert.equal(replacementText(' sea', ','), ',');
  assert.equal(replacementText(' sea', ' sky'), ' sky');
  assert.equal(replacementText(' sea', '3'), ' 3');
  for (const sign of [',', '.', '…', '”', '?!']) assert.equal(replacementText(sign, 'and'), ' and');
  for (const sign of ['-', '’', '“', '(']) assert.equal(replacementText(sign, 'and'), 'and');
  assert.equal(replacementText('.', '5'), '5');
  assert.deepEqual(['\n', '\n\n', ' '].map(blank => replacementText(blank, 'green')), [' green', ' green', ' green']);
  assert.equal(replacementText('.', '!'), '!');
  for (const typed of ['sea', ' sea', '']) assert.equal(replacementText(' sea', typed), null);
});

test('a text has a banned token where other kinds of characters stand around it', () => {
  for (const text of [' dog', ' dog barks', ' a dog', ' dog’s', ' dog,']) assert.equal(bannedTokenIn(text, [' cat', ' dog']), ' dog');
  for (const text of ['dog', ' dogs', ' hotdog', '-dog']) assert.equal(bannedTokenIn(text, [' dog', '']), undefined);
  assert.equal(bannedTokenIn('ing', ['ing']), 'ing');
  for (const text of [' ing', ' sing', ' singing']) assert.equal(bannedTokenIn(text, ['ing']), undefined);
  for (const text of [',', ' no, no']) assert.equal(bannedTokenIn(text, [',']), ',');
  for (const text of [' ,', ',,', ',”']) assert.equal(bannedTokenIn(text, [',']), undefined);
  assert.equal(bannedTokenIn(' a\nb', ['\n']), '\n');
  assert.equal(bannedTokenIn('🙂🙂🙂🙂🙂 sea', [' sea']), ' sea', 'a character may have two places');
});

test('a change keeps the tokens of the pieces before it', () => {
  const row = {branch: {ids: [4, 5, 6, 7]}, pieces: [{tokens: 1}, {tokens: 3}, {tokens: 4}], revision: 8, pinned: true};
  const before = index => editOf(row, index, ' x').edit.before;
  assert.deepEqual([0, 1, 2].map(before), [[], [4], [4, 5, 6]]);
  assert.deepEqual(editOf(row, 1, ' x'), {revision: 8, pinned: true, edit: {row: [4, 5, 6, 7], before: [4], text: ' x'}});
});

test('a change names the texts that earlier changes put into the tokens that it keeps', () => {
  const branch = {ids: [4, 5, 6, 7], edited: [2, 3], earlier_edits: [[0, 1]]}, pieces = [1, 2, 3, 4].map(tokens => ({tokens}));
  const earlier = index => editOf({branch, pieces, revision: 8, pinned: true}, index, ' x').edit.earlier;
  assert.deepEqual([0, 1, 2, 3].map(earlier), [undefined, [[0, 1]], [[0, 1]], [[0, 1], [2, 3]]]);
});

test('the changes of a text are its own steps, eight at most, without those that keep a banned token', () => {
  const step = (before, text = 'here') => ({edit: {row: [...before, 9], before, text: ' a'}, text, pinned: null});
  const own = [step([1]), step([2])], steps = [own[0], {id: 1, text: 'here', banned: true}, step([3], 'elsewhere'), own[1]];
  assert.deepEqual(editsAfter(steps, 'here', []), own.map(({edit}) => edit));
  assert.deepEqual(editsAfter(steps, 'here', [1, 9]), [own[1].edit]);
  assert.deepEqual(editsAfter(steps, 'nowhere', []), []);
  assert.equal(editsAfter(Array.from({length: 9}, () => step([1])), 'here', []).length, MOST_EDITS);
});

const row = (ids, edited, ...pieces) => ({branch: {ids, edited}, pieces: pieces.map(([text, isEdited], index) => ({text, isEdited, tokens: index + 1}))});

test('of a written word of several tokens the last one is found', () => {
  const rows = [row([1, 5, 6, 7], [1, 3], [' was', false], [' shimmer', true], ['ing', true], [' in', false])];
  assert.deepEqual(editedPosition(rows, {before: [1], text: ' shimmering'}), {line: 0, column: 2});
});

test('a changed row is found by what was kept before the change and by its text', () => {
  const rows = [
    row([9, 8], undefined, [' the', false]), row([1, 5, 6], [1, 2], [' a', false], [' never', true], [' more', false]),
    row([2, 5], [1, 2], [' b', true], [' never', true]), row([7, 3], [0, 1], [' sky', true], [' is', false]),
  ];
  assert.deepEqual(editedPosition(rows, {before: [1], text: ' never'}), {line: 1, column: 1});
  assert.deepEqual(editedPosition(rows, {before: [2], text: ' never'}), {line: 2, column: 1});
  assert.deepEqual(editedPosition(rows, {before: [], text: ' sky'}), {line: 3, column: 0});
  for (const gone of [{before: [1], text: ' ever'}, {before: [3], text: ' never'}, {before: [], text: ' the'}]) assert.equal(editedPosition(rows, gone), null);
});

test('the row of an undone change is the one that begins most like it, also where its end is missing or another one', () => {
  const path = (...ids) => ({branch: {ids}, pieces: ids.map((_, index) => ({tokens: index + 1}))});
  const rows = [path(1, 2, 7), path(9), path(1, 2, 3, 4, 6)], edit = {row: [1, 2, 3, 4, 5], before: [1]};
  assert.deepEqual(restoredPosition(rows, edit), {line: 2, column: 1});
  assert.deepEqual(restoredPosition(rows, {...edit, before: []}), {line: 2, column: 0});
  assert.deepEqual(restoredPosition([path(9), path(1, 2)], edit), {line: 1, column: 1}, 'it still grows');
  for (const others of [[], [path(9)], [path(1), path(1, 7)]]) assert.equal(restoredPosition(others, edit), null);
  const joined = {branch: {ids: [1, 2, 3]}, pieces: [{tokens: 1}, {tokens: 3}]};
  assert.deepEqual(restoredPosition([joined], edit), {line: 0, column: 1}, 'a button of two tokens');
});
