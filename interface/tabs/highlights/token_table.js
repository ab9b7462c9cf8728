// The figures of every token, in the order of the text.
import {make} from '../../web/ui/elements.js';
import {formatNumber, visibleText} from '../../web/core/branch_sentences.js';
import {alternativesSentence} from './highlight_sentences.js';

const MOST = 2000;
const HEADS = [['Start'], ['End'], ['Token', 'words'], ['Loss'], ['Relative'], ['Rank'], ['Entropy'], ['Alternatives', 'words']];

const figure = number => (number === null ? '–' : number.toFixed(2));

function row(entry) {
  const {start, end, token, loss, relative, rank, entropy} = entry, made = make('tr');
  const cells = [
    [start], [end], [visibleText(token), 'words'], [figure(loss)], [figure(relative)], [rank ?? '–'], [figure(entropy)],
    [entry.alternatives.length ? alternativesSentence(entry) : 'no odds: nothing stands before it', 'words'],
  ];
  made.append(...cells.map(([text, className = '']) => make('td', {text, className})));
  if (rank > 1) made.dataset.differs = true;
  return made;
}

export function tokenTable({entries}) {
  const head = make('tr', {}, ...HEADS.map(([text, className = '']) => make('th', {text, className, scope: 'col'})));
  const made = make('table', {}, make('thead', {}, head), make('tbody', {}, ...entries.slice(0, MOST).map(row)));
  if (entries.length > MOST) made.prepend(make('caption', {text: `The first ${formatNumber(MOST)} of ${formatNumber(entries.length)} tokens.`}));
  return made;
}
