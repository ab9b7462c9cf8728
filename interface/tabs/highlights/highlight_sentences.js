// What is said of a word and its alternatives.
import {percent, plain, quoted, spelled} from '../../web/core/branch_sentences.js';

const MOST_TIMES = 100_000;
const NO_ODDS = 'Nothing stands before it, so the model has no odds for it.';

const odds = logprob => ({p: Math.exp(logprob)});

// One line: which choice of the model's it was, and what else there is to say. Of a character of several tokens the odds are
// those of all, the choice that of one.
export function summary({ids, place, loss, rank, entropy, seen_from: from, token}) {
  if (rank === null) return `${quoted(token)}: ${NO_ODDS}`;
  const share = loss === null ? 'impossible' : percent(odds(-loss)), choice = `choice ${plain(rank)}`;
  const figure = loss === null ? '' : ` · loss ${loss.toFixed(2)}`, spread = ` · entropy ${entropy.toFixed(2)}`;
  const seen = from ? ` · read from character ${plain(from + 1)} on` : '';
  if (ids.length === 1) return `${quoted(token)}: ${choice}, ${share}${figure}${spread}${seen}`;
  return `${quoted(token)}: ${share}${figure} · token ${place + 1} of its ${ids.length}: ${choice}${spread}${seen}`;
}

export const alternatives = entry => entry.alternatives.map(one => `${spelled(one)} ${percent({p: one.probability})}`).join(' · ');

// How likely the next words are after an alternative, and how much that differs. It breaks over lines at the comma alone.
export function after({logprob, own}) {
  if (logprob === null || own === null) return '';
  return [`then ${percent(odds(logprob))},`, comparison(logprob - own)].map(part => part.replaceAll(' ', '\u00a0')).join(' ');
}

function comparison(difference) {
  const times = Math.exp(Math.abs(difference)), figure = Number(times.toPrecision(2));
  if (figure <= 1) return 'as likely';
  const many = times > MOST_TIMES ? `> ${plain(MOST_TIMES)}` : figure < 10 ? figure : plain(figure);
  return `${many} × ${difference < 0 ? 'rarer' : 'likelier'}`;
}

export const following = ({following: words, own}) =>
  `Then: your next words, ${quoted(words)}. After your own word ${percent(odds(own))}.`;
