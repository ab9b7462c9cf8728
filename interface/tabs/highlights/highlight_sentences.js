// What is said of a word of the analysed text and of its alternatives.
/** @import {AlternativeFit, HighlightEntry} from '../../web/core/types.d.ts' */
import {continuationLabel, formatNumber, formatPercent, quotedText} from '../../web/core/branch_sentences.js';

const MOST_TIMES = 100_000;   // larger ratios are shown as more than this
const NO_ODDS = 'No text comes before it, so the model has no odds for it.';

/** @param {number} logprob */
const oddsOf = logprob => ({p: Math.exp(logprob)});

/**
 * One line: the rank of the word among the model's choices, its odds, loss and entropy. Of a character of several tokens
 * the odds are those of all its tokens, and the rank is that of one.
 * @param {HighlightEntry} entry
 */
export function wordSummary({ids, place, loss, rank, entropy, seen_from: from, token}) {
  if (rank === null) return `${quotedText(token)}: ${NO_ODDS}`;
  const share = loss === null ? 'impossible' : formatPercent(oddsOf(-loss)), choice = `choice ${formatNumber(rank)}`;
  const figure = loss === null ? '' : ` · loss ${loss.toFixed(2)}`, spread = ` · entropy ${(entropy ?? 0).toFixed(2)}`;
  const seen = from ? ` · read from character ${formatNumber(from + 1)} on` : '';
  if (ids.length === 1) return `${quotedText(token)}: ${choice}, ${share}${figure}${spread}${seen}`;
  return `${quotedText(token)}: ${share}${figure} · token ${place + 1} of its ${ids.length}: ${choice}${spread}${seen}`;
}

/** @param {Pick<HighlightEntry, 'alternatives'>} entry */
export const alternativesSentence = entry =>
  entry.alternatives.map(one => `${continuationLabel(one)} ${formatPercent({p: one.probability})}`).join(' · ');

/**
 * How likely the next words are after an alternative, compared to after one's own word; empty if unknown. Lines break at
 * the comma alone.
 * @param {Pick<AlternativeFit, 'logprob' | 'own'>} fit
 */
export function oddsAfterAlternative({logprob, own}) {
  if (logprob === null || own === null) return '';
  const parts = [`then ${formatPercent(oddsOf(logprob))},`, comparison(logprob - own)];
  return parts.map(part => part.replaceAll(' ', '\u00a0')).join(' ');
}

/** @param {number} difference of two log-probabilities */
function comparison(difference) {
  const times = Math.exp(Math.abs(difference)), figure = Number(times.toPrecision(2));
  if (figure <= 1) return 'as likely';
  const many = times > MOST_TIMES ? `> ${formatNumber(MOST_TIMES)}` : figure < 10 ? figure : formatNumber(figure);
  return `${many} × ${difference < 0 ? 'rarer' : 'likelier'}`;
}

/** @param {{following: string, own: number}} fit */
export const followingSentence = ({following: words, own}) =>
  `Then: your next words, ${quotedText(words)}. After your own word ${formatPercent(oddsOf(own))}.`;
