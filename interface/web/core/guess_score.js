// The score of guessed next words: how much each surprised the model, in bits.
/** @import {DrawnRow, GuessOdds, GuessScore} from './types.d.ts' */
import {formatPercent, quotedText} from './branch_sentences.js';
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
 * The score after one more guess.
 * @param {GuessScore} score
 * @param {number} probability above 0
 * @returns {GuessScore}
 */
export const addGuess = ({bits, guesses}, probability) => ({bits: bits + bitsOf(probability), guesses: guesses + 1});

/** @param {number} bits */
const formatBits = bits => `${bits.toFixed(1)} ${bits.toFixed(1) === '1.0' ? 'bit' : 'bits'}`;

/**
 * The score of one guess.
 * @param {string} guess
 * @param {GuessOdds} odds
 * @param {number} row its index among the rows, or -1
 * @param {string} [under] the settings of the odds, where they are not the model's own
 */
export function guessSentence(guess, {probability, words}, row, under = '') {
  const what = `chance of ${words ? 'this word' : 'these characters'}${under && ` ${under}`}`;
  const among = row < 0 ? 'not among the rows' : `row ${row + 1}`;
  return `${quotedText(guess)}: ${formatPercent({p: probability})} ${what} · ${formatBits(bitsOf(probability))} of surprise · ${among}`;
}

/**
 * The score of all guesses.
 * @param {GuessScore} score
 */
export function scoreSentence({bits, guesses}) {
  if (!guesses) return 'No guess yet.';
  return `${guesses} ${guesses === 1 ? 'guess' : 'guesses'} · ${formatBits(bits)} in all · ${formatBits(bits / guesses)} a guess`;
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
