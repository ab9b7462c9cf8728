// Changes of rows before anything of them is accepted: what a change replaces, and what it puts there.
/** @import {DrawnRow, RowEdit, RowEditDetail} from './types.d.ts' */
const MOST_EDITS = 8;   // of one view, as the server allows

/** @typedef {{revision: number, list: RowEdit[]}} RowEdits the changes of the rows of one revision of the text */

/** @type {RowEdits} */
export const NO_EDITS = {revision: -1, list: []};

/**
 * The text that takes the place of a token's: with its leading white space, unless a sign or white space was typed, or
 * nothing. Null where that changes nothing.
 * @param {string} original
 * @param {string} typed
 */
export function replacementText(original, typed) {
  const before = original.match(/^\s*/)?.[0] ?? '', text = /^[\p{L}\p{N}]/u.test(typed) ? before + typed : typed;
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
  return {revision, pinned, edit: {row: branch.ids, before: branch.ids.slice(0, kept), text}};
}

/**
 * The changes with one more; null if there are too many. Those of an older text no longer count.
 * @param {RowEdits} edits
 * @param {Pick<RowEditDetail, 'revision' | 'edit'>} added
 * @returns {RowEdits | null}
 */
export function withEdit(edits, {revision, edit}) {
  const list = [...editsAt(edits, revision), edit];
  return list.length > MOST_EDITS ? null : {revision, list};
}

/**
 * The changes without one that is undone.
 * @param {RowEdits} edits
 * @param {RowEdit} undone
 * @returns {RowEdits}
 */
export const withoutEdit = ({revision, list}, undone) => ({revision, list: list.filter(edit => edit !== undone)});

/**
 * The same changes for another revision of the same text: its prompt is another one. A change that keeps a banned token is left
 * out.
 * @param {RowEdits} edits
 * @param {number} revision
 * @param {number[]} banned token ids
 * @returns {RowEdits}
 */
export const editsKept = ({list}, revision, banned) => ({revision, list: list.filter(({before}) => !before.some(id => banned.includes(id)))});

/**
 * Where a changed row stands, and the first of its pieces that was put there; null if it is not among the rows.
 * @param {Pick<DrawnRow, 'branch' | 'pieces'>[]} rows
 * @param {Pick<RowEdit, 'before' | 'text'> | null} edit
 * @returns {{line: number, column: number} | null}
 */
export function editedPosition(rows, edit) {
  if (!edit) return null;
  const {before} = edit, text = edit.text.trim();
  const line = rows.findIndex(({branch, pieces}) => branch.edited?.[0] === before.length && before.every((id, index) => branch.ids[index] === id)
    && pieces.filter(piece => piece.isEdited).map(piece => piece.text).join('').trim().startsWith(text));
  return line < 0 ? null : {line, column: rows[line].pieces.findIndex(piece => piece.isEdited)};
}

/**
 * The changes of the rows of a revision.
 * @param {RowEdits} edits
 * @param {number} revision
 */
export const editsAt = (edits, revision) => (edits.revision === revision ? edits.list : []);
