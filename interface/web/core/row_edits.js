// Changes of rows before anything of them is accepted: what a change replaces, and what it puts there.
/** @import {BranchRemainder, DrawnRow, RowEdit, RowEditDetail} from './types.d.ts' */
import {sharedLength} from './other_beginnings.js';
import {spokenQuote} from './figures_and_labels.js';

export const MOST_EDITS = 8;   // of one view, as the server allows

/**
 * A change of a row as a step beside the text.
 * @typedef {{edit: RowEdit, text: string, pinned: BranchRemainder | null}} RowEditStep `text`: the text before the caret;
 *   `pinned`: the pinned row that the change replaced
 */

const CLOSING = /^[.,;:!?…)\]”»]+$/;

/** Said where a field for the change of a token was emptied. */
export const NOTHING_TYPED = 'Nothing was changed: no text was written in place of the token.';

/** Said where a banned token was written in place of another. @param {string} token */
export const bannedTextSentence = token => `Nothing was changed: ${spokenQuote(token)} is banned. To use it, first choose it beside “Never:”, which allows it again.`;

/**
 * The first banned token that a text surely has: it stands there between other kinds of characters. A part of a longer word is
 * none, since only the model's tokenizer knows the tokens of words. Undefined if there is none.
 * @param {string} text that is put in place of a token
 * @param {string[]} banned texts of tokens
 */
export const bannedTokenIn = (text, banned) => banned.find(token => token && placesOf(text, token).some(at => {
  const before = kindOf(text[at - 1]);
  return before !== 'space' && before !== kindOf(token[0]) && kindOf(token.at(-1)) !== kindOf(text[at + token.length]);
}));

/** @param {string} text @param {string} part @returns {number[]} where the part begins in the text */
const placesOf = (text, part) => Array.from({length: text.length}, (_, index) => index).filter(index => text.startsWith(part, index));

/** @param {string | undefined} character */
const kindOf = (character = '') => (/[\p{L}\p{M}\p{N}]/u.test(character) ? 'word' : /\s/.test(character) ? 'space' : character && 'sign');

/**
 * The text that replaces a token. A typed word or number keeps the leading white space of the token; a word that replaces a
 * closing sign, as a comma, or white space alone, as a line break, gets a space. A sign, or a text with white space of its own,
 * is taken as it was typed. Null if nothing was typed, or the text stays the same.
 * @param {string} original text of the token
 * @param {string} typed
 */
export function replacementText(original, typed) {
  const before = !original.trim() || (CLOSING.test(original) && /^\p{L}/u.test(typed)) ? ' ' : original.match(/^\s*/)?.[0] ?? '';
  const text = /^[\p{L}\p{N}]/u.test(typed) ? before + typed : typed;
  return text === '' || text === original ? null : text;
}

/**
 * The change of a row from one of its pieces on.
 * @param {Pick<DrawnRow, 'branch' | 'pieces' | 'revision' | 'pinned'>} row
 * @param {number} index of the piece
 * @param {string} text
 * @returns {RowEditDetail}
 */
export function editOf({branch, pieces, revision, pinned}, index, text) {
  const kept = index ? pieces[index - 1].tokens : 0;
  // The server does not know the changes that were made before a part of the row was accepted.
  const earlier = [...(branch.earlier_edits ?? []), ...(branch.edited ? [branch.edited] : [])].filter(([, end]) => end <= kept);
  return {revision, pinned, edit: {row: branch.ids, before: branch.ids.slice(0, kept), text, ...(earlier.length ? {earlier} : {})}};
}

/**
 * The changes of the rows after a text, among the steps beside it. A change that keeps a banned token does not count while the
 * ban does.
 * @param {Partial<RowEditStep>[]} steps
 * @param {string} text before the caret
 * @param {number[]} banned token ids
 * @returns {RowEdit[]}
 */
export const editsAfter = (steps, text, banned) => steps.flatMap(({edit, text: own}) =>
  (edit && own === text && !edit.before.some(id => banned.includes(id)) ? [edit] : [])).slice(0, MOST_EDITS);

/**
 * The rows while a change is computed: the row that is changed ends with the new text, and nothing of it can be accepted. A row
 * that has not grown to the place of the change stays as it is.
 * @param {DrawnRow[]} rows
 * @param {RowEdit} edit
 * @returns {DrawnRow[]}
 */
export function withChange(rows, edit) {
  const changed = rows.find(({branch}) => isRowOf(branch.ids, edit));
  return rows.map(row => (row === changed ? changingRow(row, edit) : row));
}

/** Whether these are the ids of the row that a change replaces: it may be longer or shorter now. @param {number[]} ids @param {RowEdit} edit */
const isRowOf = (ids, {row, before}) => ids.length >= Math.max(before.length, 1) && sharedLength(row, ids) === Math.min(row.length, ids.length);

/** @type {(row: DrawnRow, edit: RowEdit) => DrawnRow} */
function changingRow(row, {before, text}) {
  const kept = row.pieces.filter(({tokens}) => tokens <= before.length), tokens = before.length, unknown = {p: 0};
  const piece = {text, tokens, ends: 0, ids: [], odds: unknown, upTo: unknown, unsaid: 0, isEdited: true, isChanging: true};
  return {
    ...row, pieces: [...kept, piece], revision: -1, changing: true, ended: false, end: null, unsaid: 0, repeats: false, cut: false,
    open: true, limit: 0, unfollowed: false,
  };
}

/**
 * Where a changed row stands, and the last of its pieces that was put there, with which all of it is accepted; null if it is not among the rows.
 * @param {Pick<DrawnRow, 'branch' | 'pieces'>[]} rows
 * @param {Pick<RowEdit, 'before' | 'text'>} edit
 * @returns {{line: number, column: number} | null}
 */
export function editedPosition(rows, edit) {
  const {before} = edit, text = edit.text.trim();
  const line = rows.findIndex(({branch, pieces}) => branch.edited?.[0] === before.length && before.every((id, index) => branch.ids[index] === id)
    && pieces.filter(piece => piece.isEdited && piece.tokens > before.length).map(piece => piece.text).join('').trim().startsWith(text));
  return line < 0 ? null : {line, column: rows[line].pieces.findLastIndex(piece => piece.isEdited)};
}

/**
 * Where the row stands that an undone change has brought back, and its piece that the change had replaced; null if no row begins
 * like it up to there. Its end may be another one, or be missing while rows grow.
 * @param {Pick<DrawnRow, 'branch' | 'pieces'>[]} rows
 * @param {Pick<RowEdit, 'row' | 'before'>} edit
 * @returns {{line: number, column: number} | null}
 */
export function restoredPosition(rows, {row, before}) {
  const shared = rows.map(({branch}) => sharedLength(row, branch.ids)), most = Math.max(...shared), line = shared.indexOf(most);
  const column = most > before.length ? rows[line].pieces.findIndex(({tokens}) => tokens > before.length) : -1;
  return column < 0 ? null : {line, column};
}
