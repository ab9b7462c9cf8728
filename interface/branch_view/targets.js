// The buttons of the branch view, and what they stand for.
/** @import {Target} from '../web/core/branch_view_state.js' */

/** The buttons that can be accepted. */
export const CHOICES = 'button[data-token], button[data-rest]';

/**
 * What a button stands for: a piece of a row, or another beginning; null for other buttons.
 * @param {HTMLElement | null} button
 * @returns {Target | null}
 */
export function targetOf(button) {
  const {token, rest} = button?.dataset ?? {}, row = button?.closest('.branch');
  if (rest !== undefined) return {other: Number(rest)};
  return token !== undefined && row instanceof HTMLElement ? {branch: Number(row.dataset.branch), piece: Number(token)} : null;
}
