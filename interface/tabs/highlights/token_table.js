// The table of all tokens of the analysed text.
/** @import {HighlightEntry} from '../../web/core/types.d.ts' */
import {alternativesSentence, spokenAlternatives} from './highlight_sentences.js';
import {bitsOfNats, formatNumber, spokenText, visibleText} from '../../web/core/figures_and_labels.js';
import {explain} from '../../web/ui/tips.js';
import {findAll, make, spokenAs} from '../../web/ui/elements.js';

const MOST = 2000;   // rows
const UNITS = 'Loss, the surprise, and entropy are in bits: a chance of 50\u00a0% is a loss of 1 bit, one of 0.1\u00a0% a loss of 10.';
/** @type {[text: string, meaning: string, className?: string][]} */
const HEADS = [
  ['Start', 'Start: how many characters stand before the token.'],
  ['End', 'End: how many characters the text has up to the end of the token.'],
  ['Token', 'The tokens of your text in order: words, parts of words, and signs.', 'words'],
  ['Loss', 'Loss: how much the token surprised the model, in bits; 0 is no surprise, 1 is a chance of 50\u00a0%, and 3.3 is one of 10\u00a0%.'],
  ['Relative', 'Relative: the loss as a share of the highest loss in the text.'],
  ['Rank', 'Rank: the place of the token among all, ordered by their chance here; 1 is the likeliest.'],
  ['Entropy', 'Entropy: how uncertain the model was here, in bits; 0 is certain, and 3.3 is as uncertain as ten equally likely tokens.'],
  ['Alternatives', 'The likeliest tokens here, each with its chance.', 'words'],
];

/** @param {number | null} number */
const figure = number => (number === null ? '–' : number.toFixed(2));

/** @param {number | null} nats */
const bitsFigure = nats => figure(nats === null ? null : bitsOfNats(nats));

/** @param {HighlightEntry} entry */
function tableRow(entry) {
  const {start, end, token, loss, relative, rank, entropy} = entry, made = make('tr');
  /** @type {[text: string | number, className?: string, said?: string][]} */
  const cells = [
    [start], [end], [visibleText(token), 'words', spokenText(token)], [bitsFigure(loss)], [figure(relative)], [rank ?? '–'], [bitsFigure(entropy)],
    [entry.alternatives.length ? alternativesSentence(entry) : 'none: no text comes before it', 'words', spokenAlternatives(entry)],
  ];
  made.append(...cells.map(([text, className = '', said = '']) => make('td', {className}, ...spokenAs(String(text), said || String(text)))));
  return made;
}

/**
 * Mark the rows of the highlights.
 * @param {HTMLElement} table or an element around it
 * @param {HighlightEntry[]} entries of the rows
 * @param {Set<HighlightEntry>} marked
 */
export function markRows(table, entries, marked) {
  findAll(table, 'tbody tr').forEach((row, index) => row.toggleAttribute('data-marked', marked.has(entries[index])));
}

/** @param {{entries: HighlightEntry[]}} view */
export function tokenTable({entries}) {
  const head = make('tr', {}, ...HEADS.map(([text, meaning, className = '']) => make('th', {className, scope: 'col'}, explain(make('span', {text}), meaning))));
  const made = make('table', {}, make('thead', {}, head), make('tbody', {}, ...entries.slice(0, MOST).map(tableRow)));
  const part = entries.length > MOST ? `The first ${formatNumber(MOST)} of ${formatNumber(entries.length)} tokens. ` : '';
  made.prepend(make('caption', {text: part + UNITS}));
  return made;
}
