import assert from 'node:assert/strict';
import {test} from 'node:test';

import {NO_GUESSES, addGuess, bitsOf, checkingSentence, droppedSentence, guessSentence, placeOf, placesFrom, probabilityOfGuess, rowOfGuess, rowPhrase, scoreFrom, scoreParts} from '../../../../interface/web/core/guess_score.js';

test('one half is one bit, and certainty none', () => {
  assert.deepEqual([1, 0.5, 0.25, 1 / 1024].map(bitsOf), [0, 1, 2, 10]);
  assert.ok(Object.is(bitsOf(1), 0), 'not minus nothing');
  assert.equal(bitsOf(1.0000001), 0);
});

const row = (...pieces) => ({pieces: pieces.map(([text, ends]) => ({text, ends}))});

test('a guess is among the rows where one begins with it as a word', () => {
  const rows = [row([' kee', 0], ['per', 1], [' saw', 1]), row(['per', 1]), row([' sea', 0])];
  assert.equal(rowOfGuess(rows, [' keeper', 'keeper']), 0);
  assert.equal(rowOfGuess(rows, [' kee', 'kee']), -1);
  assert.equal(rowOfGuess(rows, [' keeper saw']), -1);
  assert.equal(rowOfGuess(rows, ['x', 'per']), 1);
  assert.equal(rowOfGuess(rows, [' sea']), 2);
  assert.equal(rowOfGuess([], [' sea']), -1);
  assert.equal(rowOfGuess([row()], ['']), 0, 'an ending inserts nothing');
});

test('a guess that a longer word of a row begins with is said to be that', () => {
  const rows = [row([' dark', 1]), row([' shadow', 0], ['y', 1], [' figure', 1]), row([' shad', 0])], of = guess => rowPhrase(rows, [` ${guess}`, guess], guess);
  assert.equal(of('shadow'), 'only as the beginning of “shadowy”, row 2');
  assert.equal(of('shadowy'), 'row 2');
  assert.equal(of('shad'), 'row 3, where the word may go on', 'the row stops within its word');
  assert.equal(of('shadowy fig'), 'not among the rows', 'the next word of the row has ended before');
  assert.equal(of('sun'), 'not among the rows');
  const ended = [{...row([' shad', 0]), ended: true}];
  assert.equal(rowPhrase(ended, [' shad'], 'shad'), 'row 1', 'the text ends there');
});

test('where shares are of tokens and larger than the odds of the word, it is said what they count', () => {
  const rows = [{...row([' night', 1]), share: {p: 0.028}}], of = probability => rowPhrase(rows, [' night'], 'night', probability);
  assert.equal(of(0.024), 'row 1, whose share counts all words that begin with its first token');
  assert.equal(of(0.02801), 'row 1');
  assert.equal(of(0.02799), 'row 1', 'both figures are shown as 2.8 %');
  assert.equal(of(undefined), 'row 1');
});

test('a word that goes on with a sign is no longer word', () => {
  assert.equal(rowPhrase([row([' sea-', 0], ['side', 1])], [' sea', 'sea'], 'sea'), 'not among the rows');
  assert.equal(rowPhrase([row([' seá', 1])], [' se', 'se'], 'se'), 'only as the beginning of “seá”, row 1');
});

test('a longer word is the guess and what follows it, also where the text has begun the word', () =>
  assert.equal(rowPhrase([row(['dowy', 1])], [' shadow', 'shadow', 'dow'], 'shadow'), 'only as the beginning of “shadowy”, row 1'));

test('guesses add up', () => {
  const score = [0.5, 0.125].reduce(addGuess, NO_GUESSES);
  assert.deepEqual(score, {bits: 4, guesses: 2});
  assert.deepEqual(scoreParts(score), {sum: '2 guesses: 4.0 bits', mean: ', 2.0 each'});
  assert.deepEqual(scoreParts(addGuess(NO_GUESSES, 0.5)), {sum: '1 guess: 1.0 bit', mean: ''});
  assert.equal(scoreParts(NO_GUESSES).sum, 'No guess yet.');
});

test('the sum is that of the figures that are shown, however many guesses there are', () => {
  let score = NO_GUESSES, shown = 0;
  for (let turn = 1; turn <= 200; turn += 1) {
    const probability = turn % 7 ? 1 / (turn * 1.37) : 1 / turn ** 2;
    score = addGuess(score, probability);
    shown += Number(guessSentence('sea', {probability, words: true, texts: []}, 'row 2').match(/([0-9.]+) bits? of surprise/)[1]);
    assert.equal(scoreParts(score).sum.match(/: ([0-9.]+) bits?/)[1], shown.toFixed(1));
  }
});

