// The details of a word: its alternatives with their odds, whether they fit in its place, and the odds of the person's next
// words after each.
/** @import {Alternative, AlternativeFit, HighlightEntry} from '../../web/core/types.d.ts' */
import {continuationLabel, formatPercent} from '../../web/core/branch_sentences.js';
import {followingSentence, oddsAfterAlternative, wordSummary} from './highlight_sentences.js';
import {make} from '../../web/ui/elements.js';

const MARGIN = 8;   // pixels

/**
 * Draw the details of a word.
 * @param {HTMLElement} element
 * @param {HighlightEntry} entry
 * @param {AlternativeFit[] | null | undefined} fits the verdicts, once they are known
 */
export function paintWordDetails(element, entry, fits) {
  const verdicts = new Map((fits ?? []).map(fit => [fit.id, fit]));
  const rows = entry.alternatives.map(one => alternativeRow(one, verdicts.get(one.id), one.id === entry.ids[entry.place] && !one.end));
  const known = fits?.find(({own}) => own !== null);
  element.replaceChildren(make('p', {text: wordSummary(entry)}), make('ol', {}, ...rows));
  if (known) {
    const text = followingSentence({following: known.following, own: known.own ?? 0});
    element.append(make('p', {className: 'following', text}));
  }
}

/**
 * @param {Alternative} one
 * @param {AlternativeFit | undefined} fit
 * @param {boolean} written whether it is the person's own word
 */
function alternativeRow(one, fit, written) {
  const verdict = make('span', {className: 'verdict', text: written ? 'as written' : fit?.sentence ?? '…'});
  const then = make('span', {className: 'after', text: fit && !written ? oddsAfterAlternative(fit) : ''});
  const made = make('li', {}, make('span', {className: 'text', text: continuationLabel(one)}),
    make('span', {className: 'odds', text: formatPercent({p: one.probability})}), verdict, then);
  if (fit) made.dataset.drops = String(fit.drops_in);
  return made;
}

/**
 * Place the details under a word, or above it where there is no room.
 * @param {HTMLElement} element
 * @param {HTMLElement} word
 */
export function placeBesideWord(element, word) {
  const rects = word.getClientRects(), last = rects[rects.length - 1];
  if (!last) return;
  const {width, height} = element.getBoundingClientRect();
  const left = Math.max(MARGIN, Math.min(last.left, innerWidth - width - MARGIN));
  const under = last.bottom + MARGIN, above = last.top - height - MARGIN;
  Object.assign(element.style, {left: `${left}px`, top: `${under + height <= innerHeight || above < 0 ? under : above}px`});
}
