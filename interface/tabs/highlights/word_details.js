// What the model thought at a word: its alternatives, their odds, and whether they would fit in place, with the odds of the
// person's next words after each.
import {oddsAfterAlternative, followingSentence, wordSummary} from './highlight_sentences.js';
import {make} from '../../web/ui/elements.js';
import {formatPercent, continuationLabel} from '../../web/core/branch_sentences.js';

const MARGIN = 8;   // pixels

// `fits`: the verdicts, as far as they are known.
export function paintWordDetails(element, entry, fits) {
  const verdicts = new Map((fits ?? []).map(fit => [fit.id, fit]));
  const rows = entry.alternatives.map(one => row(one, verdicts.get(one.id), one.id === entry.ids[entry.place] && !one.end));
  const told = fits?.find(({own}) => own !== null);
  element.replaceChildren(make('p', {text: wordSummary(entry)}), make('ol', {}, ...rows));
  if (told) element.append(make('p', {className: 'following', text: followingSentence(told)}));
}

function row(one, fit, written) {
  const verdict = make('span', {className: 'verdict', text: written ? 'as written' : fit?.sentence ?? '…'});
  const then = make('span', {className: 'after', text: fit && !written ? oddsAfterAlternative(fit) : ''});
  const made = make('li', {}, make('span', {className: 'text', text: continuationLabel(one)}),
    make('span', {className: 'odds', text: formatPercent({p: one.probability})}), verdict, then);
  if (fit) made.dataset.drops = fit.drops_in;
  return made;
}

// Under the word, or above it where there is no room.
export function placeBesideWord(element, word) {
  const rects = word.getClientRects(), at = rects[rects.length - 1];
  if (!at) return;
  const {width, height} = element.getBoundingClientRect();
  const left = Math.max(MARGIN, Math.min(at.left, innerWidth - width - MARGIN));
  const under = at.bottom + MARGIN, above = at.top - height - MARGIN;
  Object.assign(element.style, {left: `${left}px`, top: `${under + height <= innerHeight || above < 0 ? under : above}px`});
}
