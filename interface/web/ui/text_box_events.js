// What a text box tells of: typing by its kind, the caret, input methods, and every way to say undo.
import {historyKey, kindOfInput} from '../core/shortcuts.js';

const CARET_SETTLES = 150;   // milliseconds
const EDITABLE = 'input, textarea, select, [contenteditable]';
const VERBS = {historyUndo: 'undo', historyRedo: 'redo'};

function keys(draft, also, signal) {
  const ours = target => target === draft.box
    || (!target.closest?.(EDITABLE) && also().some(element => element?.contains(target)));
  document.addEventListener('keydown', event => {
    const verb = historyKey(event);
    if (!verb || event.defaultPrevented || !ours(event.target)) return;
    event.preventDefault();
    draft[verb]();
  }, {signal, capture: true});
}

function typing(draft, hear, signal) {
  draft.box.addEventListener('beforeinput', event => {
    const verb = VERBS[event.inputType];
    if (!verb) return draft.composing || hear.select();
    event.preventDefault();
    // Where it cannot be prevented, `input` follows and sees to it.
    if (event.defaultPrevented) hear.nativeUndo(verb);
  }, {signal});
  draft.box.addEventListener('input', event => {
    const verb = VERBS[event.inputType];
    if (verb) hear.nativeUndo(verb);
    else hear.input(kindOfInput(event.inputType));
  }, {signal});
}

function composition(draft, hear, signal) {
  draft.box.addEventListener('compositionstart', () => {
    hear.select();
    draft.composing = true;
  }, {signal});
  const end = () => {
    if (!draft.composing) return;
    draft.composing = false;
    hear.input('composition');
    draft.sync();
  };
  for (const name of ['compositionend', 'blur']) draft.box.addEventListener(name, end, {signal});
}

function caret(draft, hear, signal) {
  let settling = 0;
  document.addEventListener('selectionchange', () => {
    if (draft.box.getRootNode().activeElement !== draft.box) return;
    clearTimeout(settling);
    settling = setTimeout(() => draft.sync(), CARET_SETTLES);
    if (!draft.composing) hear.select();
    draft.dispatchEvent(new CustomEvent('caret', {detail: {caret: draft.caret, selected: draft.selected}}));
  }, {signal});
}

export function listenToTextBox(draft, {also, hear, signal}) {
  keys(draft, also, signal);
  typing(draft, hear, signal);
  composition(draft, hear, signal);
  caret(draft, hear, signal);
}
