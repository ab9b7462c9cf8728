// The entries of *Everything else*: beginnings that no row has, and other continuations of beginnings that several rows have.
/** @import {Branch, DrawnOther, Odds, OtherBeginning, Row, View} from './types.d.ts' */
import {isCertain, oddsTogether, sumOf} from './shares.js';
import {oddsOfAll} from './reheated_odds.js';

const LEAST_LEFT = 1e-6; // the least probability of other ways on that is listed
const MOST_PART = 0.1;   // the largest error of a word's share, as a part of it, with which it is shown as exact

/** @typedef {(path: {ids: number[], logprobs: number[], at?: number[]}) => Odds[]} PathOdds the odds of each token of a path */
/** @typedef {{other: DrawnOther, known: number[]}} Entry `known`: the first ids, whose odds are known; all of them unless there is a bound */

/**
 * Whether a path begins with these ids.
 * @type {(ids: number[], beginning: number[]) => boolean}
 */
export const beginsWith = (ids, beginning) => beginning.every((id, index) => ids[index] === id);

/**
 * The number of first elements that two lists have in common, such as the ids of two paths.
 * @template T
 * @param {T[]} one
 * @param {T[]} other
 */
export function sharedLength(one, other) {
  const differs = one.findIndex((element, index) => element !== other[index]);
  return differs < 0 ? one.length : differs;
}

/**
 * The likeliest beginnings that no row has, those of branches that are not shown among them, and other ways on from those
 * that rows have in common. Each is one token, or two where the first replaces the typed one.
 * @type {(view: View, rows: Row[], odds: PathOdds) => DrawnOther[]}
 */
export function otherBeginnings(view, rows, odds) {
  /** @type {Map<string, Entry>} */
  const found = new Map();
  for (const entry of [...view.branches.filter(branch => branch.ids.length).map(firstPiece), ...(view.rest || [])]) {
    const key = entry.ids.join(' ');
    if (found.has(key) || rows.some(row => beginsWith(row.ids, entry.ids))) continue;
    const figures = odds({...entry, at: entry.at ?? [0]});
    const other = {...entry, ...(entry.next_word && {next_word: undefined}), odds: oddsOfKnown(figures), raw: sumOf(entry.logprobs)};
    found.set(key, {other, known: entry.ids.slice(0, knownSize(figures))});
  }
  const others = [...withoutCounted([...found.values()], rows), ...otherWaysOn(rows)];
  // Of equal odds, as of all that temperature 0 or top-p excludes, the model's own decide.
  return others.sort((one, other) => other.odds.p - one.odds.p || other.raw - one.raw);
}

/**
 * The likeliest words that no row begins with, those of branches that are not shown among them, and what edited rows that
 * begin alike leave of their beginning. The share is an upper bound where it is not known whether a word goes on, and never
 * more than `left`, what the rows leave. The order is that of these figures, bounds among them. `joined` says that a row begins
 * with the same word after a space.
 * @type {(view: View, rows: Row[], left: number) => DrawnOther[]}
 */
export function otherWords(view, rows, left) {
  const shown = new Set(rows.map(row => row.next_word).filter(word => word !== undefined).map(word => word.text));
  const hidden = view.branches.filter(({next_word: word}) => word && !shown.has(word.text)).map(firstWord);
  // A row of the same word holds all ways on from it; edited rows, which have no word, hold their own only.
  const otherwise = otherWaysOn(rows).filter(({ids}) => !rows.some(row => row.next_word && beginsWith(row.ids, ids)));
  const words = [...hidden, ...(view.rest || [])].flatMap(entry => {
    if (!entry.next_word) return [];
    const {share, error} = entry.next_word, bound = !isCertain(entry.next_word) || error > share * MOST_PART;
    const p = bound ? Math.min(share + error, left) : share;
    return [{...entry, odds: bound ? {p, bound} : {p}, raw: p, ...(shown.has(` ${entry.text}`) && {joined: true})}];
  });
  return [...words, ...otherwise].sort((one, other) => other.odds.p - one.odds.p);
}

/**
 * The other ways on from beginnings that rows have in common: what the rows that begin so leave of each beginning.
 * @param {Row[]} rows
 * @returns {DrawnOther[]}
 */
function otherWaysOn(rows) {
  /** @type {Map<string, Row[]>} */
  const alike = new Map();
  for (const row of rows.filter(one => !one.extra && one.pieces.length)) {
    const key = row.ids.slice(0, row.pieces[0].tokens).join(' ');
    alike.set(key, [...(alike.get(key) ?? []), row]);
  }
  return [...alike.values()].flatMap(group => {
    const [{branch, figures}] = group, entry = firstPiece(branch), all = oddsOfAll(figures.slice(0, entry.ids.length));
    const held = oddsTogether(group), bound = Boolean(all.bound || held.bound), p = bound ? all.p : all.p - held.p;
    if (group.some(row => row.apart <= entry.ids.length) || p < LEAST_LEFT) return [];
    return [{...entry, end: false, otherwise: true, odds: bound ? {p, bound} : {p}, raw: Math.log(p)}];
  });
}

/**
 * The odds of a path of which only the first tokens' predictions may be known: those of these tokens are an upper bound.
 * @param {Odds[]} figures
 * @returns {Odds}
 */
function oddsOfKnown(figures) {
  const known = knownSize(figures);
  return known < figures.length ? {p: oddsOfAll(figures.slice(0, known)).p, bound: true} : oddsOfAll(figures);
}

/**
 * The number of a path's first tokens whose predictions are known; all of them where not even the first is.
 * @param {Odds[]} figures
 */
function knownSize(figures) {
  const unknown = figures.findIndex(figure => figure.raw);
  return unknown > 0 ? unknown : figures.length;
}

/**
 * The entries without those whose bound counts already, as a part of the share of a row or of another entry.
 * @type {(entries: Entry[], rows: Row[]) => DrawnOther[]}
 */
function withoutCounted(entries, rows) {
  const counted = [...rows.map(({ids, apart}) => ids.slice(0, apart)), ...entries.filter(({other}) => !other.odds.bound).map(({other}) => other.ids)];
  return entries.filter(({other, known}) => {
    if (!other.odds.bound) return true;
    if (counted.some(ids => beginsWith(known, ids) || beginsWith(ids, known))) return false;
    counted.push(known);
    return true;
  }).map(({other}) => other);
}

/**
 * @param {Branch} branch
 * @returns {OtherBeginning}
 */
function firstWord({ids, logprobs, at, pieces, ended, next_word}) {
  const length = Math.max(1, next_word?.tokens ?? 1), text = pieces.filter(piece => piece.tokens <= length).map(piece => piece.text).join('');
  return {
    ids: ids.slice(0, length), logprobs: logprobs.slice(0, length), at: at?.slice(0, length),
    text: text || null, end: ended && !text, next_word,
  };
}

/**
 * @param {Branch} branch
 * @returns {OtherBeginning}
 */
function firstPiece({ids, logprobs, at, pieces, ended}) {
  const length = pieces[0]?.tokens ?? 1;
  return {
    ids: ids.slice(0, length), logprobs: logprobs.slice(0, length), at: at?.slice(0, length),
    text: pieces[0]?.text ?? null, end: ended && ids.length === length,
  };
}
