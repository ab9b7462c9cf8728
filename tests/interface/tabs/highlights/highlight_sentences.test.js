import assert from 'node:assert/strict';
import {test} from 'node:test';

import * as sentences from '../../../../interface/tabs/highlights/highlight_sentences.js';

const {oddsAfterAlternative} = sentences;

// Without what keeps figures on one line.
const said = text => text.replaceAll('\u00a0', ' ');
const summary = entry => said(sentences.wordSummary(entry)), following = fit => said(sentences.followingSentence(fit));
const alternatives = entry => said(sentences.alternativesSentence(entry));

const entry = {ids: [12], place: 0, loss: Math.log(4), rank: 3, entropy: 2.345, seen_from: 0, token: ' keeper'};

test('the summary of a word has its choice, odds, loss and entropy', () => {
  assert.equal(summary(entry), '“keeper”: choice 3, 25 % · loss 1.39 · entropy 2.35');
  assert.equal(summary({...entry, rank: 1234}), '“keeper”: choice 1,234, 25 % · loss 1.39 · entropy 2.35');
});

test('a word that the model excludes is impossible', () => {
  assert.equal(summary({...entry, loss: null}), '“keeper”: choice 3, impossible · entropy 2.35');
});

test('of a character of several tokens the odds are of all, the choice of one', () => {
  assert.equal(summary({...entry, ids: [12, 13, 14], place: 1, token: '🙂'}), '“🙂”: 25 % · loss 1.39 · token 2 of its 3: choice 3 · entropy 2.35');
});

test('the summary says from which character the model has read', () => {
  assert.ok(summary({...entry, seen_from: 1233}).endsWith(' · read from character 1,234 on'));
  assert.ok(summary({...entry, ids: [1, 2], seen_from: 1233}).endsWith(' · read from character 1,234 on'));
});

test('the first token has no odds', () => {
  assert.equal(summary({...entry, rank: null}), '“keeper”: No text comes before it, so the model has no odds for it.');
});

test('alternatives are one line with their odds', () => {
  const list = [{text: ' sea', probability: 0.25}, {text: null, probability: 0.1}, {text: null, end: true, probability: 0.02}, {text: '\n', probability: 0.01}];
  assert.equal(alternatives({alternatives: list}), 'sea 25 % · ◌ 10 % · end 2 % · ↵ 1 %');
  assert.equal(alternatives({alternatives: []}), '');
});

// How the next words stand after an alternative that makes them so many times as likely.
const times = many => said(oddsAfterAlternative({logprob: Math.log(0.01 * many), own: Math.log(0.01)})).split(', ')[1];

test('the next words after an alternative have their odds, and how they compare', () => {
  assert.equal(oddsAfterAlternative({logprob: Math.log(0.02), own: Math.log(0.01)}), 'then\u00a02\u00a0%, 2\u00a0×\u00a0likelier');
  assert.deepEqual([0.5, 0.1, 2.5, 9.4, 11.4].map(times), ['2 × rarer', '10 × rarer', '2.5 × likelier', '9.4 × likelier', '11 × likelier']);
});

test('odds that differ by less than a twentieth are as likely', () => {
  assert.deepEqual([1, 1.04, 0.97, 1.06].map(times), ['as likely', 'as likely', 'as likely', '1.1 × likelier']);
});

test('comparisons end at a hundred thousand', () => {
  assert.deepEqual([1.2e4, 9.9e4, 1.01e5, 1e-6].map(times), ['12,000 × likelier', '99,000 × likelier', '> 100,000 × likelier', '> 100,000 × rarer']);
});

test('without both odds, nothing is said of the next words', () => {
  assert.equal(oddsAfterAlternative({logprob: null, own: -1}), '');
  assert.equal(oddsAfterAlternative({logprob: -1, own: null}), '');
});

test('the next words are named once, with their odds after the word that was written', () => {
  assert.equal(following({following: ' who watched', own: Math.log(0.25)}), 'Then: your next words, “who watched”. After your own word 25 %.');
});
