// Script writes into a text box.
/** @import {Change} from '../core/types.d.ts' */
const LONG = 5000;   // characters: longer changes are slow as typed input

/**
 * Whether a text box has the focus, also inside a shadow root.
 * @param {HTMLTextAreaElement} box
 */
export const hasFocus = box => /** @type {Document | ShadowRoot} */ (box.getRootNode()).activeElement === box;

/** @type {(box: HTMLTextAreaElement, change: Change) => boolean} */
function insertAsTyped(box, {start, removed, inserted}) {
  box.setSelectionRange(start, start + removed.length);
  return inserted ? document.execCommand('insertText', false, inserted) : document.execCommand('delete');
}

/**
 * Replace a stretch of a text box. A box with the focus changes as if by typing, so that the browser's own menu keeps its
 * undo. A box without it does not take it, so that no keyboard appears on a touch screen.
 * @param {HTMLTextAreaElement} box
 * @param {Change} change
 */
export function replaceInTextBox(box, change) {
  const {start, removed, inserted} = change;
  if (!removed && !inserted) return;
  if (hasFocus(box) && removed.length + inserted.length <= LONG && insertAsTyped(box, change)) return;
  box.setRangeText(inserted, start, start + removed.length, 'end');
}
