import assert from 'node:assert/strict';
import {test} from 'node:test';

import * as sentences from '../../../../interface/tabs/highlights/highlight_sentences.js';

const {oddsAfterAlternative} = sentences;

// Without what keeps figures on one line.
const said = text => text.replaceAll('\u00a0', ' ');
const summary = entry => said(sentences.wordSummary(entry)), following = fit => said(sentences.followingSentence(fit));
const alternatives = entry => said(sentences.alternativesSentence(entry));

const entry = {ids: [12], place: 0, loss: Math.log(4), rank: 3, entropy: 2.345, seen_from: 0, token: ' keeper', end: 10, word: [3, 10]};

test('the summary of a word has its choice, odds, loss and entropy', () => {
  assert.equal(summary(entry), '“keeper”: 25 % · loss 2.00 bits · choice 3 · entropy 3.38 bits');
  assert.equal(summary({...entry, rank: 1234}), '“keeper”: 25 % · loss 2.00 bits · choice 1,234 · entropy 3.38 bits');
  assert.equal(said(sentences.wordSummary(entry, sentences.BIT_OF_LOSS)), '“keeper”: 25 % · loss 2.00 bits (50 % is 1 bit) · choice 3 · entropy 3.38 bits');
});

test('a word that the model excludes is impossible', () => {
  assert.equal(summary({...entry, loss: null}), '“keeper”: impossible · choice 3 · entropy 3.38 bits');
});

test('of a character of several tokens the odds are of all, the choice of one', () => {
  assert.equal(summary({...entry, ids: [12, 13, 14], place: 1, token: '🙂'}), '“🙂”: 25 % · loss 2.00 bits · token 2 of its 3: choice 3 · entropy 3.38 bits');
});

test('the summary says from which character the model has read', () => {
  assert.ok(summary({...entry, seen_from: 1233}).endsWith(' · read from character 1,234 on'));
  assert.ok(summary({...entry, ids: [1, 2], seen_from: 1233}).endsWith(' · read from character 1,234 on'));
});

test('the first token has no odds', () => {
  assert.equal(summary({...entry, rank: null}), '“keeper”: No text comes before it, so the model did not predict it.');
});

test('alternatives are one line with their odds', () => {
  const list = [{text: ' sea', probability: 0.25}, {text: null, probability: 0.1}, {text: null, end: true, probability: 0.02}, {text: '\n', probability: 0.01}];
  assert.equal(alternatives({...entry, alternatives: list}), 'sea… 25 % · ◌ 10 % · end 2 % · ↵ 1 %');
  assert.equal(alternatives({...entry, alternatives: []}), '');
});

// How the next words stand after an alternative that makes them so many times as likely.
const times = many => said(oddsAfterAlternative({logprob: Math.log(0.01 * many), own: Math.log(0.01)})).split(', ')[1];

test('the next words after an alternative have their odds, and how they compare', () => {
  assert.equal(oddsAfterAlternative({logprob: Math.log(0.02), own: Math.log(0.01)}), '2\u00a0%, 2\u00a0×\u00a0likelier');
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
  assert.equal(following({following: ' who watched', own: Math.log(0.25)}), 'Beside each alternative: its chance, then the chance of your next words, “who watched”, after it, and how much rarer or likelier they are there than after your own word (25 %).');
});

const expected = (text, more = {}) => ({...entry, alternatives: [{text, probability: 0.2, end: false, ...more}]});

