// The events of a text box: edits by their kind, the caret, input methods, and every way to undo.
/** @import {TextOwner} from './text_owner.js' */
import {historyKey, kindOfInput} from '../core/shortcuts.js';
import {dispatch} from './events.js';

const CARET_SETTLES = 150;   // milliseconds
/** What has an undo of its own: what is typed. */
const EDITABLE = 'input:not([type=radio], [type=checkbox], [type=range]), textarea, [contenteditable]';
/** @type {Record<string, 'undo' | 'redo'>} */
const VERBS = {historyUndo: 'undo', historyRedo: 'redo'};

/**
 * @typedef {object} TextBoxHandlers
 * @property {(kind: string) => void} onInput the text has changed, by this kind of edit
 * @property {() => void} onSelect the selection may have changed
 * @property {() => void} onFocus the box has got the focus
 * @property {(verb: 'undo' | 'redo') => void} onNativeUndo the browser wants to undo, or has undone, by itself
 */

/** @type {(draft: TextOwner, also: () => (Element | null)[], signal: AbortSignal) => void} */
function listenToUndoKeys(draft, also, signal) {
  // After a click beside all controls the browser's own undo reaches the box, and its own redo, which has no step, does not.
  const isBesideAll = (/** @type {Element} */ target) => target === document.body && draft.box.checkVisibility() && !document.querySelector('dialog[open]');
  /** @param {Element} target */
  const isOurs = target => target === draft.box || isBesideAll(target)
    || (!target.closest?.(EDITABLE) && also().some(element => element?.contains(target)));
  document.addEventListener('keydown', event => {
    const verb = historyKey(event), target = /** @type {Element} */ (event.target);
    if (!verb || event.defaultPrevented || !isOurs(target)) return;
    // Behind an open dialog nothing changes, by the browser's own undo neither.
    event.preventDefault();
    if (target.closest?.('dialog')) return;
    draft[verb]();
    // What had the focus may be gone, as the rows of a text that is now empty.
    if (document.activeElement === document.body) draft.box.focus({preventScroll: true});
  }, {signal, capture: true});
}

/**
 * Whether the browser's own undo is meant for a draft. The browser has one list of undo steps for the page: its undo key reaches
 * the text box also from a field that has no step of its own, from a dialog, and from another tab.
 * @param {TextOwner} draft
 */
const isNativeUndoOurs = draft =>
  draft.hasFocus || (draft.box.checkVisibility() && !document.activeElement?.closest(`${EDITABLE}, dialog`));

/** @type {(draft: TextOwner, handlers: TextBoxHandlers, signal: AbortSignal) => void} */
function listenToEdits(draft, {onInput, onSelect, onNativeUndo}, signal) {
  draft.box.addEventListener('beforeinput', event => {
    const verb = VERBS[event.inputType];
    if (!verb) {
      if (!draft.composing) onSelect();
      return;
    }
    event.preventDefault();
    if (!isNativeUndoOurs(draft)) return;
    // An undo that cannot be prevented is followed by an `input` event.
    if (event.defaultPrevented) onNativeUndo(verb);
  }, {signal});
  draft.box.addEventListener('input', event => {
    const {inputType} = /** @type {InputEvent} */ (event), verb = VERBS[inputType];
    if (verb) onNativeUndo(verb);
    else onInput(kindOfInput(inputType));
  }, {signal});
}

/** @type {(draft: TextOwner, handlers: TextBoxHandlers, signal: AbortSignal) => void} */
function listenToComposition(draft, {onInput, onSelect}, signal) {
  draft.box.addEventListener('compositionstart', () => {
    onSelect();
    draft.composing = true;
  }, {signal});
  const end = () => {
    if (!draft.composing) return;
    draft.composing = false;
    onInput('composition');
    draft.sync();
  };
  for (const name of ['compositionend', 'blur']) draft.box.addEventListener(name, end, {signal});
}

/** @type {(draft: TextOwner, handlers: TextBoxHandlers, signal: AbortSignal) => void} */
function listenToCaret(draft, {onSelect, onFocus}, signal) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let settling;
  document.addEventListener('selectionchange', () => {
    if (!draft.hasFocus) return;
    clearTimeout(settling);
    settling = setTimeout(() => draft.sync(), CARET_SETTLES);
    if (!draft.composing) onSelect();
    dispatch(draft, 'caret', {caret: draft.caret, selected: draft.selected});
  }, {signal});
  draft.box.addEventListener('focus', onFocus, {signal});
  // The event of a caret that was moved just before may come after the focus has left.
  draft.box.addEventListener('blur', () => draft.sync(), {signal});
}

/**
 * Listen to a draft's text box until the signal aborts.
 * @param {TextOwner} draft
 * @param {object} options
 * @param {() => (Element | null)[]} options.also further elements in which the undo keys are the draft's
 * @param {TextBoxHandlers} options.handlers
 * @param {AbortSignal} options.signal
 */
export function listenToTextBox(draft, {also, handlers, signal}) {
  listenToUndoKeys(draft, also, signal);
  listenToEdits(draft, handlers, signal);
  listenToComposition(draft, handlers, signal);
  listenToCaret(draft, handlers, signal);
}
