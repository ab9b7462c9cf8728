// A bounded record of the views that were shown: what could have been chosen, and how likely it was. It is stored with the
// document.
/** @import {DrawnRow, DrawnView, Odds, SeenView, StoredOdds, StoredSeenView} from './types.d.ts' */
import {isPlainObject} from './json_values.js';
import {oddsOfAny} from './reheated_odds.js';

const MOST_VIEWS = 60;
const MOST_ROWS = 10;     // of a view
const MOST_PIECES = 12;   // of a row
const MOST_STORED = 200_000;   // characters of JSON: 60 views of five rows of five tokens have half of that
const STORED_DIGITS = 6;       // significant ones of stored odds; figures show two

/** The views that were shown lately, by the text before them. */
export class SeenViews {
  /** @type {Map<string, SeenView>} */
  #views = new Map();

  /** The views, the oldest first. */
  get list() { return [...this.#views.values()]; }

  clear() { this.#views.clear(); }

  /** The views as they are stored, the newest first: as many of the newest as there is room for. */
  get stored() {
    let before = '', room = MOST_STORED;
    /** @type {StoredSeenView[]} */
    const kept = [];
    for (const view of this.list.toReversed()) {
      const one = storedView(view, before);
      room -= JSON.stringify(one).length;
      if (room < 0) break;
      kept.push(one);
      before = view.text;
    }
    return kept;
  }

  /**
   * Take stored views, as older ones than those that are known.
   * @param {unknown} stored unchecked: a view of another form, and those that build on it, are left out
   */
  restore(stored) {
    const known = this.list, views = [...viewsFrom(stored).toReversed(), ...known].slice(-MOST_VIEWS);
    this.#views = new Map(views.map(view => [view.text, view]));
  }

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

/**
 * A view in its stored form. Texts of neighbours mostly begin alike: `same` is the number of characters in common.
 * @type {(view: SeenView, before: string) => StoredSeenView}
 */
function storedView({text, beginnings, odds}, before) {
  let same = 0;
  while (same < before.length && text[same] === before[same]) same += 1;
  const stored = {beginnings: beginnings.map(one => storedOdds(one.text, one.odds)), odds: [...odds].map(([path, own]) => storedOdds(path, own))};
  return {same, text: text.slice(same), ...stored};
}

/** @type {(text: string, odds: Odds) => StoredOdds} */
function storedOdds(text, {p, bound, atLeast, raw}) {
  const rounded = Number(p.toPrecision(STORED_DIGITS));
  return bound || atLeast || raw ? [text, rounded, {...(bound && {bound}), ...(atLeast && {atLeast}), ...(raw && {raw})}] : [text, rounded];
}

/** @type {(stored: unknown) => SeenView[]} the newest first */
function viewsFrom(stored) {
  let before = '';
  /** @type {SeenView[]} */
  const views = [];
  for (const one of Array.isArray(stored) ? stored.slice(0, MOST_VIEWS) : []) {
    const {same, text, beginnings, odds} = isPlainObject(one) ? /** @type {Record<string, any>} */ (one) : {};
    if (!Number.isInteger(same) || same < 0 || same > before.length || typeof text !== 'string') break;
    before = before.slice(0, same) + text;
    views.push({text: before, beginnings: oddsFrom(beginnings).map(([first, own]) => ({text: first, odds: own})), odds: new Map(oddsFrom(odds))});
  }
  return views;
}

/** @type {(stored: unknown) => [text: string, odds: Odds][]} */
const oddsFrom = stored => (Array.isArray(stored) ? stored : []).flatMap(one => {
  const [text, p, signs = {}] = Array.isArray(one) ? one : [];
  if (typeof text !== 'string' || !Number.isFinite(p) || p < 0 || p > 1 || !isPlainObject(signs)) return [];
  const odds = {p, ...(signs.bound === true && {bound: true}), ...(signs.atLeast === true && {atLeast: true}), ...(signs.raw === true && {raw: true})};
  return [/** @type {[string, Odds]} */ ([text, odds])];
});
