import assert from 'node:assert/strict';
import {test} from 'node:test';

import * as figures from '../../../../interface/tabs/internals/token_figures.js';
import {Dice} from '../../../support/scripts/dice.js';
import {nucleus, order, packed, randomRow} from '../../../support/scripts/rows.js';

const {tokenFacts, oddsOfRest, oddsRows, processingSentence, spokenSummary, tokenOrigin, tokensSentence} = figures;

// Without what keeps figures on one line.
const summary = (...facts) => figures.tokenSummary(...facts).replaceAll('\u00a0', ' ');

const row = randomRow(new Dice(5), {vocabulary: 80}), likeliest = order(row);
const CAME = likeliest[20];

// A view of a first token and of one that came after it, with its three likeliest alternatives.
function viewOf({id = CAME, rank = 21} = {}) {
  const ids = [...likeliest.slice(0, 3), ...(id === null ? [] : [id])];
  const alternatives = ids.map(one => [one, row[one]]);
  const spelled = Object.fromEntries([...row.keys()].map(one => [one, {text: ` w${one}`, bytes: null, ended: false}]));
  return {tokens: [{id: 1, text: 'a', message: 0}, {id, rank, message: 0, text: 'b', alternatives}], nodes: [packed(row)], entropies: [1.234], spelled};
}

const near = (found, wanted) => assert.ok(Math.abs(found - wanted) <= 0.01 * wanted, `${found}, and not ${wanted}`);

test('tokens of the template and the tokenizer belong to no message', () => {
  assert.equal(tokenOrigin(null, ['user']), 'put there by the template');
  assert.equal(tokenOrigin(null, null), 'put before every text by the tokenizer');
  assert.equal(tokenOrigin(0, null), 'of your text');
  assert.equal(tokenOrigin(1, ['user', 'assistant']), "message 2, the assistant's");
});

test('the facts of a token are its position, id, message, and what is special', () => {
  const view = viewOf(), [token] = view.tokens;
  assert.equal(tokenFacts(view, token, 0, null), 'position 0 · id 1 · of your text');
  view.spelled[1] = {bytes: 'F0', ended: true};
  assert.equal(tokenFacts(view, token, 0, ['user']), "position 0 · id 1 · message 1, the user's · bytes of a part of a character · an ending");
});

test('the facts of the token to come say that nothing is written yet', () => {
  assert.equal(tokenFacts(viewOf(), {id: null}, 7, null), 'position 7 · nothing is written there yet');
});

test('of the token after a word it is said that the Write tab counts longer forms of that word too', () => {
  const after = (text, roles = null) => figures.unlikeWriteSentence({tokens: [{id: 1, text}, {id: null, text: ''}]}, 1, roles);
  assert.equal(after(' careful'), 'The tab Write also counts longer forms of your last word, “careful”, so its figures are others.');
  for (const text of [' careful,', 'careful ', '海', '']) assert.equal(after(text), '', text);
  assert.equal(after(' careful', ['user']), '', 'a template stands between');
  assert.equal(figures.unlikeWriteSentence({tokens: [{id: 1, text: 'a'}, {id: 2, text: ' b'}]}, 1, null), '', 'that token is written');
});

test('the settings that odds are processed with are named', () => {
  assert.equal(processingSentence({temperature: 1, topP: 1}), 'temperature 1 and top-p 1 leave them as they are');
  assert.equal(processingSentence({temperature: 0.5, topP: 1}), 'at temperature 0.5, top-p 1');
  assert.equal(processingSentence({temperature: 1, topP: 0.9}), 'at temperature 1, top-p 0.9');
  assert.equal(processingSentence({temperature: 0, topP: 0.9}), 'at temperature 0, where the likeliest is certain, top-p 0.9');
});

