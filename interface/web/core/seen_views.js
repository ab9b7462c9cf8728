// A bounded record of the views that were shown: what could have been chosen, and how likely it was.
/** @import {DrawnRow, DrawnView, Odds, SeenView} from './types.d.ts' */
import {oddsOfAny} from './reheated_odds.js';

const MOST_VIEWS = 60;
const MOST_ROWS = 10;     // of a view
const MOST_PIECES = 12;   // of a row

/** The views that were shown lately, by the text before them. */
export class SeenViews {
  /** @type {Map<string, SeenView>} */
  #views = new Map();

  /** The views, the oldest first. */
  get list() { return [...this.#views.values()]; }

  clear() { this.#views.clear(); }

  /**
   * Add a complete view. The view of a half-typed word is dropped when more of the word was typed.
   * @param {string} text before the view
   * @param {Pick<DrawnView<DrawnRow>, 'rows' | 'others'>} drawn
   */
  add(text, {rows, others}) {
    const last = this.list.at(-1);
    if (last && isSameWord(last, text)) this.#views.delete(last.text);
    this.#views.delete(text);
    this.#views.set(text, seenView(text, rows.slice(0, MOST_ROWS), others));
    const [oldest] = this.#views.keys();
    if (this.#views.size > MOST_VIEWS) this.#views.delete(oldest);
  }
}

/**
 * Whether a text only goes on with the last word of a view's text, by characters that the view does not show.
 * @type {(view: SeenView, text: string) => boolean}
 */
function isSameWord(view, text) {
  const added = text.slice(view.text.length);
  return text.startsWith(view.text) && /^\S+$/.test(added) && /\S$/.test(view.text) && !view.odds.has(added);
}

/** @type {(text: string, rows: DrawnRow[], others: DrawnView['others']) => SeenView} */
function seenView(text, rows, others) {
  /** @type {Map<string, Odds>} */
  const odds = new Map();
  /** @type {Map<string, Odds>} */
  const firsts = new Map();
  /** @type {Set<string>} */
  const counted = new Set();
  for (const {pieces} of rows) {
    let path = '', ids = '';
    pieces.slice(0, MOST_PIECES).forEach((piece, index) => {
      path += piece.text;
      ids += `/${piece.ids.join(' ')}`;
      if (counted.has(ids)) return;
      counted.add(ids);
      addOdds(odds, path, piece.upTo);
      if (!index) addOdds(firsts, path, piece.odds);
    });
  }
  for (const other of others) if (other.text && !odds.has(other.text)) odds.set(other.text, other.odds);
  return {text, beginnings: [...firsts].map(([first, own]) => ({text: first, odds: own})), odds};
}

/**
 * Several tokens may spell one text: it has the odds of all of them.
 * @type {(odds: Map<string, Odds>, text: string, more: Odds) => void}
 */
const addOdds = (odds, text, more) => { odds.set(text, oddsOfAny([odds.get(text), more].filter(one => one !== undefined))); };
