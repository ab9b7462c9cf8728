import assert from 'node:assert/strict';
import {test} from 'node:test';

import {cardOf, copyName, titleOf} from '../../../../interface/tabs/writer/document_titles.js';

test('a document is called by its name, else by how it begins, else untitled', () => {
  assert.equal(titleOf({name: 'Mine', text: 'Once'}), 'Mine');
  assert.equal(titleOf({name: '', text: ' Once\nupon '}), 'Once upon');
  assert.equal(titleOf({name: '', text: 'a'.repeat(49)}), `${'a'.repeat(48)}…`);
  assert.equal(titleOf({name: '', text: 'a'.repeat(48)}), 'a'.repeat(48));
  assert.equal(titleOf({name: '', text: ' '}), 'Untitled');
});

test('copies are numbered', () => {
  assert.deepEqual(['Mine', 'Mine (copy)', 'Mine (copy 2)', 'Mine (copy 9)', 'Mine (copy 12)'].map(copyName), ['Mine (copy)', 'Mine (copy 2)', 'Mine (copy 3)', 'Mine (copy 10)', 'Mine (copy 13)']);
});

test('a name that only looks like a copy is copied whole', () => {
  assert.deepEqual(['Mine (copy )', 'Mine (copy) x', '(copy)', 'a\nb (copy)'].map(copyName),
    ['Mine (copy ) (copy)', 'Mine (copy) x (copy)', '(copy) (copy)', 'a\nb (copy 2)']);
});

test('a card holds what a list shows, and no text', () => {
  const record = {id: 'x', version: 3, name: '', edited: 5, created: 1, text: 'Once upon', spans: [[0, 4]]};
  assert.deepEqual(cardOf(record), {id: 'x', version: 3, name: '', edited: 5, title: 'Once upon', words: 2});
});
