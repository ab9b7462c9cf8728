// The sentence on the word that the branches go towards.
/** @import {WordOdds} from './types.d.ts' */
import {formatCount, formatPercent, quotedText} from './figures_and_labels.js';

const USEFUL_BOUND = 0.5;  // the largest upper bound that is shown: most of a larger one was never looked at
const SAME = 0.0005;   // a difference of bounds that the figures do not show

/**
 * How likely the text is to reach a word: both bounds, or the lower one alone where the upper one says little.
 * @param {WordOdds} odds
 * @param {boolean} reached whether a row leads to the word
 * @param {boolean} [searching] whether more ways may be found
 */
export function wordSentence({word, within, low, high}, reached, searching = false) {
  const span = `within ${formatCount(within, 'token')}`, name = quotedText(word), isUseful = high <= USEFUL_BOUND;
  const hint = /\s/.test(word.trim()) ? '; one word alone is found more easily' : '';
  if (!reached && searching) return `${name}: looking for ways ${span}…`;
  if (!reached) return `${name}: no way found ${span}${isUseful ? `, ${formatPercent({p: high})} at most` : ''}${hint}`;
  if (high - low < SAME) return `${name}: ${formatPercent({p: low})} ${span}`;
  if (!isUseful) return `${name}: at least ${formatPercent({p: low})} ${span}`;
  return `${name}: ${formatPercent({p: low})} to ${formatPercent({p: high})} ${span}`;
}
