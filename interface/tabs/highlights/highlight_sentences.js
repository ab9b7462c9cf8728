// What is said of a word and its alternatives.
import {formatPercent, formatNumber, quotedText, continuationLabel} from '../../web/core/branch_sentences.js';

const MOST_TIMES = 100_000;
const NO_ODDS = 'Nothing stands before it, so the model has no odds for it.';

const odds = logprob => ({p: Math.exp(logprob)});

// One line: which choice of the model's it was, and what else there is to say. Of a character of several tokens the odds are
// those of all, the choice that of one.
export function wordSummary({ids, place, loss, rank, entropy, seen_from: from, token}) {
  if (rank === null) return `${quotedText(token)}: ${NO_ODDS}`;
  const share = loss === null ? 'impossible' : formatPercent(odds(-loss)), choice = `choice ${formatNumber(rank)}`;
  const figure = loss === null ? '' : ` · loss ${loss.toFixed(2)}`, spread = ` · entropy ${entropy.toFixed(2)}`;
  const seen = from ? ` · read from character ${formatNumber(from + 1)} on` : '';
  if (ids.length === 1) return `${quotedText(token)}: ${choice}, ${share}${figure}${spread}${seen}`;
  return `${quotedText(token)}: ${share}${figure} · token ${place + 1} of its ${ids.length}: ${choice}${spread}${seen}`;
}

export const alternativesSentence = entry => entry.alternatives.map(one => `${continuationLabel(one)} ${formatPercent({p: one.probability})}`).join(' · ');

// How likely the next words are after an alternative, and how much that differs. It breaks over lines at the comma alone.
export function oddsAfterAlternative({logprob, own}) {
  if (logprob === null || own === null) return '';
  return [`then ${formatPercent(odds(logprob))},`, comparison(logprob - own)].map(part => part.replaceAll(' ', '\u00a0')).join(' ');
}

function comparison(difference) {
  const times = Math.exp(Math.abs(difference)), figure = Number(times.toPrecision(2));
  if (figure <= 1) return 'as likely';
  const many = times > MOST_TIMES ? `> ${formatNumber(MOST_TIMES)}` : figure < 10 ? figure : formatNumber(figure);
  return `${many} × ${difference < 0 ? 'rarer' : 'likelier'}`;
}

export const followingSentence = ({following: words, own}) =>
  `Then: your next words, ${quotedText(words)}. After your own word ${formatPercent(odds(own))}.`;
