// The pieces of a text by author, as exports and the replay show them.
/** @import {AuthoredPiece, AuthorRun} from './types.d.ts' */
import {formatPercent} from './figures_and_labels.js';
import {joinRuns} from './authorship.js';

const DIGITS = 6;   // of a probability

/** What each author is called. */
export const AUTHOR_NAMES = {
  typed: 'typed', pasted: 'pasted', chosen: 'chosen', example: 'opening of the example', earlier: 'earlier text',
};

/** What each author means. */
export const AUTHOR_MEANINGS = {
  typed: 'typed by the writer', pasted: 'pasted or dropped into the text', chosen: 'chosen among the model’s branches',
  example: 'the opening of the page’s example',
  earlier: 'stood in the text before its recorded history: it came with a link or a text file, or an older version kept it',
};

/**
 * The pieces of a text, from its start to its end. Their `order` is 1 for what was written first;
 * steps of which nothing is left in the text are not counted.
 * @param {string} text
 * @param {AuthorRun[]} runs
 * @returns {AuthoredPiece[]}
 */
export function authoredPieces(text, runs) {
  const numbers = [...new Set(runs.flatMap(({step}) => step ?? []))].sort((one, other) => one - other);
  const orders = new Map(numbers.map((number, index) => [number, index + 1]));
  let start = 0;
  return joinRuns(runs).map(({length, author, step, model = null, logprob = null, instruction}) => {
    const end = start + length, piece = text.slice(start, end), order = orders.get(step ?? -1) ?? null;
    const probability = logprob === null ? null : Number(Math.exp(logprob).toPrecision(DIGITS));
    const found = {start, end, text: piece, author, order, model, probability, ...(instruction && {instruction})};
    start = end;
    return found;
  });
}

/** The instruction that a piece was chosen under; empty if there was none. @param {string} [instruction] */
const toldPhrase = instruction => (instruction ? `told “${instruction}”` : '');

/**
 * The model of a piece, with the instruction that the piece was chosen under; null if neither is known.
 * @param {Pick<AuthoredPiece, 'model' | 'instruction'>} piece
 */
export const modelOfPiece = ({model, instruction}) => [model, toldPhrase(instruction)].filter(Boolean).join(', ') || null;

/**
 * A sentence on who wrote a piece.
 * @param {Pick<AuthoredPiece, 'author' | 'order' | 'model' | 'probability' | 'instruction'>} piece
 */
export function pieceSentence({author, order, model, probability, instruction}) {
  const odds = probability === null ? '' : `${formatPercent({p: probability})} chance of the whole piece`;
  return [AUTHOR_NAMES[author], order === null ? '' : `order ${order}`, odds, model ?? '', toldPhrase(instruction)].filter(Boolean).join(' · ');
}

/**
 * The number of characters of each author that has any, the most first. Characters are counted whole.
 * @param {Pick<AuthoredPiece, 'author' | 'text'>[]} pieces
 */
export function countByAuthor(pieces) {
  /** @type {Map<AuthoredPiece['author'], number>} */
  const counts = new Map();
  for (const {author, text} of pieces) counts.set(author, (counts.get(author) ?? 0) + [...text].length);
  return [...counts].sort(([, one], [, other]) => other - one);
}
