// What a click on a row means: the text and token ids it inserts, and what is left of the branch after it.
/** @import {Branch, BranchRemainder, Choice, DrawnOther, DrawnRow, Row, Span, View} from './types.d.ts' */
import {endsInWord} from './figures_and_labels.js';

/** Why a token of the example of a first visit is neither changed nor banned. */
export const EXAMPLE_IS_FIXED = 'The recorded example cannot be changed: choose one of its tokens, or write something.';
const WORD_STARTS = /^[\p{L}\p{N}]/u, SIGN_AT_END = /[,.;:!?…)]$/;
const SEVERAL_TOKENS = 'This is made of several tokens, and only one token can be banned.';

/**
 * The choice of a row up to one of its pieces.
 * @param {DrawnRow} row
 * @param {number} index of the row
 * @param {number} token index of the piece
 * @returns {Choice}
 */
export function choiceOf(row, index, token) {
  const {branch} = row, {tokens} = row.pieces[token];
  return {
    revision: row.revision, branch: index, token,
    text: textUpTo(row, token), ids: branch.ids.slice(0, tokens), healed: row.healed,
    logprobs: branch.logprobs.slice(0, tokens), rest: remainderAfter(row, tokens), written: writtenUpTo(row, token), chosenLogprobs: chosenLogprobs(row, token),
  };
}

/**
 * The text of a row's pieces, up to this one included.
 * @param {Pick<Row, 'pieces'>} row
 * @param {number} token index of the piece
 */
export const textUpTo = (row, token) => row.pieces.slice(0, token + 1).map(piece => piece.text).join('');

/**
 * The spans of that text that a person has written into the row.
 * @param {Pick<Row, 'pieces'>} row
 * @param {number} token index of the last piece
 */
function writtenUpTo({pieces}, token) {
  /** @type {Span[]} */
  const found = [];
  let at = 0;
  for (const {text, isEdited} of pieces.slice(0, token + 1)) {
    if (isEdited) found.push([at, at + text.length]);
    at += text.length;
  }
  return found;
}

/**
 * The log-probability of each stretch of that text that the person has not written, in order: that of its tokens together, after
 * the text before it.
 * @param {Pick<Row, 'branch' | 'pieces'>} row
 * @param {number} token index of the last piece
 */
function chosenLogprobs({branch, pieces}, token) {
  /** @type {number[]} */
  const sums = [];
  let begun = 0, isWritten = true;
  for (const {tokens, isEdited = false} of pieces.slice(0, token + 1)) {
    const own = branch.logprobs.slice(begun, tokens).reduce((sum, one) => sum + one, 0);
    if (!isEdited) sums.push(isWritten ? own : (sums.pop() ?? 0) + own);
    [begun, isWritten] = [tokens, isEdited];
  }
  return sums;
}

/**
 * The choice of a beginning that no row has.
 * @param {Pick<DrawnOther, 'ids' | 'text' | 'logprobs'>} other
 * @param {number} token its index in the list
 * @param {{revision: number, healed: boolean}} view its revision, and whether its branches are healed
 * @returns {Choice}
 */
export const choiceOfOther = ({ids, text, logprobs}, token, {revision, healed}) =>
  ({revision, branch: null, token, text, ids, healed, logprobs, rest: null, written: [], chosenLogprobs: []});

/**
 * The space to insert after an accepted text, so that it does not join the word after the caret. Empty where no space is
 * missing, and where the caret is within a word that the text continues.
 * @param {string} before the text before the caret
 * @param {string} accepted
 * @param {string} after the text after the caret
 */
export function gapBehind(before, accepted, after) {
  const beginsWord = !before || /\s$/.test(before) || /^\s/.test(accepted);
  return beginsWord && WORD_STARTS.test(after) && (endsInWord(accepted) || SIGN_AT_END.test(accepted)) ? ' ' : '';
}

/**
 * What is left of a branch after its first tokens, with the packed nodes it needs; null if no text is left.
 * @param {Pick<Row, 'branch' | 'nodes'>} row
 * @param {number} tokens
 * @returns {BranchRemainder | null}
 */
function remainderAfter({branch, nodes}, tokens) {
  const pieces = branch.pieces.filter(piece => piece.tokens > tokens).map(piece => ({...piece, tokens: piece.tokens - tokens}));
  if (!pieces.length) return null;
  const packed = (branch.at || []).slice(tokens).map(index => nodes?.[index] ?? '');
  return {
    ids: branch.ids.slice(tokens), logprobs: branch.logprobs.slice(tokens), pieces, ended: branch.ended, healed: false,
    ...(branch.repeats ? {repeats: true} : {}), ...editedAfter(branch, tokens),
    ...(packed.length && packed.every(Boolean) ? {nodes: packed, at: packed.map((_, index) => index)} : {}),
  };
}

/** @type {(branch: Branch, tokens: number) => {edited?: Span, earlier_edits?: Span[]}} what of the written parts comes after the first tokens, as fields */
function editedAfter({edited, earlier_edits: earlier = []}, tokens) {
  /** @type {(span: Span) => Span} */
  const moved = ([from, to]) => [Math.max(0, from - tokens), to - tokens];
  const left = earlier.filter(([, to]) => to > tokens).map(moved);
  return {...(edited && edited[1] > tokens ? {edited: moved(edited)} : {}), ...(left.length ? {earlier_edits: left} : {})};
}

/**
 * The index of the piece that completes a row's first word: the last piece if none does, -1 if there are no pieces.
 * @param {Pick<Row, 'pieces'>} row
 */
export function nextWordEnd({pieces}) {
  const found = pieces.findIndex(piece => piece.ends >= 1);
  return found < 0 ? pieces.length - 1 : found;
}

/**
 * The token that a ban of a piece or of another beginning excludes: its last one. A healed first token is named with
 * the typed characters that it replaces.
 *
 * A piece of several tokens cannot be banned, because its last token also occurs in other words: `unbannable` says so. Nothing
 * of a stored view, which is the recorded example, can.
 * @param {{text: string | null, ids: number[]}} piece
 * @param {boolean} first whether the row begins with the piece
 * @param {{stored?: boolean, view: {branches: Pick<Branch, 'healed'>[], given: View['given']}}} shown
 * @returns {{own: string, id: number, bannable: boolean, unbannable: string}}
 */
export function tokenToBan({text, ids}, first, {stored = false, view}) {
  const healed = view.branches.some(branch => branch.healed) && first, typed = healed && ids.length === 1 ? view.given : '';
  const isOne = ids.length <= 1 + Number(healed);
  return {own: typed + text, id: ids[ids.length - 1], bannable: !stored && isOne, unbannable: stored ? EXAMPLE_IS_FIXED : isOne ? '' : SEVERAL_TOKENS};
}
