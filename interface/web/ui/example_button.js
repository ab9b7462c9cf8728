// The buttons that fill an empty tab: with an example, or with the text of the Write tab.
import {find, setText} from './elements.js';
import {dispatch} from './events.js';

const NO_TEXT = 'There is no text in Write yet.';

/**
 * Show the button while its tab is empty.
 * @param {HTMLElement} element that holds the button
 * @param {object} tab
 * @param {() => unknown} tab.holds whether there is something in the tab
 * @param {() => void} tab.fill puts the example into the tab
 * @param {HTMLElement | (() => HTMLElement)} tab.field gets the focus, which the button loses
 * @param {EventTarget[]} tab.changes whose `input` and `change` events tell that this may be different
 */
export function offerExample(element, {holds, fill, field, changes}) {
  const button = find(element, '.try-example'), holder = button.closest('.try') ?? button;
  const paint = () => holder.toggleAttribute('hidden', Boolean(holds()));
  button.addEventListener('click', () => {
    if (!holds()) fill();
    (typeof field === 'function' ? field() : field).focus();
    paint();
  });
  for (const target of changes) for (const name of ['input', 'change']) target.addEventListener(name, paint);
  paint();
}

/**
 * Let a button put the text of the Write tab, which answers the event `written`, into an empty field. Without such a text a
 * sentence says so.
 * @param {HTMLElement} element that holds the button and the sentence
 * @param {HTMLTextAreaElement} field
 */
export function offerWrittenText(element, field) {
  const sentence = find(element, '.no-text');
  find(element, '.take-written').addEventListener('click', () => {
    const detail = {text: ''};
    dispatch(document, 'written', detail);
    const isText = detail.text.trim() !== '';
    setText(sentence, isText ? '' : NO_TEXT);
    if (!isText) return;
    fillField(field, detail.text);
    field.focus();
  });
}

/**
 * Write a text into a field, as if it were typed. The caret is put before it, so that its beginning is seen.
 * @param {HTMLTextAreaElement} field
 * @param {string} text
 */
export function fillField(field, text) {
  field.value = text;
  field.setSelectionRange(0, 0);
  field.scrollTop = 0;
  field.dispatchEvent(new Event('input', {bubbles: true}));
}
