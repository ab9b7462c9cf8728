// While other rows are computed, the rows are at least as high as before: the first views of a search for words have few rows.

export class KeptHeight {
  #measured = {height: 0, count: -1};   // the rows' height in pixels when it last changed, and the number of rows then

  /** @param {HTMLElement} rows */
  constructor(rows) {
    this.rows = rows;
    new ResizeObserver(([{borderBoxSize: [{blockSize}]}]) => { this.#measured = {height: blockSize, count: rows.childElementCount}; }).observe(rows);
  }

  /**
   * Keep the present height as the least while other rows are computed, and no least height afterwards.
   * @param {boolean} computing
   */
  keepWhile(computing) {
    const {rows: {style}} = this;
    if (computing !== (style.minHeight !== '')) style.minHeight = computing ? `${this.#height}px` : '';
  }

  /** The height is measured again only where the number of rows has changed since: each measurement lays out the whole page. */
  get #height() {
    const {height, count} = this.#measured, {rows} = this;
    return rows.childElementCount === count ? height : rows.getBoundingClientRect().height;
  }
}
