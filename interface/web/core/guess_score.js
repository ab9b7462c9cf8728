// The score of guessed next words: how much each surprised the model, in bits.
/** @import {DrawnOther, DrawnRow, GuessOdds, GuessScore} from './types.d.ts' */
import {formatPercent, isSigns, quotedText} from './figures_and_labels.js';
import {nextWordEnd, textUpTo} from './choice.js';

/** @type {GuessScore} */
export const NO_GUESSES = {bits: 0, guesses: 0};

/**
 * The surprise of a probability in bits: 1 bit for one half, 10 for about a thousandth.
 * @param {number} probability above 0
 */
export const bitsOf = probability => Math.max(0, -Math.log2(probability));

/**
 * The index of the row whose next word is the guess; -1 if there is none.
 * @param {Pick<DrawnRow, 'pieces'>[]} rows
 * @param {string[]} texts the guess as it may continue the text: with a space before it, or completing a word
 */
export const rowOfGuess = (rows, texts) => rows.findIndex(row => texts.includes(textUpTo(row, nextWordEnd(row))));

/**
 * The probability of a guess. Where its word is the next word of a row, or of an entry of *Everything else*, it is the share
 * of that, as far as that is known: two searches find it, each with an error of its own, and the page shows one figure.
 * @param {{rows: (Pick<DrawnRow, 'pieces'> & Partial<Pick<DrawnRow, 'share' | 'next_word'>>)[],
 *   others: Pick<DrawnOther, 'text' | 'next_word' | 'odds'>[]}} drawn
 * @param {GuessOdds} odds
 */
export function probabilityOfGuess({rows, others}, {probability, texts}) {
  const {share, next_word: word} = rows[rowOfGuess(rows, texts)] ?? {};
  const entry = others.find(({text, next_word: own}) => own && text && texts.includes(text));
  const known = word && texts.includes(word.text) ? share : entry?.odds;
  return known && !known.atLeast && !known.bound ? known.p : probability;
}

const WORD_GOES_ON = /^[\p{L}\p{M}\p{N}]/u;

/**
 * The first row whose next word is longer than the guess and begins with it: its index, and that word as the guess with what
 * follows it. Null if there is none.
 * @param {Pick<DrawnRow, 'pieces'>[]} rows
 * @param {string[]} texts the guess as it may continue the text
 * @param {string} guess
 */
export function rowBegunByGuess(rows, texts, guess) {
  for (const [row, one] of rows.entries()) {
    const next = textUpTo(one, nextWordEnd(one)), begun = texts.find(text => next.startsWith(text) && WORD_GOES_ON.test(next.slice(text.length)));
    if (begun !== undefined) return {row, word: guess + next.slice(begun.length)};
  }
  return null;
}

/**
 * The score after one more guess. It is the sum of the figures that are shown, so tenths of a bit are added.
 * @param {GuessScore} score
 * @param {number} probability above 0
 * @returns {GuessScore}
 */
export const addGuess = ({bits, guesses}, probability) => ({bits: Math.round(10 * bits + Math.round(10 * bitsOf(probability))) / 10, guesses: guesses + 1});

/** @param {number} bits */
const toTenth = bits => (Math.round(10 * bits) / 10).toFixed(1);

/** @param {number} bits */
function formatBits(bits) {
  const figure = toTenth(bits);
  return `${figure} ${figure === '1.0' ? 'bit' : 'bits'}`;
}

/**
 * Which row a guess is, as a phrase; or whose beginning, or that it is none.
 * @param {(Pick<DrawnRow, 'pieces' | 'ended'> & Partial<Pick<DrawnRow, 'share'>>)[]} rows
 * @param {string[]} texts the guess as it may continue the text
 * @param {string} guess
 * @param {number} [probability] of the guess; given if the rows show odds of tokens, whose shares may count longer words too
 */
