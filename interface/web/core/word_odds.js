// The sentence on the word that the branches go towards.
/** @import {DrawnView, Row, WordOdds} from './types.d.ts' */
import {formatCount, formatPercent, quotedText} from './figures_and_labels.js';

const USEFUL_BOUND = 0.5;  // the largest upper bound that is shown: most of a larger one was never looked at
const SAME = 0.0005;       // a difference of bounds that figures of 1 % and more do not show
const LEAST_SHOWN = 1e-6;  // less is said to be less than this
const TINY = 1e-12;        // in place of 0, which is said of no word

/**
 * How likely the text is to reach a word: both bounds, or the lower one alone where the upper one says little. The word itself
 * is counted, not longer ones that begin with it, which the shares of the rows count too.
 * @param {WordOdds} odds
 * @param {boolean} reached whether a row leads to the word
 * @param {{searching?: boolean, banned?: number}} [options] `searching`: whether more ways may be found; `banned`: the number of
 *   banned tokens, which may be in every way
 */
export function wordSentence({word, within, low, high}, reached, {searching = false, banned = 0} = {}) {
  const span = `within ${formatCount(within, 'token')}`, name = quotedText(word);
  const simpler = /\s/.test(word.trim()) ? '; one word alone is found more easily' : '';
  const reason = banned ? `; ${formatCount(banned, 'banned token')} may be the reason` : '';
  if (!reached && searching) return `${name}: looking for ways ${span}…`;
  if (!reached) return `${name}: no way found ${span}${limitClause(high)}${simpler}${reason}`;
  return `${name}: ${boundsClause(low, high)} ${span}, as a whole word`;
}

/**
 * The sentence on the word that the drawn rows go towards; empty if they go towards none.
 * @param {Partial<Pick<DrawnView, 'word' | 'growing' | 'wanted'>> & {rows: Partial<Pick<Row, 'branch'>>[]}} drawn
 */
export const steeringSentence = ({word, rows, growing, wanted}) =>
  (word ? wordSentence(word, rows.some(row => row.branch?.word), {searching: growing, banned: wanted?.banned}) : '');

/** What the odds of a word to steer by include, and what an upper bound of them means. */
export const STEERING_MEANING = 'The chance of all ways that were found, with the word’s end. It may be more than the rows hold: only the likeliest ways are rows. ' +
  'It may be less: the share of a row also counts longer words that begin with the word. What was not looked at may lead there too: an upper bound counts all of it, and is shown up to 50 %.';

/** @param {number} high */
function limitClause(high) {
  if (high > USEFUL_BOUND) return '';
  return high < LEAST_SHOWN ? `, ${formatLeast(high)} in any case` : `, ${formatPercent({p: high})} at most`;
}

/** @type {(low: number, high: number) => string} */
function boundsClause(low, high) {
  const least = formatLeast(low), isShown = low >= LEAST_SHOWN;
  if (least === formatLeast(high) || (low >= 0.01 && high - low < SAME)) return least;
  if (high > USEFUL_BOUND) return isShown ? `at least ${least}` : `the ways found have ${least}`;
  return isShown ? `${least} to ${formatPercent({p: high})}` : `at most ${formatPercent({p: high})}`;
}

/** @param {number} p */
const formatLeast = p => formatPercent({p: Math.max(p, TINY)}).replace('<', 'less than');