test('the headline says what the model expected, and which of its choices the word was', () => {
  assert.equal(sentences.headline({...expected(' sea'), rank: 4617}), 'The model expected “sea…”; your word “keeper” was its 4,617th choice.');
  assert.equal(sentences.headline({...expected(' keeper', {id: 12}), rank: 1}), 'Your word “keeper” was the model’s first choice.');
  const ordinals = [2, 3, 4, 11, 12, 13, 21, 22, 23, 101, 111, 1012].map(rank => sentences.headline({...expected('a'), rank}).match(/its (\S+) choice/)[1]);
  assert.deepEqual(ordinals, ['2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '22nd', '23rd', '101st', '111th', '1,012th']);
});

test('the headline names a part of a word, and a part of a character', () => {
  assert.equal(sentences.headline(expected('s'), ' lightkeeper', ' light'), 'The model expected “s…” after “light”; “keeper” of your word “lightkeeper” was its 3rd choice.');
  assert.equal(sentences.headline(expected('s'), 'lightkeeper'), 'The model expected “s…”; “keeper” of your word “lightkeeper” was its 3rd choice.');
  assert.equal(sentences.headline({...expected('s'), token: '🙂', ids: [1, 2], place: 1}), 'The model expected “s…”; your word “🙂” was its 3rd choice at part 2 of 2.');
});

test('the headline names endings, signs that cannot be seen, and parts of characters', () => {
  const names = [[null, {end: true}], ['\n'], [null], [','], ['\n\n']].map(([text, more]) => sentences.headline(expected(text, more)).match(/expected (.*);/)[1]);
  assert.deepEqual(names, ['the end of the text', 'a line break', 'a part of a character', '“,”', 'a line break, line break']);
  assert.equal(sentences.headline({...expected(' sea'), token: '\n'}, '\n '), 'The model expected “sea…”; your word was its 3rd choice.');
  assert.equal(sentences.headline({...expected(' sea'), token: ','}, ','), 'The model expected “sea…”; your “,” was its 3rd choice.', 'a sign is no word');
});

test('an alternative is marked where its word may be longer, and one’s own token where its word is', () => {
  const label = (text, more = {}, own = entry) => sentences.alternativeLabel({id: 7, text, probability: 0.2, end: false, ...more}, own);
  assert.deepEqual([' non', ' sea', ','].map(text => label(text)), ['non…', 'sea…', '“,”']);
  assert.deepEqual([label(null, {end: true}), label(null), label('海')], ['end', '◌', '海']);
  assert.equal(label(' keeper', {id: 12}), 'keeper', 'the person’s word ends there');
  assert.equal(label(' light', {id: 12}, {...entry, token: ' light', word: [3, 15]}), 'light…');
});

test('an alternative that continues the word before it stands after its letters', () => {
  const two = [{id: 7, text: 'ies', probability: 0.2, end: false}, {id: 8, text: ' sea', probability: 0.1, end: false}, {id: 9, text: ',', probability: 0.1, end: false}];
  assert.deepEqual(two.map(one => sentences.alternativeLabel(one, entry, ' warm')), ['warm·ies…', 'sea…', '“,”']);
  assert.equal(sentences.alternativeLabel(two[0], entry, ' warm,'), 'ies…');
  const details = sentences.spokenDetails({entry: {...entry, ids: [3], place: 0, rank: 3, alternatives: two}, text: ' keeper', begun: '', before: 9, given: ' warm'}, [], false);
  assert.match(details, /^The model expected “warm·ies” or a longer word; your word “keeper”/);
  assert.match(details, /Alternatives: warm, continued by ies, or a longer word; sea, or a longer word; comma\.$/);
});

test('the headline says how much less likely a word was than the first choice, whatever its rank', () => {
  const end = times => said(sentences.headline({...expected(' sea'), excess: Math.log(times)})).split('3rd choice')[1];
  assert.deepEqual([1.2, 2.04, 37.4, 4567, 1e9].map(end), [
    ', nearly as likely.', ', 2 times less likely.', ', 37 times less likely.', ', 4,600 times less likely.', ', more than 100,000 times less likely.',
  ]);
  assert.match(said(sentences.headline({...expected(' sea'), excess: Math.log(370), rank: 1200})), /1,200th choice, 370 times less likely\.$/);
  assert.match(sentences.headline({...expected(' sea'), excess: 5, rank: 1}), /first choice\.$/);
  assert.match(sentences.headline({...expected('s'), excess: 5, token: '🙂', ids: [1, 2], place: 1}), /at part 2 of 2\.$/, 'the odds are those of both');
});

test('the headline of the first word says that there is nothing to expect', () => {
  assert.match(sentences.headline({...entry, rank: null, alternatives: []}), /^No text comes before this word/);
});

test('a screen reader says the details of a word without definitions, and signs by their names', () => {
  const word = {entry: {...expected(','), rank: 3}, text: ' keeper', begun: '', before: 9};
  const plain = sentences.spokenDetails(word, [], false), figures = sentences.spokenDetails(word, [], true);
  assert.equal(plain, 'The model expected “comma”; your word “keeper” was its 3rd choice. Alternatives: comma.');
  assert.equal(figures.replaceAll('\u00a0', ' '), 'The model expected “comma”; your word “keeper” was its 3rd choice. “keeper”: 25 % · loss 2.00 bits · choice 3 · entropy 3.38 bits. Alternatives: comma, 20 %.');
});

test('a screen reader says the alternatives of a token one by one, signs by their names, and where a word may be longer', () => {
  const two = [{id: 1, text: ',', end: false, probability: 0.2}, {id: 2, text: ' sea', end: false, probability: 0.1}];
  const after = {...entry, ids: [7], place: 0, alternatives: two};
  assert.equal(sentences.spokenAlternatives(after).replaceAll('\u00a0', ' '), 'comma 20 %; sea, or a longer word 10 %');
  const details = sentences.spokenDetails({entry: {...after, rank: 3}, text: ' keeper', begun: '', before: 9}, [], false);
  assert.match(details, /Alternatives: comma; sea, or a longer word\.$/);
  const fits = [{id: 1, drops_in: false}, {id: 2, drops_in: true}], spoken = figures => sentences.spokenDetails({entry: {...after, rank: 3}, text: ' keeper', begun: '', before: 9}, fits, figures);
  assert.match(spoken(false), /Alternatives: comma; sea, or a longer word, fits\. Where one fits, your next words can stay\.$/, 'what the card does not show is not said');
  assert.match(spoken(true), /comma, 20.%; sea, or a longer word, 10.%, fits/);
  const words = {...after, rank: 3, alternatives: [two[1], {id: 3, text: ' ship', end: false, probability: 0.05}]};
  const spokenOfWords = sentences.spokenDetails({entry: words, text: ' keeper', begun: '', before: 9}, [{id: 2, drops_in: true}, {id: 3, drops_in: true}], false);
  assert.match(spokenOfWords, /Alternatives, each or a longer word: sea, fits; ship, fits\. Where one fits, your next words can stay\.$/, 'once for all of them');
});

test('near the beginning of a text the card says why a word is a surprise there', () => {
  const why = (before, rank = 40) => sentences.beginningSentence({rank}, before);
  assert.equal(why(1), 'Only 1 word stands before it, so the model knows little yet: most words are a surprise here.');
  assert.equal(why(2), 'Only 2 words stand before it, so the model knows little yet: most words are a surprise here.');
  assert.match(why(0), /^No word stands before it, so /);
  assert.deepEqual([why(3), why(Infinity), why(1, 1), why(0, null)], ['', '', '', ''], 'further on, expected, or not predicted');
  assert.match(sentences.beginningSentence({rank: 40}, 0, 'Photos'), /^Only “Photos” stands before it/);
});

// A word at which the model's first choice was so many times likelier, and which has this chance itself.
const marked = (rank, times, chance = 0.001) => {
  const excess = times === Infinity ? null : Math.log(times);
  return {rank, entries: [], text: 'oes', begun: '', entry: {excess, token: 'oes', loss: times === Infinity ? null : -Math.log(chance), rank: 3}};
};
const never = {...marked(Infinity, 1), entry: {excess: 0, loss: 1, rank: 1}};
const threshold = (words, count) => said(sentences.thresholdSentence(words, count));

test('the threshold is how much likelier the first choice was than the least surprising of the shown words', () => {
  const words = [marked(1, 499), never, marked(0, 4617.9), marked(2, 2.57)], first = 'its first choice was';
  assert.equal(threshold(words, 1), `of 3 that the model did not expect. There ${first} at least 4,600 times likelier`);
  assert.equal(threshold(words, 2), `of 3 that the model did not expect. At each ${first} at least 490 times likelier`);
  assert.equal(threshold(words, 3), `all that the model did not expect: ${first} at least 2.5 times likelier`);
  assert.equal(threshold(words, 0), 'of 3 that the model did not expect');
  assert.equal(threshold([marked(0, 10)], 1), `the only one that the model did not expect: ${first} at least 10 times likelier`);
  assert.equal(threshold([marked(0, 1.04)], 1), `the only one that the model did not expect: ${first} at least a little likelier`);
  assert.equal(threshold([marked(0, 3e5)], 1), `the only one that the model did not expect: ${first} more than 100,000 times likelier`);
  assert.equal(threshold([marked(0, Infinity)], 1), `the only one that the model did not expect: ${first} more than 100,000 times likelier`);
  assert.equal(threshold([never], 0), '');
});

test('where early words are not shown, the threshold is that of the words after them', () => {
  const words = [{...marked(2, 900), early: true}, marked(1, 30), marked(0, 499)], first = 'its first choice was';
  assert.equal(threshold(words, 1), `of 3 that the model did not expect. There ${first} at least 490 times likelier`);
  assert.match(threshold(words, 2), /expect\. At each its first choice was at least 30 times/);
  assert.equal(threshold(words, 3), `all that the model did not expect: ${first} at least 30 times likelier`);
  assert.equal(threshold([{...marked(3, 20), early: true}, ...words], 3), `of 4 that the model did not expect. At each ${first} at least 30 times likelier`);
  assert.equal(sentences.notableCount(words, 10), 2, 'at first, no early word is marked');
});

test('a bound is at most the factor, and at least nine tenths of it', () => {
  for (let times = 1.1; times < 9e4; times *= 1.07) {
    const bound = Number(threshold([marked(0, times)], 1).match(/at least (\S+) times/)[1].replace(',', ''));
    assert.ok(bound <= times + 1e-9 && bound > 0.9 * times, `${bound} of ${times}`);
  }
});

test('at first words are marked whose first choice was at least ten times likelier, and never more than so many', () => {
  const words = [marked(3, 9.99), marked(0, Infinity), never, marked(2, 10.01), marked(1, 500)];
  assert.deepEqual([sentences.notableCount(words, 10), sentences.notableCount(words, 2)], [3, 2]);
  assert.equal(sentences.notableCount([never, marked(0, 1.2)], 10), 0);
});

test('whether an alternative fits is said in plain words, and what that means in a sentence', () => {
  const phrase = (fits, sentence = '-') => sentences.fitPhrase({drops_in: fits, sentence});
  assert.deepEqual([phrase(true), phrase(false)], ['fits', '']);
  assert.equal(phrase(null, 'the text would end here'), 'the text would end here');
  assert.equal(sentences.fitMeaning({following: ' who watched'}),
    'An alternative fits if your next words, “who watched”, are at most 4 times less likely after it than after your own word.');
});

test('the figure of a highlighted word is the chance of the part that its card shows', () => {
  assert.equal(said(sentences.chanceFigure(marked(1, 2, 0.02))), '2 %');
  assert.equal(said(sentences.chanceFigure(marked(1, Infinity))), '0 %');
  assert.equal(sentences.chanceFigure(never), '');
  const part = marked(1, 2, 0.02);
  assert.equal(said(sentences.chanceFigure({...part, text: 'Volcanoes', begun: 'Volcan'})), '…oes 2 %', 'the part is named');
  assert.equal(said(sentences.chanceFigure({...part, text: 'oesophagus'})), 'oes… 2 %');
  assert.equal(said(sentences.chanceFigure({...part, text: 'Volcanoeses', begun: 'Volcan'})), '…oes… 2 %');
});

test('what is announced says how many places are marked, words and signs, of how many, and by which threshold', () => {
  const words = [marked(1, 50), never, marked(0, 1000), marked(2, 4)], first = 'its first choice was';
  const announced = count => said(sentences.markedSentence(words, count));
  assert.equal(announced(2), `2 places are marked, of 3 that the model did not expect. At each ${first} at least 50 times likelier.`);
  assert.equal(announced(1), `1 place is marked, of 3 that the model did not expect. There ${first} at least 1,000 times likelier.`);
  assert.equal(announced(0), '0 places are marked, of 3 that the model did not expect.');
  assert.equal(sentences.markedSentence([never], 0), '', 'there is nothing to mark');
});

test('a highlight is announced with its number, the whole word and what the model expected', () => {
  const word = {text: ' keeper', before: 9, entry: {...entry, alternatives: [{text: ' sea'}]}};
  assert.equal(sentences.highlightSentence(word, 3, 10), 'Highlight 3 of 10. The model expected “sea…”; your word “keeper” was its 3rd choice.');
  assert.match(sentences.highlightSentence({...word, before: 1}, 1, 10), /3rd choice\. Only 1 word stands before it, so /);
});

test('the branches at a word name the word', () => {
  assert.match(sentences.replacementSentence(' school'), /^What the model would have written in place of “school”, which may be among the rows\. A row’s share is /);
});
