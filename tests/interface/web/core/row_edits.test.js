import assert from 'node:assert/strict';
import {test} from 'node:test';

import {NO_EDITS, editOf, editsAt, replacementText, withEdit} from '../../../../interface/web/core/row_edits.js';

test('a word that is typed keeps the white space before it, a sign does not, and nothing new is no change', () => {
  assert.equal(replacementText(' sea', 'sky'), ' sky');
  assert.equal(replacementText('\n\nsea', 'éa'), '\n\néa');
  assert.equal(replacementText('son', 'side'), 'side');
  assert.equal(replacementText(' sea', ','), ',');
  assert.equal(replacementText(' sea', ' sky'), ' sky');
  assert.equal(replacementText(' sea', '3'), ' 3');
  assert.equal(replacementText(',', 'and'), 'and');
  for (const typed of ['sea', ' sea', '']) assert.equal(replacementText(' sea', typed), null);
});

test('a change keeps the tokens of the pieces before it', () => {
  const row = {branch: {ids: [4, 5, 6, 7]}, pieces: [{tokens: 1}, {tokens: 3}, {tokens: 4}], revision: 8, pinned: true};
  const before = index => editOf(row, index, ' x').edit.before;
  assert.deepEqual([0, 1, 2].map(before), [[], [4], [4, 5, 6]]);
  assert.deepEqual(editOf(row, 1, ' x'), {revision: 8, pinned: true, edit: {row: [4, 5, 6, 7], before: [4], text: ' x'}});
});

test('changes add up within one revision of the text, to eight at most', () => {
  let edits = NO_EDITS;
  for (let count = 1; count <= 8; count += 1) {
    edits = withEdit(edits, {revision: 3, edit: {row: [count], before: [], text: 'x'}});
    assert.equal(editsAt(edits, 3).length, count);
  }
  assert.equal(withEdit(edits, {revision: 3, edit: {row: [9], before: [], text: 'x'}}), null);
  assert.deepEqual(editsAt(edits, 4), []);
  assert.deepEqual(withEdit(edits, {revision: 4, edit: {row: [9], before: [], text: 'y'}}),
    {revision: 4, list: [{row: [9], before: [], text: 'y'}]});
});
