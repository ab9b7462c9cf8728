// The keys of the text box that accept branches, and the key that pauses. A tab that is not visible ignores them. Who passes
// through the page by keys passes the box too: Tab accepts the ghost text only once something was done there.
/** @import {TextOwner} from './text_owner.js' */
import {isPause, textKey} from '../core/shortcuts.js';
import {closestTo} from './events.js';

const MOVING = ['Tab', 'Enter', ' '];   // keys that may move the focus into the box: Tab itself, the others by the button that they press

/**
 * @typedef {object} TextKeyActions each returns whether there was something to do
 * @property {(branch: number) => boolean} word accepts the next word of a row
 * @property {(branch: number) => boolean} whole accepts a whole row
 * @property {() => boolean} ghost accepts the ghost text
 * @property {() => boolean} guess moves the focus to the guess of the next word, where one is asked for first
 * @property {() => boolean} hide hides the ghost text
 * @property {() => boolean} rows moves the focus to the branches
 * @property {() => boolean} pause
 * @property {() => void} begin called when something is done in the box after a key has reached it: from then on Tab accepts
 */

/**
 * Returns a function that tells whether Tab leads on, and accepts nothing.
 * @param {{box: HTMLTextAreaElement, draft: TextOwner, actions: TextKeyActions}} options
 * @returns {() => boolean}
 */
export function listenToTextKeys({box, draft, actions}) {
  let moving = false;    // whether the last key was one of MOVING, outside the box
  let passing = false;   // whether such a key has brought the focus here, and nothing else has happened: then Tab leads on
  const begin = () => {
    if (passing) actions.begin();
    passing = false;
  };
  for (const type of ['pointerdown', 'input']) box.addEventListener(type, begin);
  box.addEventListener('focus', () => { passing = moving; });
  document.addEventListener('pointerdown', () => { moving = false; }, {capture: true});
  document.addEventListener('keydown', event => {
    if (draft.composing) return;
    // The field over a token gives the focus back to who was writing.
    moving = MOVING.includes(event.key) && event.target !== box && !closestTo(event, '.row-editor');
    if (event.target === box && passing && event.key === 'Tab') {
      if (!event.shiftKey && actions.guess()) event.preventDefault();
      return;
    }
    if (event.target === box && !isModifier(event)) begin();
    const pauses = isPause(event) && box.checkVisibility() && !closestTo(event, 'dialog, .told');
    const done = pauses ? actions.pause() : event.target === box && runKey(event, draft, actions);
    if (done) event.preventDefault();
  }, {capture: true});
  return () => passing;
}

/** Whether a key does nothing alone. @param {KeyboardEvent} event */
const isModifier = ({key}) => ['Shift', 'Control', 'Alt', 'Meta'].includes(key);

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
