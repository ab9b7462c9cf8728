// The buttons that sheets have: undo, redo and copy.
/** @import {Notice} from './notice.js' */
/** @import {TextOwner} from './text_owner.js' */
import {copyText} from './elements.js';

const NOT_COPIED = 'This browser does not allow copying here; select the text and press Ctrl+C.';

/**
 * @param {TextOwner} draft
 * @param {HTMLElement} undo
 * @param {HTMLElement} redo
 */
export function connectUndoButtons(draft, undo, redo) {
  const paint = () => {
    undo.setAttribute('aria-disabled', String(!draft.canUndo));
    redo.setAttribute('aria-disabled', String(!draft.canRedo));
  };
  undo.addEventListener('click', () => draft.undo());
  redo.addEventListener('click', () => draft.redo());
  for (const button of [undo, redo]) {
    // A press of the mouse leaves the caret where it is.
    button.addEventListener('pointerdown', event => event.preventDefault());
    button.addEventListener('mousedown', event => event.preventDefault());
  }
  for (const name of ['change', 'side']) draft.addEventListener(name, paint);
  paint();
}

/**
 * @param {TextOwner} draft
 * @param {HTMLElement} button
 * @param {Notice} notice
 */
export function connectCopyButton(draft, button, notice) {
  button.addEventListener('click', async () => {
    notice.show(await copyText(draft.text) ? 'The text is copied.' : NOT_COPIED);
  });
}
