// Tables of a page of the Lab.
import {make} from '../../web/ui/elements.js';

/**
 * A table with a head, and the first cell of each row as its name.
 * @param {string[]} heads
 * @param {string[][]} rows
 */
export function table(heads, rows) {
  const head = make('tr', {}, ...heads.map(text => make('th', {text, scope: 'col'})));
  const body = rows.map(([first, ...cells]) => make('tr', {}, make('th', {text: first, scope: 'row'}), ...cells.map(text => make('td', {text}))));
  return make('table', {}, make('thead', {}, head), make('tbody', {}, ...body));
}
