// Rows that are longer than they can be shown: a sign at their end says so, and reads on. It is for pointers; the arrow keys
// scroll by themselves.
import {childrenOf, find, setAttribute} from '../web/ui/elements.js';
import {hiddenPart} from '../web/core/row_overflow.js';

/** What the sign says, by what of the row is out of sight. */
const TIPS = {
  on: 'This row is longer than what is seen of it: press here to read on, or scroll it sideways. By keyboard, → goes along it.',
  back: 'The end of this row: press here to go back to its beginning, or scroll it sideways.',
};
const STEP = 0.8;   // of the visible width beside the note at the row's end, that a click reads on

export class RowScrolling {
  #marking = false;   // whether the next frame marks the rows

  /** @param {HTMLElement} rows */
  constructor(rows) {
    this.rows = rows;
    rows.addEventListener('scroll', ({target}) => {
      if (!(target instanceof HTMLElement)) return;
      setAttribute(target, 'data-scrolled', target.scrollLeft !== 0);
      markRow(/** @type {HTMLElement} */ (target.parentElement), hiddenPart(target));
    }, {capture: true, passive: true});
    new ResizeObserver(() => this.mark()).observe(rows);
  }

  /** Mark the rows that go on beyond what is seen, in the next frame. */
  mark() {
    if (this.#marking) return;
    this.#marking = true;
    requestAnimationFrame(() => {
      this.#marking = false;
      // All are measured before one is changed: a change between would lay out the page once a row.
      const found = childrenOf(this.rows).map(row => /** @type {const} */ ([row, hiddenPart(find(row, '.tokens'))]));
      for (const [row, part] of found) markRow(row, part);
    });
  }

  /**
   * Read on in a row, or go back to its beginning from its end.
   * @param {HTMLElement} sign
   */
  readOn(sign) {
    const row = /** @type {HTMLElement} */ (sign.parentElement), tokens = find(row, '.tokens');
    const towards = getComputedStyle(tokens).direction === 'rtl' ? -1 : 1;
    const note = tokens.querySelector('.stopped:last-child'), covered = note && getComputedStyle(note).position === 'sticky' ? note.clientWidth : 0;
    if (row.dataset.reads === 'back') tokens.scrollTo({left: 0, behavior: 'smooth'});
    else tokens.scrollBy({left: towards * STEP * (tokens.clientWidth - covered), behavior: 'smooth'});
  }
}

/** @param {HTMLElement} row @param {'on' | 'back' | null} part that is out of sight */
function markRow(row, part) {
  setAttribute(row, 'data-reads', part);
  if (part) setAttribute(find(row, '.onward'), 'data-tip', TIPS[part]);
}