test('alternatives and the written token have raw and processed odds of the whole row', () => {
  for (const [temperature, topP] of [[1, 1], [0.5, 1], [1, 0.9], [1.5, 0.7]]) {
    const raw = nucleus(row, 1, 1).odds, processed = nucleus(row, temperature, topP).odds;
    for (const one of oddsRows(viewOf(), 1, {temperature, topP})) {
      near(one.raw.p, raw[one.id]);
      near(one.processed.p, processed[one.id]);
      assert.deepEqual([one.text, one.bytes, one.ended], [` w${one.id}`, null, false]);
    }
  }
});

test('at temperature 1 and top-p 1 both odds are the same', () => {
  for (const one of oddsRows(viewOf(), 1, {temperature: 1, topP: 1})) assert.deepEqual(one.processed, one.raw);
});

test('alternatives have their positions, and the written token its own rank', () => {
  assert.deepEqual(oddsRows(viewOf(), 1, {temperature: 1, topP: 1}).map(({came, rank}) => [came, rank]), [[false, 1], [false, 2], [false, 3], [true, 21]]);
  const first = oddsRows(viewOf({id: likeliest[1], rank: 2}), 1, {temperature: 1, topP: 1});
  assert.deepEqual(first.map(({came, rank}) => [came, rank]), [[false, 1], [true, 2], [false, 3], [true, 2]]);
});

test('a token that the model rules out is impossible', () => {
  const view = viewOf();
  view.tokens[1].alternatives[3][1] = null;
  for (const wanted of [{temperature: 1, topP: 1}, {temperature: 0.5, topP: 1}]) {
    const {raw, processed} = oddsRows(view, 1, wanted).at(-1);
    assert.deepEqual([raw, processed], [{p: 0, bound: false}, {p: 0, bound: false}]);
  }
});

test('the summary of a token has its choice, odds and entropy', () => {
  const view = viewOf(), rows = [{raw: {p: 0.5}, processed: {p: 0.6}, came: false}, {raw: {p: 0.25}, processed: {p: 0.125}, came: true}];
  assert.equal(summary(view, {id: CAME, rank: 1234}, 1, rows), "Choice 1,234 of the model · raw 25 % · processed 13 % · entropy of the raw probabilities 1.78 bits");
});

test('the summary of the token to come names the likeliest token', () => {
  const rows = [{text: ' sea', bytes: null, processed: {p: 0.25}}];
  assert.equal(summary(viewOf(), {id: null}, 1, rows), '“␣sea” is the likeliest, with 25 % · entropy of the raw probabilities 1.78 bits');
});

test('the rest is what the rows leave, a lower bound if a row has a bound', () => {
  const rows = [{raw: {p: 0.5, bound: false}, processed: {p: 0.25, bound: true}}, {raw: {p: 0.125, bound: false}, processed: {p: 0, bound: false}}];
  assert.deepEqual(oddsOfRest(rows, 'raw'), {p: 0.375, atLeast: false});
  assert.deepEqual(oddsOfRest(rows, 'processed'), {p: 0.75, atLeast: true});
});

test('a summary is announced as a sentence with one full stop', () => {
  const view = viewOf(), next = viewOf({id: null}), spoken = (shown, index) => spokenSummary(shown, index, {temperature: 1, topP: 1}).replaceAll('\u00a0', ' ');
  view.tokens[1].text = ' b,';
  assert.match(spoken(view, 1), /^“space, b, comma”: Choice 21 of the model, raw [\d.]+ %, processed [\d.]+ %, entropy of the raw probabilities 1.78 bits\.$/);
  assert.match(spoken(next, 1), new RegExp(`^What would come next: “space, w${likeliest[0]}” is the likeliest, with `));
  assert.equal(spoken(view, 0), '“a”: No text comes before it, so the model did not predict it.');
});

test('the sentence above the tokens says how many there are and what to do', () => {
  assert.equal(tokensSentence(22, 1), '22 tokens, read in 1 pass. Choose a token to see what the model expected there.');
  assert.equal(tokensSentence(1, 3), '1 token, read in 3 passes. Choose a token to see what the model expected there.');
  assert.equal(tokensSentence(1200, 0), '1,200 tokens, all known from before. Choose a token to see what the model expected there.');
});
