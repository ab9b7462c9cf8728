// The keys of the text box that accept branches, and the key that pauses. A tab that is not visible ignores them.
/** @import {TextOwner} from './text_owner.js' */
import {isPause, textKey} from '../core/shortcuts.js';
import {closestTo} from './events.js';

/**
 * @typedef {object} TextKeyActions each returns whether there was something to do
 * @property {(branch: number) => boolean} word accepts the next word of a row
 * @property {(branch: number) => boolean} whole accepts a whole row
 * @property {() => boolean} ghost accepts the ghost text
 * @property {() => boolean} hide hides the ghost text
 * @property {() => boolean} rows moves the focus to the branches
 * @property {() => boolean} pause
 */

/** @param {{box: HTMLTextAreaElement, draft: TextOwner, actions: TextKeyActions}} options */
export function listenToTextKeys({box, draft, actions}) {
  document.addEventListener('keydown', event => {
    if (draft.composing) return;
    const pauses = isPause(event) && box.checkVisibility() && !closestTo(event, 'dialog, .told');
    const done = pauses ? actions.pause() : event.target === box && runKey(event, draft, actions);
    if (done) event.preventDefault();
  }, {capture: true});
}

/**
 * Run the action of a key. Returns whether the key has no other meaning.
 * @type {(event: KeyboardEvent, draft: TextOwner, actions: TextKeyActions) => boolean}
 */
function runKey(event, draft, actions) {
  const found = textKey(event, !draft.selected && draft.caret === draft.text.length);
  if (!found) return false;
  const done = actions[found.verb](found.branch ?? 0);
  return found.ours || done;
}