export function rowPhrase(rows, texts, guess, probability) {
  const own = rowOfGuess(rows, texts), longer = own < 0 ? rowBegunByGuess(rows, texts, guess) : null;
  if (longer) return `only as the beginning of ${quotedText(longer.word)}, row ${longer.row + 1}`;
  if (own < 0) return 'not among the rows';
  const isWhole = rows[own].ended || rows[own].pieces.some(piece => piece.ends >= 1);
  const {share} = rows[own], isLess = probability !== undefined && share && share.p > probability;
  const countsMore = isLess && formatPercent(share) !== formatPercent({p: probability});
  return `row ${own + 1}${isWhole ? '' : ', where the word may go on'}${countsMore ? ', whose share counts all words that begin with its first token' : ''}`;
}

/**
 * What the figure of a guess is the chance of. Where the guess begins with the last word of the text, that is the rest of it.
 * @param {string} guess
 * @param {Pick<GuessOdds, 'words' | 'texts'>} odds
 */
function guessedPart(guess, {words, texts}) {
  const own = guess.trim(), rest = texts.find(text => /^\s/.test(text) && text.trim() !== own);
  if (!words) return 'these characters';
  if (rest) return `${quotedText(rest)} (your text has ${quotedText(own.slice(0, -rest.length))} already)`;
  if (isSigns(own)) return own.length > 1 ? 'these signs' : 'this sign';
  return /\s/.test(own) ? 'these words' : 'this word';
}

/**
 * The score of one guess.
 * @param {string} guess
 * @param {Pick<GuessOdds, 'probability' | 'words' | 'texts'>} odds
 * @param {string} among the rows: see `rowPhrase`
 * @param {string} [under] the settings of the odds, where they are not the model's own
 */
export function guessSentence(guess, odds, among, under = '') {
  const {probability} = odds, what = `chance of ${guessedPart(guess, odds)}${under && ` ${under}`}`;
  return `${quotedText(guess)}: ${formatPercent({p: probability})} ${what} · ${formatBits(bitsOf(probability))} of surprise · ${among}`;
}

/** What is said while a guess is scored. @param {string} guess */
export const checkingSentence = guess => `Checking ${quotedText(guess)} …`;

/** What is said of a guess whose text changed while it was scored. @param {string} guess */
export const droppedSentence = guess => `The text has changed: ${quotedText(guess)} was not counted.`;

/**
 * The score of all guesses, and the mean of several ones as a clause after it.
 * @param {GuessScore} score
 */
export function scoreParts({bits, guesses}) {
  if (!guesses) return {sum: 'No guess yet.', mean: ''};
  if (guesses === 1) return {sum: `1 guess: ${formatBits(bits)}`, mean: ''};
  return {sum: `${guesses} guesses: ${formatBits(bits)}`, mean: `, ${toTenth(bits / guesses)} each`};
}

/**
 * The place of a guess: two hashes of the text before it, of 32 bits each, and its length, so that a long text is not stored
 * for each place.
 * @param {string} text
 */
export function placeOf(text) {
  let [first, second] = [0x811c9dc5, 0x9747b28c];
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    first = Math.imul(first ^ unit, 0x01000193);
    second = Math.imul(second ^ unit, 0x5bd1e995) + (second >>> 15);
  }
  return [first, second, text.length].map(part => (part >>> 0).toString(36)).join('-');
}

/**
 * The places that are stored with a score.
 * @param {any} value
 * @returns {string[]}
 */
export function placesFrom(value) {
  const places = value?.places;
  return Array.isArray(places) ? places.filter(place => typeof place === 'string') : [];
}

/**
 * A stored score; none if it is no score.
 * @param {any} value
 * @returns {GuessScore}
 */
export function scoreFrom(value) {
  const {bits, guesses} = value ?? {};
  return Number.isFinite(bits) && bits >= 0 && Number.isSafeInteger(guesses) && guesses > 0 ? {bits, guesses} : NO_GUESSES;
}
