import assert from 'node:assert/strict';
import {test} from 'node:test';

import {NEXT_TOKEN_LABEL, quotedLabel, spokenToken, tokenLabel, tokenInText} from '../../../../interface/tabs/internals/visible_signs.js';

test('a token is named by its text, with all white space as signs', () => {
  assert.equal(tokenLabel({text: ' a b\n', bytes: null}), '␣a␣b↵');
});

test('a part of a character is named by its bytes', () => assert.equal(tokenLabel({text: '', bytes: 'F0 9F'}), 'F0 9F'));

test('a token in its text is written as the characters that it adds', () => {
  assert.equal(tokenInText({text: ' Once'}, {text: 'Once', bytes: null}), '␣Once');
});

test('a token that adds no characters has its label', () => {
  assert.equal(tokenInText({text: ''}, {text: '<|end|>', bytes: null}), '<|end|>');
  assert.equal(tokenInText({text: '🙂'}, {text: '', bytes: '99 82'}), '99 82');
});

test('the signs of white space alone are named beside it', () => {
  const quoted = ['\n', ' ', ' \n', ' sea', '\u00a0'].map(text => quotedLabel(tokenLabel({text, bytes: null}), text));
  assert.deepEqual(quoted, ['“↵” (line break)', '“␣” (space)', '“␣↵” (space, line break)', '“␣sea”', '“U+00A0”']);
});

test('a token is said with its signs and the space before it by their names', () => {
  const said = [' love', 'love', '.', ' ,', ' ', '  a', '\n\n', ' a\n'].map(text => spokenToken({text}, {text, bytes: null}));
  assert.deepEqual(said, ['space, love', 'love', 'full stop', 'space, comma', 'space', 'space, space, a', 'line break, line break', 'space, a, line break']);
  assert.equal(spokenToken({text: '🙂'}, {text: '', bytes: '99 82'}), 'bytes 99 82');
  assert.equal(spokenToken({text: ''}, {text: '', bytes: '20 F0'}), 'space, byte F0');
  assert.equal(spokenToken({text: ''}, {text: '<|end|>', bytes: null}), '<|end|>');
});

test('the token to come is a blank', () => assert.equal(NEXT_TOKEN_LABEL, '[____]'));
