// The figures of every token, in the order of the text.
import {make} from '../../web/ui/elements.js';
import {plain, visible} from '../../web/core/branch_sentences.js';
import {alternatives} from './highlight_sentences.js';

const MOST = 2000;
const HEADS = [['Start'], ['End'], ['Token', 'words'], ['Loss'], ['Relative'], ['Rank'], ['Entropy'], ['Alternatives', 'words']];

const figure = number => (number === null ? '–' : number.toFixed(2));

function row(entry) {
  const {start, end, token, loss, relative, rank, entropy} = entry, made = make('tr');
  const cells = [
    [start], [end], [visible(token), 'words'], [figure(loss)], [figure(relative)], [rank ?? '–'], [figure(entropy)],
    [entry.alternatives.length ? alternatives(entry) : 'no odds: nothing stands before it', 'words'],
  ];
  made.append(...cells.map(([text, className = '']) => make('td', {text, className})));
  if (rank > 1) made.dataset.differs = true;
  return made;
}

export function table({entries}) {
  const head = make('tr', {}, ...HEADS.map(([text, className = '']) => make('th', {text, className, scope: 'col'})));
  const made = make('table', {}, make('thead', {}, head), make('tbody', {}, ...entries.slice(0, MOST).map(row)));
  if (entries.length > MOST) made.prepend(make('caption', {text: `The first ${plain(MOST)} of ${plain(entries.length)} tokens.`}));
  return made;
}
