// The table of all tokens of the analysed text.
/** @import {HighlightEntry} from '../../web/core/types.d.ts' */
import {alternativesSentence} from './highlight_sentences.js';
import {formatNumber, visibleText} from '../../web/core/figures_and_labels.js';
import {make} from '../../web/ui/elements.js';

const MOST = 2000;   // rows
/** @type {[text: string, className?: string][]} */
const HEADS = [['Start'], ['End'], ['Token', 'words'], ['Loss'], ['Relative'], ['Rank'], ['Entropy'], ['Alternatives', 'words']];

/** @param {number | null} number */
const figure = number => (number === null ? '–' : number.toFixed(2));

/** @param {HighlightEntry} entry */
function tableRow(entry) {
  const {start, end, token, loss, relative, rank, entropy} = entry, made = make('tr');
  /** @type {[text: string | number, className?: string][]} */
  const cells = [
    [start], [end], [visibleText(token), 'words'], [figure(loss)], [figure(relative)], [rank ?? '–'], [figure(entropy)],
    [entry.alternatives.length ? alternativesSentence(entry) : 'no odds: no text comes before it', 'words'],
  ];
  made.append(...cells.map(([text, className = '']) => make('td', {text, className})));
  if (rank !== null && rank > 1) made.dataset.differs = 'true';
  return made;
}

/** @param {{entries: HighlightEntry[]}} view */
export function tokenTable({entries}) {
  const head = make('tr', {}, ...HEADS.map(([text, className = '']) => make('th', {text, className, scope: 'col'})));
  const made = make('table', {}, make('thead', {}, head), make('tbody', {}, ...entries.slice(0, MOST).map(tableRow)));
  if (entries.length > MOST) made.prepend(make('caption', {text: `The first ${formatNumber(MOST)} of ${formatNumber(entries.length)} tokens.`}));
  return made;
}
