import assert from 'node:assert/strict';
import {test} from 'node:test';

import {COLUMNS, explainedFigures} from '../../../../interface/tabs/internals/figure_meanings.js';
import {tokenFacts, tokenSummary} from '../../../../interface/tabs/internals/token_figures.js';

const spelled = {7: {text: ' sea', bytes: null, ended: false}, 8: {text: '', bytes: 'F0', ended: true}};
const rows = [{id: 7, text: ' sea · x', bytes: null, came: true, rank: 1, raw: {p: 0.5}, processed: {p: 0.25}}];

test('every figure of a token has a meaning, and the line stays as it is', () => {
  const lines = [
    tokenFacts({spelled}, {id: 8, message: null}, 3, ['user']), tokenFacts({spelled}, {id: 7, message: null}, 0, null),
    tokenSummary({entropies: [1]}, {id: 7, rank: 1}, 1, rows),
  ];
  for (const line of lines) {
    const parts = explainedFigures(line);
    assert.equal(parts.map(({text}) => text).join(' · '), line);
    for (const {text, meaning} of parts) assert.match(meaning, /^[A-Z].+[.]$/, text);
  }
});

test('words about a message and about the likeliest token need no meaning', () => {
  const [, , message] = explainedFigures(tokenFacts({spelled}, {id: 7, message: 0}, 3, ['user']));
  assert.deepEqual(message, {text: "message 1, the user's", meaning: '', term: ''});
  const [likeliest, entropy] = explainedFigures(tokenSummary({entropies: [1]}, {id: null, rank: null}, 1, rows));
  assert.deepEqual([likeliest.meaning, entropy.text], ['', 'entropy of the raw probabilities 1.44 bits'], 'a dot in a token is no separator');
});

test('a figure has the term of its column in the help, whatever its number', () => {
  const terms = line => explainedFigures(line).map(({term}) => term);
  assert.deepEqual(terms(tokenFacts({spelled}, {id: 8, message: null}, 3, ['user'])), ['Position', 'Id', '', '', '']);
  assert.deepEqual(terms(tokenSummary({entropies: [1]}, {id: 7, rank: 1}, 1, rows)), ['Choice', 'Raw', 'Processed', 'Entropy']);
});

test('every column has a meaning', () => {
  for (const [, meaning] of COLUMNS) assert.match(meaning, /[.]$/);
});
