import assert from 'node:assert/strict';
import {test} from 'node:test';

import {countWords, excerpt, firstWords, withCharacterStarts} from '../../../../interface/web/core/text_words.js';
import {withDice} from '../../../support/scripts/dice.js';
import {Owners, randomMarks} from '../../../support/scripts/owners.js';

const isLetterOrDigit = character => /^[\p{L}\p{N}]$/u.test(character);
const isWordCharacter = character => isLetterOrDigit(character) || /^\p{M}$/u.test(character);

// The slow way, character by character: the characters of each word, as their places in the text.
function wordPlaces(text) {
  const found = [];
  let inside = false, at = 0;
  const all = [...text];
  all.forEach((character, index) => {
    const ideograph = /^\p{Ideographic}$/u.test(character);
    const begins = isLetterOrDigit(character) && !inside;
    const next = all[index + 1] ?? '', links = "'’-".includes(character) && inside && isWordCharacter(next) && next !== '中';
    // A combining mark after an ideograph is part of the ideograph's word.
    const follows = inside || (isWordCharacter(character) && found.length && found.at(-1).ideograph && found.at(-1).at(-1) === at - 1);
    if (ideograph || begins) found.push(Object.assign([], {ideograph}));
    inside = !ideograph && (begins || (isWordCharacter(character) && inside) || links);
    if (ideograph || inside || (follows && isWordCharacter(character))) found.at(-1).push(at);
    at += character.length;
  });
  return found;
}

test('words of any script are counted, and those of which a character was chosen', () => withDice(300, dice => {
  const owners = new Owners(), text = dice.text(20, ['a', 'b', ' ', ' ', '\n', "'", '-', '中', 'é', 'e\u0301', 'ع', '🙂', '❤️', '7', ',']);
  owners.change({start: 0, removed: '', inserted: text}, randomMarks(dice, text.length));
  const words = wordPlaces(text), chosen = words.filter(places => places.some(place => owners.spans.some(([from, to]) => from <= place && place < to)));
  assert.deepEqual(countWords(text, owners.spans), {words: words.length, chosen: chosen.length});
}));

test('hyphens and apostrophes hold a word together, and nothing else does', () => {
  const words = text => countWords(text, []).words;
  assert.deepEqual(["don't", 'don’t', 'well-known', 'a.b', "a'", "'a", 'a--b', '中文字', 'a中', '', ' , ', '1,984', 'naïve', "a'中", '中a', '神\ufe00'].map(words),
    [1, 1, 1, 2, 1, 1, 2, 3, 2, 0, 0, 2, 1, 2, 2, 1]);
});

test('only what has a letter or a digit is a word', () => {
  const words = text => countWords(text, []).words;
  assert.deepEqual(['🙂', '❤️', '👍🏽', '👩‍💻', '🇫🇷', '☀️ and ❤️', 'I ❤️ you', '❤️a', '\u0301', '1️⃣'].map(words), [0, 0, 0, 0, 0, 1, 2, 1, 0, 1]);
});

test('a word is chosen where any of its characters was', () => {
  const chosen = (text, ...spans) => countWords(text, spans).chosen;
  assert.equal(chosen('one two', [0, 3]), 1);
  assert.equal(chosen('one two', [1, 4]), 1);
  assert.equal(chosen('one two', [3, 4]), 0);
  assert.equal(chosen('one two', [3, 7]), 1);
  assert.equal(chosen('one two', [0, 1], [4, 5]), 2);
  assert.equal(chosen('one two', [0, 7]), 2);
  assert.equal(chosen('one two', [0, 4]), 1);
  assert.equal(chosen('one two three', [0, 1], [1, 2], [4, 5], [8, 9]), 3);
});

test('the first words of a text end with a whole word, and are all of it where no word is left out', () => {
  assert.equal(firstWords('one two, three', 2), 'one two');
  assert.equal(firstWords('one two.\n', 2), 'one two.\n');
  assert.equal(firstWords('one two three four', 1, 5), 'one two', 'at least so many characters');
  assert.equal(firstWords('中文字', 2), '中文');
  assert.equal(firstWords('', 2), '');
});

test('an excerpt of a short text is the text on one line', () => {
  assert.equal(excerpt('  one\n\n two\tthree '), 'one two three');
  assert.equal(excerpt(''), '');
  assert.equal(excerpt('a'.repeat(80)), 'a'.repeat(80));
});

test('an excerpt of a long text is its first characters and an ellipsis', () => {
  assert.equal(excerpt('a'.repeat(81)), `${'a'.repeat(80)}…`);
  assert.equal(excerpt('one two three', 5), 'one…');
  assert.equal(excerpt('one two three', 4), 'one…');
  assert.equal(excerpt('At dusk. And then', 8), 'At dusk…', 'no four dots');
  assert.equal(excerpt(`a${' '.repeat(15)}`, 4), 'a');
  assert.equal(excerpt(`a${' '.repeat(16)}`, 4), 'a…');
  assert.equal(excerpt(`a${' '.repeat(16)}b`, 4), 'a…');
});

test('an excerpt cuts no character', () => withDice(300, dice => {
  const text = dice.text(60, ['🙂', ' ', ' ', ' ', 'a']), most = 1 + dice.upTo(10), found = excerpt(text, most);
  assert.ok(found.isWellFormed(), JSON.stringify(found));
  assert.ok([...found].length <= most + 1 && !/\s\s|^\s|\s…?$/.test(found));
  const line = text.split(/\s+/).filter(Boolean).join(' ');
  assert.ok(found === line || (found.endsWith('…') && line.startsWith(found.slice(0, -1))));
}));

test('the starts of pieces are counted in characters, as Python does', () => withDice(100, dice => {
  const text = dice.text(30), all = [...text];
  const starts = all.map((_, index) => index).filter(() => dice.chance(0.3));
  const pieces = starts.map(index => [all.slice(0, index).join('').length, [index], false]);
  assert.deepEqual(withCharacterStarts(text, pieces), starts.map(index => [index, [index], false]));
}));
