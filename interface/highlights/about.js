// What the model thought at a word: its alternatives, their odds, and whether they would fit in place, with the odds of the
// person's next words after each.
import {make} from '../shared/elements.js';
import {PART, percent, plain, visible} from '../branch_view/words.js';

const MARGIN = 8;   // pixels
const MOST_TIMES = 100_000;
const NO_ODDS = 'Nothing stands before it, so the model has no odds for it.';

const shown = ({text, end}) => (end ? 'end' : text === null ? PART : visible(text.trim() ? text.trim() : text));

const quoted = text => `“${visible(text.trim() || text)}”`;

// One line: which choice of the model's it was, and what else there is to say. Of a character of several tokens the odds are
// those of all, the choice that of one.
export function summary({ids, place, loss, rank, entropy, seen_from: from, token}) {
  if (rank === null) return `${quoted(token)}: ${NO_ODDS}`;
  const odds = loss === null ? 'impossible' : percent({p: Math.exp(-loss)}), choice = `choice ${plain(rank)}`;
  const figure = loss === null ? '' : ` · loss ${loss.toFixed(2)}`, spread = ` · entropy ${entropy.toFixed(2)}`;
  const seen = from ? ` · read from character ${plain(from + 1)} on` : '';
  if (ids.length === 1) return `${quoted(token)}: ${choice}, ${odds}${figure}${spread}${seen}`;
  return `${quoted(token)}: ${odds}${figure} · token ${place + 1} of its ${ids.length}: ${choice}${spread}${seen}`;
}

export const alternatives = entry => entry.alternatives.map(one => `${shown(one)} ${percent({p: one.probability})}`).join(' · ');

// `fits`: the verdicts, as far as they are known.
export function paint(element, entry, fits) {
  const verdicts = new Map((fits ?? []).map(fit => [fit.id, fit]));
  const rows = entry.alternatives.map(one => row(one, verdicts.get(one.id), one.id === entry.ids[entry.place] && !one.end));
  const told = fits?.find(({own}) => own !== null);
  element.replaceChildren(make('p', {text: summary(entry)}), make('ol', {}, ...rows));
  if (told) element.append(make('p', {className: 'following', text: following(told)}));
}

function row(one, fit, written) {
  const verdict = make('span', {className: 'verdict', text: written ? 'as written' : fit?.sentence ?? '…'});
  const after = make('span', {className: 'after', text: fit && !written ? then(fit) : ''});
  const made = make('li', {}, make('span', {className: 'text', text: shown(one)}),
    make('span', {className: 'odds', text: percent({p: one.probability})}), verdict, after);
  if (fit) made.dataset.drops = fit.drops_in;
  return made;
}

const odds = logprob => ({p: Math.exp(logprob)});

// How likely the next words are after an alternative, and how much that differs. It breaks over lines at the comma alone.
function then({logprob, own}) {
  if (logprob === null || own === null) return '';
  return [`then ${percent(odds(logprob))},`, comparison(logprob - own)].map(part => part.replaceAll(' ', '\u00a0')).join(' ');
}

function comparison(difference) {
  const times = Math.exp(Math.abs(difference)), figure = Number(times.toPrecision(2));
  if (figure <= 1) return 'as likely';
  const many = times > MOST_TIMES ? `> ${plain(MOST_TIMES)}` : figure < 10 ? figure : plain(figure);
  return `${many} × ${difference < 0 ? 'rarer' : 'likelier'}`;
}

const following = ({following: words, own}) =>
  `Then: your next words, ${quoted(words)}. After your own word ${percent(odds(own))}.`;

// Under the word, or above it where there is no room.
export function place(element, word) {
  const rects = word.getClientRects(), at = rects[rects.length - 1];
  if (!at) return;
  const {width, height} = element.getBoundingClientRect();
  const left = Math.max(MARGIN, Math.min(at.left, innerWidth - width - MARGIN));
  const under = at.bottom + MARGIN, above = at.top - height - MARGIN;
  Object.assign(element.style, {left: `${left}px`, top: `${under + height <= innerHeight || above < 0 ? under : above}px`});
}
