import assert from 'node:assert/strict';
import {test} from 'node:test';
import {withConfirmation, withRows, withSentence} from '../../../../interface/web/core/confirmations.js';

const all = (...actions) => actions.reduce((list, [kind, text]) => withConfirmation(list, {kind, text}), []);

test('each action is a short sentence before what follows it', () => {
  assert.equal(withSentence([], 'Rows.'), 'Rows.');
  assert.equal(withSentence(all(['banned', ' isn']), 'Rows.'), 'Banned: “isn”. Rows.');
  assert.equal(withSentence(all(['undone', 'a'], ['undone', 'b'])), 'Undone: “a”. Undone: “b”.');
  const texts = {restored: 'Undone: “a” is back.', removedAgain: 'Redone: “a” is removed again.'};
  for (const [kind, sentence] of Object.entries(texts)) assert.equal(withSentence(all([kind, 'a'])), sentence);
  assert.equal(withSentence(all(['removedAgain', ''])), 'Redone.');
  const conversation = withSentence(all(['conversationRestored', ''], ['conversationRestored', 'a']));
  assert.equal(conversation, 'Undone: the conversation is back. Undone: the conversation is back, with “a” in the text box.');
  const steered = {towards: 'Steered towards the word “a”.', avoid: 'Steered away from the word “a”.', unsteered: 'Rows are no longer steered by a word.'};
  for (const [kind, sentence] of Object.entries(steered)) assert.equal(withSentence(all([kind, 'a'])), sentence);
  const others = {bannedAgain: 'Undone: “a” is banned again.', allowedAgain: 'Redone: “a” is no longer banned.', unbanned: 'Undone: the ban of “a”.', rebanned: 'Redone: the ban of “a”.', allowed: 'No longer banned: “a”.', redone: 'Redone: “a”.'};
  for (const [kind, sentence] of Object.entries(others)) assert.equal(withSentence(all([kind, 'a'])), sentence);
  assert.equal(withSentence(all(['undone', '']), ''), 'Undone.');
  assert.equal(withSentence(all(['lost'])), 'The row that you changed is gone.');
  assert.equal(withSentence(all(['leftOut'])), 'The row that you changed is left out until the word to go towards is removed.');
});

test('the text of a changed row is said only where no rows follow, which hold it', () => {
  const list = withConfirmation([], {kind: 'changed', text: 'row 5', now: 'on a hill'});
  assert.equal(withSentence(list), 'Changed: row 5 is now “on a hill”.');
  assert.equal(withSentence(list, 'Paused.'), 'Changed: row 5 is now “on a hill”. Paused.');
  assert.equal(withRows(list, 'Rows.'), 'Changed: row 5. Rows.');
  const again = withConfirmation([], {kind: 'changedAgain', text: 'row 5', now: 'on a hill'});
  assert.equal(withSentence(again), 'Redone: the change to row 5, which is now “on a hill”.');
});

test('texts that are inserted one after the other are one', () => {
  assert.equal(withSentence(all(['inserted', ' there'], ['inserted', '’s a place'])), 'Inserted: “there’s a place”.');
  assert.equal(withSentence(all(['inserted', ' a'], ['undone', ' a'], ['inserted', ' b'])), 'Inserted: “a”. Undone: “a”. Inserted: “b”.');
});

test('a message has the last four actions, and of a long text its beginning', () => {
  assert.equal(withSentence(all(...['a', 'b', 'c', 'd', 'e'].map(text => ['undone', text]))), 'Undone: “b”. Undone: “c”. Undone: “d”. Undone: “e”.');
  const sentence = withSentence(all(['undone', 'word '.repeat(1000)]));
  assert.ok(sentence.length < 150 && sentence.endsWith(', ellipsis”.'), sentence);
  assert.equal(withSentence(all(['inserted', '\n'])), 'Inserted: “line break”.');
  assert.equal(withSentence(all(['inserted', '.\n\nI was'])), 'Inserted: “full stop, line break, line break, I was”.');
});
