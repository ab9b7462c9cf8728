import assert from 'node:assert/strict';
import {test} from 'node:test';

import {cardOf, copyName, linkName, titleOf} from '../../../../interface/tabs/writer/document_titles.js';

test('a document is called by its name, else by how it begins, else untitled', () => {
  assert.equal(titleOf({name: 'Mine', text: 'Once'}), 'Mine');
  assert.equal(titleOf({name: '', text: ' Once\nupon '}), 'Once upon');
  assert.equal(titleOf({name: '', text: 'a'.repeat(49)}), `${'a'.repeat(48)}…`);
  assert.equal(titleOf({name: '', text: 'a'.repeat(48)}), 'a'.repeat(48));
  assert.equal(titleOf({name: '', text: ' '}), 'Untitled');
});

test('a title that is cut ends with a whole word', () => {
  const text = 'Eleanor kept the last of the honey in a jar of butterscotch glass';
  assert.equal(titleOf({name: '', text}), 'Eleanor kept the last of the honey in a jar of…');
  assert.equal(titleOf({name: '', text: `${'word '.repeat(9)}end and more`}), `${'word '.repeat(9)}end…`, 'the word that ends at the limit stays');
  assert.equal(titleOf({name: '', text: 'あ'.repeat(60)}), `${'あ'.repeat(48)}…`, 'a text without spaces is cut anywhere');
  assert.equal(titleOf({name: '', text: `See ${'x'.repeat(60)}`}), `See ${'x'.repeat(44)}…`, 'and so is a long word behind a short beginning');
});

test('a document from a link is told apart from the one that the link was made from', () => {
  assert.equal(linkName({text: 'The sea slept'}), 'The sea slept (from a link)');
  assert.equal(linkName({text: 'The sea slept', name: 'My story'}), 'My story (from a link)');
  assert.equal(linkName({text: 'The sea slept', name: 'My story (from a link)'}), 'My story (from a link)', 'a link to what a link brought');
  assert.equal(linkName({text: ' '}), '');
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
