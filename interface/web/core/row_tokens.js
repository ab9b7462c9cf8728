// What a button of a row is: a token, and, where several make a word, a part of that word.
/** @import {Row, RowPiece} from './types.d.ts' */
import {continuedLetters, endsInWord, formatNumber, quotedText, spokenText} from './figures_and_labels.js';

/** @typedef {Pick<RowPiece, 'text'> & Partial<Pick<RowPiece, 'ends'>>} Piece */

/**
 * Whether a text continues the last word of another one.
 * @param {string} before
 * @param {string} after
 */
const continues = (before, after) => continuedLetters(before, after) !== '';

/**
 * The word that a piece of a row is a part of, with “…” where the row ends within it; empty if the piece is no part of a
 * longer word.
 * @param {Piece[]} pieces of the row
 * @param {number} index of the piece
 * @param {string} [letters] of the word that the row continues
 */
export function wordOfPiece(pieces, index, letters = '') {
  let first = index, last = index;
  while (first > 0 && continues(pieces[first - 1].text, pieces[first].text)) first -= 1;
  while (last + 1 < pieces.length && continues(pieces[last].text, pieces[last + 1].text)) last += 1;
  const typed = first === 0 ? letters : '';
  if (first === last && !typed) return '';
  const open = last === pieces.length - 1 && !pieces[last].ends;
  return `${typed}${pieces.slice(first, last + 1).map(({text}) => text).join('').trim()}${open ? '…' : ''}`;
}

/**
 * Whether a row is one word that may be longer: nothing is known of the word, or only a bound of its share.
 * @param {Pick<Row, 'branch' | 'share' | 'ended' | 'repeats' | 'unsaid' | 'ids' | 'next_word'> & {pieces: Piece[]}} row
 */
export function isPartOfWord({branch, share, ended, repeats, unsaid, ids, pieces, next_word: word}) {
  if (ended || repeats || unsaid || branch.word) return false;
  if (word) return Boolean(share.atLeast) && ids.length <= word.tokens;
  const last = pieces.at(-1), isOne = pieces.every(({text}, index) => !index || continues(pieces[index - 1].text, text));
  return last !== undefined && isOne && !last.ends && endsInWord(last.text);
}

/**
 * The name of a piece: “token “pt”, a part of “crept””; with the number of its tokens where it has several.
 * @param {{pieces?: RowPiece[], healed?: boolean}} row
 * @param {Pick<RowPiece, 'text'> & Partial<Pick<RowPiece, 'ids'>>} piece
 * @param {string} [letters] of the word that the row continues
 */
export function pieceName({pieces = [], healed = false}, piece, letters = '') {
  const index = pieces.findIndex(one => one === piece), word = index < 0 ? '' : wordOfPiece(pieces, index, letters);
  // The first token of a healed row stands in the text already.
  const count = (piece.ids?.length ?? 1) - Number(healed && index === 0 && (piece.ids?.length ?? 1) > 1);
  const kind = count > 1 ? `${formatNumber(count)} tokens` : 'token';
  const sign = /^\s+$/.test(piece.text) ? ` (${spokenText(piece.text)})` : '';
  return `${kind} ${quotedText(piece.text)}${sign}${word ? `, a part of ${quotedText(word)}` : ''}`;
}

/**
 * The number of a branch's first tokens that a depth shows. The first token of a healed branch replaces the typed one: it counts
 * only where it inserts characters.
 * @param {{healed: boolean, pieces: {tokens: number}[]}} branch
 * @param {number} depth
 */
export const tokensOfDepth = ({healed, pieces}, depth) => depth + Number(healed && pieces[0]?.tokens !== 1);

/**
 * The number of buttons that hold a row's first tokens; 0 if it has no button up to there.
 * @param {Pick<RowPiece, 'tokens'>[]} pieces
 * @param {number} tokens
 */
export const buttonsFor = (pieces, tokens) => pieces.findIndex(piece => piece.tokens >= tokens) + 1;

/**
 * The number of buttons whose tokens a row's share is the chance of: those of its next word, while shares are those of words,
 * else those up to the token that sets the row apart. 0 if the share is that of an ending, or not known.
 * @param {{apart: number, pieces: Pick<RowPiece, 'tokens'>[], next_word?: {text: string, tokens: number}}} row
 */
export function sharedButtons({apart, pieces, next_word: word}) {
  const tokens = word ? Number(word.text !== '') && word.tokens : apart;
  return tokens > 0 ? buttonsFor(pieces, tokens) || pieces.length : 0;
}
