// A whole row that was chosen while it grew: it is accepted once it is complete, and given up when anything else happens.
/** @import {DrawnRow} from './types.d.ts' */
/** @import {BranchViewEvent, BranchViewState} from './branch_view_state.js' */
import {tokensOfDepth} from './row_tokens.js';

/**
 * The row as the person saw it: the revision of its text, its index, and the token ids that it had. These are null until there
 * is such a row.
 * @typedef {{revision: number, branch: number, ids: number[] | null}} AwaitedRow
 */

const VAIN = ['empty', 'paused', 'error'];             // states in which nothing is computed
const STEADY = ['likely', 'sampled', 'every_level'];   // modes in which a row that is long enough stays as it is

/**
 * Whether a row has all its tokens. In a view that still grows, this is known of rows that have ended and, in most modes, of
 * those that are as long as asked for.
 * @param {Pick<BranchViewState, 'status' | 'drawn'>} state
 * @param {DrawnRow} row
 */
export function isWhole({status, drawn: {wanted}}, row) {
  if (status.state !== 'thinking' || row.ended) return true;
  if (!STEADY.includes(wanted.mode ?? '')) return false;
  const byTokens = !wanted.oneWord && (wanted.until ?? 'tokens') === 'tokens';
  return byTokens ? row.ids.length >= tokensOfDepth(row, wanted.depth ?? Infinity) : !row.open;
}

/**
 * The row to wait for, which may not be there yet; null if it will not come, if it is whole, or if it belongs to an older text.
 * @param {BranchViewState} state
 * @param {number} branch
 * @returns {AwaitedRow | null}
 */
export function rowToAwait(state, branch) {
  const {expectedRevision, drawn: {rows}} = state, row = rows[branch];
  if (!row) return mayCome(state, branch) ? {revision: expectedRevision, branch, ids: null} : null;
  if (row.revision < expectedRevision || isWhole(state, row)) return null;
  return {revision: row.revision, branch, ids: row.ids};
}

/**
 * Whether a row may come that is not there yet: rows are computed, none of an older text are shown, and none are hidden.
 * @type {(state: BranchViewState, branch: number) => boolean}
 */
const mayCome = ({status, veiled, settings: {k = 0}, expectedRevision, drawn: {rows}}, branch) =>
  status.state === 'thinking' && !veiled && branch < k && rows.every(row => row.revision === expectedRevision);

/**
 * The awaited row with the token ids that it has when it is there first.
 * @param {BranchViewState} state
 * @returns {AwaitedRow | null}
 */
export function withFirstTokens({awaited, drawn: {rows}}) {
  const row = awaited && !awaited.ids ? rows[awaited.branch] : null;
  return awaited && row?.revision === awaited.revision ? {...awaited, ids: row.ids} : awaited;
}

/**
 * The index of the awaited row among the drawn ones; -1 if it is not there. A row is the same as long as it begins with the
 * tokens that it had.
 * @param {BranchViewState} state
 */
export function awaitedIndex({awaited, drawn}) {
  const known = awaited?.ids;
  if (!known) return -1;
  return drawn.rows.findIndex(({revision, ids}) => revision === awaited.revision && known.every((id, index) => ids[index] === id));
}

/**
 * Whether an event ends the wait for a row: another text is expected, other settings are in force, or nothing is computed any
 * more.
 * @param {BranchViewState} state after the event
 * @param {BranchViewEvent} event
 */
export function endsWait({awaited, expectedRevision, status}, event) {
  if (!awaited) return false;
  if (awaited.revision !== expectedRevision || event.type === 'settings' || event.type === 'giveUp') return true;
  return (event.type === 'status' && event.state !== 'thinking') || (event.type === 'show' && VAIN.includes(status.state));
}
