import assert from 'node:assert/strict';
import {test} from 'node:test';

import {EMPTY_CONVERSATION, ROLE_NAMES, OTHER_ROLE, conversationReviver, conversationFields, turnMoments, allMessages} from '../../../../interface/tabs/assistant/conversation_state.js';

const message = (role, content) => ({role, content, spans: [[0, 1]]});
const earlier = {messages: [message('user', 'Hello'), message('assistant', 'Hi')], role: 'user'};

test('a conversation begins without messages, with the user', () => assert.deepEqual(EMPTY_CONVERSATION, {messages: [], role: 'user'}));

test('the two roles follow each other', () => {
  assert.deepEqual([OTHER_ROLE.user, OTHER_ROLE.assistant, ROLE_NAMES.user, ROLE_NAMES.assistant], ['assistant', 'user', 'User', 'Assistant']);
});

test('a request holds the messages without their spans, and whose turn it is', () => {
  assert.deepEqual(conversationFields(earlier), {messages: [{role: 'user', content: 'Hello'}, {role: 'assistant', content: 'Hi'}], role: 'user'});
});

test('the whole conversation has the message in progress at its end', () => {
  assert.deepEqual(allMessages({earlier, text: 'Well'}), [
    {role: 'user', content: 'Hello'}, {role: 'assistant', content: 'Hi'}, {role: 'user', content: 'Well'},
  ]);
});

test('equal conversations are one object after they are read from JSON', () => {
  const history = {now: earlier, before: earlier, other: {...earlier, role: 'assistant'}, blank: EMPTY_CONVERSATION};
  const read = JSON.parse(JSON.stringify(history), conversationReviver());
  assert.deepEqual(read, history);
  assert.equal(read.now, read.before);
  assert.notEqual(read.now, read.other);
  assert.equal(read.blank, EMPTY_CONVERSATION);
});

test('values without messages are read unchanged', () => {
  const kept = {text: 'a', list: [{b: 1}, null, {b: 1}], nothing: null}, read = JSON.parse(JSON.stringify(kept), conversationReviver());
  assert.deepEqual(read, kept);
  assert.notEqual(read.list[0], read.list[2]);
});

const moment = (kind, more = {}) => ({kind, text: 'text', before: 'before', time: 1, ...more});

test('turns and abandoned texts are listed', () => {
  const moments = ['accepted', 'undone', 'left', 'send', 'edit', 'anew', 'reenter'].map(kind => moment(kind));
  assert.deepEqual(turnMoments(moments).map(({kind}) => kind), ['left', 'send', 'edit', 'anew', 'reenter']);
});

test('a moment without text and messages is not listed', () => {
  assert.deepEqual(turnMoments([moment('send', {text: ''}), moment('send', {text: '', earlier: EMPTY_CONVERSATION})]), []);
  assert.equal(turnMoments([moment('send', {text: '', earlier})]).length, 1);
});

test('a moment is described by its last message and how many came before', () => {
  const described = more => turnMoments([moment('send', more)]).map(({before, text}) => [before, text])[0];
  assert.deepEqual(described({earlier, text: 'Well'}), ['2 messages, then User:', 'Well']);
  assert.deepEqual(described({earlier, text: ''}), ['1 message, then Assistant:', 'Hi']);
  assert.deepEqual(described({earlier: {messages: [], role: 'assistant'}, text: 'I'}), ['Assistant:', 'I']);
  assert.deepEqual(described({}), ['before', 'text']);
});

test('the rest of a described moment stays as it is', () => {
  assert.deepEqual(turnMoments([moment('left', {index: 3, earlier})])[0], {kind: 'left', index: 3, time: 1, earlier, before: '2 messages, then User:', text: 'text'});
});
