// Forks: where a row leaves a row above it that begins with the same tokens.
/** @import {RowPiece} from './types.d.ts' */
/** @import {SpokenRow} from './branch_sentences.js' */
import {formatNumber} from './figures_and_labels.js';
import {lastWords, spokenBeginning} from './branch_sentences.js';

/** @typedef {{pieces: Pick<RowPiece, 'ids'>[], revision?: number}} ForkingRow */
/** @typedef {{piece: number, row: number}} Fork the first piece that is a row's own, and the index of the row that it leaves */

/** @type {(one: ForkingRow, other: ForkingRow) => number} */
function sharedPieces(one, other) {
  const differs = one.pieces.findIndex(({ids}, index) => ids.join(' ') !== other.pieces[index]?.ids.join(' '));
  return differs < 0 ? one.pieces.length : differs;
}

/**
 * Where a row leaves the row above it that it is the same as for longest, in buttons that can be seen; null if it begins like
 * none of them, or has nothing of its own.
 * @param {ForkingRow[]} rows in the order in which they are drawn
 * @param {number} index of the row
 * @returns {Fork | null}
 */
export function forkOf(rows, index) {
  const own = rows[index], above = rows.slice(0, index);
  const shared = above.map(row => (row.revision === own.revision ? sharedPieces(own, row) : 0));
  const piece = Math.max(0, ...shared);
  return piece > 0 && piece < own.pieces.length ? {piece, row: shared.indexOf(piece)} : null;
}

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
 * A bracket is drawn before the rows. It joins the rows without a fork: their first tokens differ. Returns for each row which part
 * of the bracket is drawn there: its upper end ("first"), its lower end ("last"), a line with an arm to the row ("arm"), or a line
 * without one, since the row has a fork ("passes"). Null for rows below the lower end, and for all rows if only one has no fork.
 * @param {(Fork | null)[]} forks of the rows, see `forkOf`
 * @returns {('first' | 'arm' | 'passes' | 'last' | null)[]}
 */
export function bracketParts(forks) {
  const first = forks.indexOf(null), last = forks.lastIndexOf(null);
  return forks.map((fork, index) => {
    if (first === last || index > last) return null;
    if (index === first || index === last) return index === first ? 'first' : 'last';
    return fork ? 'passes' : 'arm';
  });
}
