// Forks: the first token in which a row differs from a row above it that begins with the same tokens. Also rows that have the same
// tokens as a row above them.
/** @import {RowPiece} from './types.d.ts' */
/** @import {SpokenRow} from './branch_sentences.js' */
import {formatNumber} from './figures_and_labels.js';
import {lastWords, spokenBeginning} from './branch_sentences.js';
import {sharedLength} from './other_beginnings.js';

/** @typedef {{pieces: Pick<RowPiece, 'ids'>[], revision?: number}} ForkingRow */
/** @typedef {{piece: number, row: number}} Fork the first piece that is a row's own, and the index of the row that it leaves */

/** The ids of each piece of a row as a string. @param {ForkingRow} row */
const keysOf = ({pieces}) => pieces.map(({ids}) => ids.join(' '));

/**
 * The fork of a row: the row above it with which it has the most first pieces in common, and the first piece after them. Null if no
 * row above begins with the same piece, or if all pieces of the row are in common.
 * @param {ForkingRow[]} rows in the order in which they are drawn
 * @param {number} index of the row
 * @returns {Fork | null}
 */
export function forkOf(rows, index) {
  const own = rows[index], above = rows.slice(0, index);
  const shared = above.map(row => (row.revision === own.revision ? sharedLength(keysOf(own), keysOf(row)) : 0));
  const piece = Math.max(0, ...shared);
  return piece > 0 && piece < own.pieces.length ? {piece, row: shared.indexOf(piece)} : null;
}

/**
 * The index of the first row above a row that has the same tokens, as random draws may have; null if there is none.
 * @param {{ids: number[], revision?: number}[]} rows in the order in which they are drawn
 * @param {number} index of the row
 */
export function sameRowAbove(rows, index) {
  const {ids, revision} = rows[index], key = ids.join(' ');
  const above = rows.slice(0, index).findIndex(row => row.revision === revision && row.ids.join(' ') === key);
  return key && above >= 0 ? above : null;
}

/**
 * Says at the end of a row that a row above it has the same tokens.
 * @param {number} above its index
 */
export const samePhrase = above => `same as row ${formatNumber(above + 1)}`;

/**
 * The same as a sentence.
 * @param {number} above
 */
export const sameSentence = above =>
  `This row has the same tokens as row ${formatNumber(above + 1)}: both were drawn. What the rows hold together counts them once.`;

/**
 * What the sign of a fork means.
 * @param {Fork} fork
 */
export const forkSentence = ({row}) =>
  `Fork: up to here this row is the same as row ${formatNumber(row + 1)}; from here on it goes another way.`;

/**
 * The same for a row's name, in which nothing can be seen: the row that it leaves, and the last words that both have. They are cut
 * before their signs are named: the names alone could fill their place.
 * @type {(fork: Fork, row: SpokenRow, before: string) => string} `before`: the end of the text before the rows
 */
export function partingPhrase({row, piece}, {pieces, pinned}, before) {
  const text = pieces.slice(0, piece).map(one => one.text).join(''), words = lastWords(text);
  const spoken = spokenBeginning({pieces: [{text: words}], pinned: pinned || words !== text}, before);
  return `parts from branch ${formatNumber(row + 1)} after “${spoken}”`;
}

/**
 * What a screen reader says of the bracket where the focus enters the rows; empty if there is none.
 * @param {number} ways how many rows the bracket joins
 */
export const waysSentence = ways => (ways ? `Fork: the text can go on here in ${formatNumber(ways)} ways.` : '');

/**
 * A bracket is drawn before the rows. It joins the rows whose first tokens differ. Returns for each row which part of the bracket is
 * drawn there: its upper end ("first"), its lower end ("last"), a line with an arm to the row ("arm"), or a line without one, since
 * the row begins like one above it ("passes"). Null for rows below the lower end, and for all rows if they all begin alike.
 * @param {boolean[]} alike for each row whether it has a fork, see `forkOf`, or is the same as one above it
 * @returns {('first' | 'arm' | 'passes' | 'last' | null)[]}
 */
export function bracketParts(alike) {
  const first = alike.indexOf(false), last = alike.lastIndexOf(false);
  return alike.map((isAlike, index) => {
    if (first === last || index > last) return null;
    if (index === first || index === last) return index === first ? 'first' : 'last';
    return isAlike ? 'passes' : 'arm';
  });
}
