// How the tokens of a word stand close together though each is wide enough for a finger: a narrow one lies over the room that
// its neighbour does not need.
/** @import {RowPiece} from './types.d.ts' */
import {visibleText} from './figures_and_labels.js';

const LEAST = 1.5;     // rem: the least width of a token, which a finger needs
const FONT = 1.0625;   // rem: the size of the rows' font
/** Widths in font sizes that common serif fonts have at least. @type {[RegExp, number][]} */
const WIDTHS = [
  [/[\p{M}\u200b-\u200f]/u, 0],
  [/[ijlt.,:;'’‘!|/ ]/u, 0.25],
  [/[frsI()[\]"“”-]/u, 0.33],
  [/[mwMW…—]/u, 0.7],
  [/[A-Z]/u, 0.55],
  [/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u, 1],
];
const USUAL = 0.44;

/** @param {string} text of a token @returns {number} its width in rem, at least */
const widthOf = text =>
  FONT * [...visibleText(text)].reduce((sum, character) => sum + (WIDTHS.find(([pattern]) => pattern.test(character))?.[1] ?? USUAL), 0);

/**
 * Whether a token follows what is before it in its row without a space; false where there is no such token.
 * @param {Pick<RowPiece, 'text'>[]} pieces
 * @param {number} index of the token
 * @param {string} [letters] of the word that the row continues, which are shown before its first token
 */
export const isJoined = (pieces, index, letters = '') =>
  /\S$/.test(index ? pieces[index - 1].text : letters) && /^\S/.test(pieces[index]?.text ?? '');

/** @typedef {{start: number, end: number}} Overlap how far a token lies over its neighbours, in rem */

/**
 * The overlaps of a row's tokens. Only a narrow token within a word has one: the first of a word has room before it, the last
 * one after it. What is left of each neighbour is wide enough for a finger.
 * @param {Pick<RowPiece, 'text'>[]} pieces
 * @param {string} [letters] of the word that the row continues; no finger needs them, so that a token may cover them
 * @returns {Overlap[]}
 */
export function tokenOverlaps(pieces, letters = '') {
  const widths = pieces.map(({text}) => widthOf(text)), rooms = widths.map(width => Math.max(0, width - LEAST));
  return widths.map((width, index) => {
    const overlap = {start: 0, end: 0};
    if (width >= LEAST || !isJoined(pieces, index, letters) || !isJoined(pieces, index + 1)) return overlap;
    overlap.start = Math.min(LEAST - width, index ? rooms[index - 1] : widthOf(letters));
    if (index) rooms[index - 1] -= overlap.start;
    overlap.end = Math.min(LEAST - width - overlap.start, rooms[index + 1]);
    rooms[index + 1] -= overlap.end;
    return overlap;
  });
}
