// The sentence on the word that the branches go towards.
/** @import {WordOdds} from './types.d.ts' */
import {formatCount, formatPercent, quotedText} from './branch_sentences.js';

const NO_BOUND = 0.95;  // an upper bound from which on it says nothing
const SAME = 0.0005;   // a difference of bounds that the figures do not show

/**
 * How likely the text is to reach a word, as bounds.
 * @param {WordOdds} odds
 * @param {boolean} reached whether a row leads to the word
 */
export function wordSentence({word, within, low, high}, reached) {
  const span = `within ${formatCount(within, 'token')}`, name = quotedText(word);
  if (!reached) return `${name}: no way found ${span}, ${formatPercent({p: high})} at most`;
  if (high > NO_BOUND) return `${name}: at least ${formatPercent({p: low})} ${span}`;
  if (high - low < SAME) return `${name}: ${formatPercent({p: low})} ${span}`;
  return `${name}: ${formatPercent({p: low})} to ${formatPercent({p: high})} ${span}`;
}
