// A whole row that was chosen while it grew: it is accepted once it is complete, and given up when anything else happens.
/** @import {DrawnRow} from './types.d.ts' */
/** @import {BranchViewEvent, BranchViewState} from './branch_view_state.js' */
import {tokensOfDepth} from './row_tokens.js';

/**
 * The row as the person saw it: the revision of its text, its index, and the token ids that it had.
 * @typedef {{revision: number, branch: number, ids: number[]}} AwaitedRow
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
 * The row to wait for; null if there is none, if it is whole, or if it belongs to an older text.
 * @param {BranchViewState} state
 * @param {number} branch
 * @returns {AwaitedRow | null}
 */
export function rowToAwait(state, branch) {
  const row = state.drawn.rows[branch];
  if (!row || row.revision < state.expectedRevision || isWhole(state, row)) return null;
  return {revision: row.revision, branch, ids: row.ids};
}

/**
 * The index of the awaited row among the drawn ones; -1 if it is not there. A row is the same as long as it begins with the
 * tokens that it had.
 * @param {BranchViewState} state
 */
export function awaitedIndex({awaited, drawn}) {
  if (!awaited) return -1;
  return drawn.rows.findIndex(({revision, ids}) => revision === awaited.revision && awaited.ids.every((id, index) => ids[index] === id));
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
