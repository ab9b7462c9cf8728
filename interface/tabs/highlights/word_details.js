// The details of a word: what the model expected, its alternatives, and which of them fit before the next words; and, where
// figures are wanted, odds, and what an alternative does to the person's next words.
/** @import {Alternative, AlternativeFit, HighlightEntry, MarkedWord} from '../../web/core/types.d.ts' */
import {formatPercent} from '../../web/core/figures_and_labels.js';
import {BIT_OF_LOSS, alternativeLabel, beginningSentence, fitMeaning, fitPhrase, followingSentence, headline, isWritten, oddsAfterAlternative, wordSummary} from './highlight_sentences.js';
import {make, setAttribute} from '../../web/ui/elements.js';

/**
 * Draw the details of a word.
 * @param {HTMLElement} element
 * @param {HighlightEntry} entry
 * @param {AlternativeFit[] | null | undefined} fits the verdicts, once they are known
 * @param {Partial<Pick<MarkedWord, 'text' | 'begun' | 'before' | 'given'>>} [word] the whole word
 */
export function paintWordDetails(element, entry, fits, {text: word = entry.token, begun = '', before = Infinity, given = ''} = {}) {
  const verdicts = new Map((fits ?? []).map(fit => [fit.id, fit]));
  const rows = entry.alternatives.map(one => alternativeRow(one, entry, {fit: verdicts.get(one.id), given}));
  const known = fits?.find(({own}) => own !== null);
  const title = make('div', {className: 'headline', text: headline(entry, word, begun, given), dir: 'auto'});
  const why = beginningSentence(entry, before, begun);
  element.replaceChildren(title, make('ol', {}, ...rows), ...(why ? [make('p', {className: 'beginning', text: why})] : []), make('p', {className: 'summary', text: wordSummary(entry, BIT_OF_LOSS)}));
  if (known) {
    element.append(make('p', {className: 'meaning', text: fitMeaning(known)}));
    const text = followingSentence({following: known.following, own: known.own ?? 0});
    element.append(make('p', {className: 'following', text}));
  }
  const more = make('p', {className: 'more'}, 'There is more below: ', make('span', {className: 'mouse-only', text: 'turn the mouse wheel over the word, or press Tab, then ↓.'}), make('span', {className: 'finger-only', text: 'scroll here.'}));
  more.ariaHidden = 'true';
  element.append(more);
}

/**
 * Say at the lower edge of the details that they go on, while their end is not seen. Details that are higher than their room can
 * have the focus: keys scroll them then.
 * @param {HTMLElement} element
 */
export function markMore(element) {
  const most = element.scrollHeight - element.clientHeight;   // pixels that it can be scrolled
  setAttribute(element, 'tabindex', most > 1 ? '0' : null);
  element.toggleAttribute('data-more', most - element.scrollTop > 1);
}

/**
 * @param {Alternative} one
 * @param {HighlightEntry} entry
 * @param {{fit: AlternativeFit | undefined, given: string}} around its verdict, and the end of the text before the entry
 */
function alternativeRow(one, entry, {fit, given}) {
  const written = isWritten(one, entry);
  const verdict = make('span', {className: 'verdict', text: written ? 'as written' : fit ? fitPhrase(fit) : '…'});
  if (fit?.drops_in && !written) verdict.append(make('span', {className: 'meant', text: ': your next words can stay'}));
  const odds = fit && !written ? oddsAfterAlternative(fit) : '';
  const then = make('span', {className: 'after'}, ...(odds ? [make('span', {className: 'then', text: 'then\u00a0'}), odds] : []));
  const made = make('li', {}, make('span', {className: 'text', text: alternativeLabel(one, entry, given)}),
    make('span', {className: 'odds', text: formatPercent({p: one.probability})}), make('span', {className: 'fit'}, verdict, then));
  if (fit) made.dataset.drops = String(fit.drops_in);
  made.toggleAttribute('data-written', written);
  return made;
}
