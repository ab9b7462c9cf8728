import assert from 'node:assert/strict';
import {test} from 'node:test';

import {charactersOfSeveralTokens, tokenLines} from '../../../../interface/tabs/internals/token_lines.js';

// A view of tokens [text, bytes of a part of a character or null]; the token to come is the last one.
function viewOf(...tokens) {
  const spelled = Object.fromEntries(tokens.map(([text, bytes = null], id) => [id, {text, bytes, ended: false}]));
  const all = tokens.map(([text, , message = 0], id) => ({id, text, message}));
  return {tokens: [...all, {id: null, text: '', message: null}], spelled};
}

const texts = lines => lines.map(({stretches}) => stretches.map(({text, tokens}) => [text, tokens]));

test('the tokens of one line are in one line, with the one to come at its end', () => {
  const lines = tokenLines(viewOf(['Once'], [' upon']));
  assert.deepEqual(texts(lines), [[['Once', [0]], [' upon', [1]]]]);
  assert.deepEqual(lines.map(({tokens}) => tokens), [[0, 1, 2]]);
});

test('a line ends with a line break', () => {
  const lines = tokenLines(viewOf(['one'], ['\n'], ['two\n'], ['three']));
  assert.deepEqual(lines.map(({tokens}) => tokens), [[0, 1], [2], [3, 4]]);
  assert.deepEqual(texts(lines), [[['one', [0]], ['\n', [1]]], [['two\n', [2]]], [['three', [3]]]]);
});

test('a line break at the end begins no line of its own for the token to come', () => {
  assert.deepEqual(tokenLines(viewOf(['one'], ['\n'])).map(({tokens}) => tokens), [[0, 1, 2]]);
  assert.deepEqual(tokenLines(viewOf(['one'], ['\n'], ['\n'])).map(({tokens}) => tokens), [[0, 1], [2, 3]]);
});

test('a text without tokens is one line with the token to come', () => {
  assert.deepEqual(tokenLines(viewOf()), [{stretches: [], tokens: [0]}]);
});

test('a character of several tokens is a stretch of all of them', () => {
  const lines = tokenLines(viewOf(['a'], ['', 'F0 9F'], ['', '99'], ['🙂', '82'], ['b']));
  assert.deepEqual(texts(lines), [[['a', [0]], ['🙂', [1, 2, 3]], ['b', [4]]]]);
});

test('a token that ends one character and begins another belongs to both', () => {
  const lines = tokenLines(viewOf(['', 'F0 9F 99'], ['🙂', '82 F0'], ['', '9F 99'], ['🙂', '82'], ['b']));
  assert.deepEqual(texts(lines), [[['🙂', [0, 1]], ['🙂', [1, 2, 3]], ['b', [4]]]]);
});

test('bytes that lack their last one begin a character that the next token continues', () => {
  const goesOn = bytes => texts(tokenLines(viewOf(['x', bytes], ['y', '82'])))[0][1][1].length === 2;
  const open = ['C3', 'DF', 'E2', 'E2 82', 'E2 9F', 'E2 AF', 'E2 BF', 'F0', 'F0 9F', 'F0 9F 99', '82 C3', '41 F0 9F', 'F0 9F 99 82 C3'];
  const closed = ['82', 'C3 A9', 'E2 82 AC', 'F0 9F 99 82', '41', '41 82', 'AC3', 'E2 C3 82', 'F0 41', 'E2 41', 'C3 41'];
  for (const bytes of open) assert.ok(goesOn(bytes), bytes);
  for (const bytes of closed) assert.ok(!goesOn(bytes), bytes);
});

test('a token without characters and bytes belongs to no stretch', () => {
  const lines = tokenLines(viewOf(['', null], ['a']));
  assert.deepEqual([texts(lines), lines[0].tokens], [[[['a', [1]]]], [0, 1, 2]]);
});

test('tokens of the template are marked', () => {
  const lines = tokenLines(viewOf(['<user>', null, null], ['Hi', null, 0]));
  assert.deepEqual(lines[0].stretches.map(({template}) => template), [true, false]);
});

test('a character of several tokens is found with them, and no other is', () => {
  const [line] = tokenLines(viewOf(['a'], ['', 'F0 9F'], ['', 'A6'], ['🦊', '8A'], [' b'], ['', 'E4 BD'], ['你', 'A0']));
  assert.deepEqual(charactersOfSeveralTokens(line), [{text: '🦊', tokens: [1, 2, 3]}, {text: '你', tokens: [5, 6]}]);
  assert.deepEqual(charactersOfSeveralTokens(tokenLines(viewOf(['one'], [' é']))[0]), []);
});

test('characters that share a token are found together', () => {
  const [line] = tokenLines(viewOf(['', 'E4 BD'], ['你', 'A0 F0 9F'], ['🦊', 'A6 8A']));
  assert.deepEqual(charactersOfSeveralTokens(line), [{text: '你🦊', tokens: [0, 1, 2]}]);
});