test('a guess that is the next word of a row has the share of the row, if that is known', () => {
  const word = {text: ' sea', share: 0.2, error: 0.0005}, share = {p: 0.2}, odds = {probability: 0.2009, texts: ['sea', ' sea'], words: true, error: 0.0004};
  const rows = more => ({rows: [row([' old', 1]), {...row([' sea', 1], [' shore', 1]), share, next_word: word, ...more}], others: []});
  assert.equal(probabilityOfGuess(rows(), odds), 0.2);
  for (const more of [{next_word: undefined}, {next_word: {...word, text: ' seaside'}}, {share: {p: 0.1, atLeast: true}}, {share: {p: 0.3, bound: true}}]) {
    assert.equal(probabilityOfGuess(rows(more), odds), 0.2009, JSON.stringify(more));
  }
  assert.equal(probabilityOfGuess(rows(), {...odds, texts: [' tide']}), 0.2009);
  assert.equal(probabilityOfGuess({rows: [], others: []}, odds), 0.2009);
});

test('a guess that is listed under everything else has the share that stands there, if that is known', () => {
  const odds = {probability: 0.0178, texts: [' can', 'can'], words: true, error: 0.0001}, rows = [row([' visit', 1])];
  const others = more => [{text: ' can', odds: {p: 0.3}}, {text: " can't", next_word: {}, odds: {p: 0.2}}, {text: ' can', next_word: {}, odds: {p: 0.0188, ...more}}];
  assert.equal(probabilityOfGuess({rows, others: others()}, odds), 0.0188);
  assert.equal(probabilityOfGuess({rows, others: others({bound: true})}, odds), 0.0178);
  assert.equal(probabilityOfGuess({rows, others: others().slice(0, 2)}, odds), 0.0178);
});

test('the sentence of a guess has its odds, its bits and its row', () => {
  const odds = {probability: 0.03125, words: true, texts: [' sea', 'sea']}, bits = '5.0 bits of surprise';
  assert.equal(guessSentence('sea', odds, 'row 2'), `“sea”: 3.1\u00a0% chance of this word · ${bits} · row 2`);
  assert.equal(guessSentence('sea', odds, 'row 1', 'at temperature 0.7'), `“sea”: 3.1\u00a0% chance of this word at temperature 0.7 · ${bits} · row 1`);
  assert.equal(guessSentence('sea', {...odds, words: false}, 'not among the rows'), `“sea”: 3.1\u00a0% chance of these characters · ${bits} · not among the rows`);
  assert.match(guessSentence('.', {...odds, texts: [' .', '.']}, 'row 2'), /chance of this sign ·/);
  assert.match(guessSentence('...', {...odds, texts: [' ...', '...']}, 'row 2'), /chance of these signs ·/);
});

test('a guess that begins with the last word of the text is scored by the rest, and that is said', () => {
  const odds = {probability: 0.03125, words: true, texts: [' the sea', 'the sea', ' sea']};
  assert.match(guessSentence('the sea', odds, 'row 2'), /^“the sea”: 3.1\u00a0% chance of “sea” \(your text has “the” already\) ·/);
  assert.match(guessSentence('sea', {...odds, texts: [' sea', 'sea', 'a']}, 'row 2'), /chance of this word ·/, 'it completes “se”');
  assert.match(guessSentence('old sea', {...odds, texts: [' old sea', 'old sea', 'd sea']}, 'row 2'), /chance of these words ·/);
});

test('a guess is said to be checked, or not to count', () => {
  assert.equal(checkingSentence('elephant'), 'Checking “elephant” …');
  assert.equal(droppedSentence('friends'), 'The text has changed: “friends” was not counted.');
});

test('each text is a place of its own, and a long one has a short name', () => {
  const texts = ['', ' ', 'Once upon a', 'Once upon a ', 'Once upon b', 'Once upon é', 'aOnce upon ', 'a'.repeat(100_000), 'a'.repeat(99_999)];
  assert.equal(new Set(texts.map(placeOf)).size, texts.length);
  assert.equal(placeOf('Once upon a'), placeOf(['Once', 'upon', 'a'].join(' ')));
  assert.ok(placeOf('a'.repeat(100_000)).length < 30);
  const many = Array.from({length: 20_000}, (_, number) => `Once upon a ${number}`);
  assert.equal(new Set(many.map(placeOf)).size, many.length);
});

test('stored places are taken if they are texts', () => {
  assert.deepEqual(placesFrom({bits: 1, guesses: 1, places: ['a', 7, null, 'b']}), ['a', 'b']);
  for (const value of [null, 7, {}, {places: 'ab'}, {bits: 1, guesses: 1}]) assert.deepEqual(placesFrom(value), []);
});

test('a stored score is taken if it is one', () => {
  assert.deepEqual(scoreFrom({bits: 2.5, guesses: 1, more: 1}), {bits: 2.5, guesses: 1});
  assert.deepEqual(scoreFrom({bits: 0, guesses: 3}), {bits: 0, guesses: 3});
  const strange = [null, undefined, 7, {}, {bits: -1, guesses: 1}, {bits: NaN, guesses: 1}, {bits: '1', guesses: 1}, {bits: 1, guesses: 0}, {bits: 1, guesses: 0.5}];
  for (const value of strange) assert.equal(scoreFrom(value), NO_GUESSES);
});
