// The buttons of a sheet that every tab has: back, forward, and to the clipboard.
import {copyText} from './elements.js';

const NOT_COPIED = 'This browser does not allow copying here; select the text and press Ctrl+C.';

export function connectUndoButtons(draft, undo, redo) {
  const paint = () => {
    undo.setAttribute('aria-disabled', !draft.canUndo);
    redo.setAttribute('aria-disabled', !draft.canRedo);
  };
  for (const [button, verb] of [[undo, 'undo'], [redo, 'redo']]) {
    // A press of the mouse leaves the caret where it is.
    button.addEventListener('pointerdown', event => event.preventDefault());
    button.addEventListener('mousedown', event => event.preventDefault());
    button.addEventListener('click', () => draft[verb]());
  }
  draft.addEventListener('change', paint);
  paint();
}

export function connectCopyButton(draft, button, notice) {
  button.addEventListener('click', async () => {
    notice.say(await copyText(draft.text) ? 'The text is copied.' : NOT_COPIED);
  });
}
