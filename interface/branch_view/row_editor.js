// The field over a token in which a person writes what shall stand there instead.
/** @import {DrawnRow} from '../web/core/types.d.ts' */
import {closestTo} from '../web/ui/events.js';
import {make, setAttribute} from '../web/ui/elements.js';
import {nameKey} from '../web/core/shortcuts.js';
import {FINGER} from '../web/ui/window_sizes.js';
import {spokenQuote} from '../web/core/figures_and_labels.js';

const ROOM = 48;   // pixels that the field is wider than the token
const LEAST = 96;  // its least width in pixels
const GAP = 2;     // pixels between the field and the line below it
const KEYS = 'Enter: use it · Esc: leave it';
const AWAY = 8;    // pixels that the token may move before the field, which stays, is closed
const MOST = 160;  // characters; the server takes some more

/** One field at a time, over the token that is changed. What was typed is used as well when the focus moves elsewhere: undo takes it back. */
export class RowEditor {
  /** @type {HTMLInputElement | null} */
  #field = null;
  /** @type {HTMLElement | null} the line below the field */
  #keys = null;
  /** @type {HTMLElement | null} the token below the field; those after it, which will be computed again, are grey meanwhile */
  #token = null;
  /** @type {(event: Event) => void} */
  #onScroll = () => {};
  #closing = new AbortController();   // aborted when the field is closed

  /**
   * @param {HTMLElement} root the field is put into it
   * @param {(row: DrawnRow, piece: number, typed: string) => void} onDone called with what was typed, at Enter or where
   *   the focus leaves a changed field
   */
  constructor(root, onDone) {
    this.root = root;
    this.onDone = onDone;
    root.addEventListener('scroll', event => this.#onScroll(event), {capture: true, passive: true});
  }

  /**
   * Open the field over a token.
   * @param {HTMLElement} button
   * @param {DrawnRow} row
   * @param {number} piece
   */
  open(button, row, piece) {
    this.close();
    const active = document.activeElement, back = active instanceof HTMLTextAreaElement ? active : button;
    const {text} = row.pieces[piece], token = button.getBoundingClientRect(), outer = this.root.getBoundingClientRect();
    const field = this.#field = make('input', {
      className: 'row-editor', type: 'text', value: text.trim(), maxLength: MOST, dir: 'auto', autocomplete: 'off', spellcheck: false,
      ariaLabel: `Change ${text.trim() ? spokenQuote(text) : 'this sign'}: Enter or Tab puts the new text there, Escape leaves it`,
    });
    this.#token = button;
    setAttribute(button, 'data-editing', true);
    const left = token.left - outer.left;
    field.style.cssText = `top: ${token.top - outer.top}px; height: ${token.height}px`;
    const placeIn = (/** @type {number} */ width) => this.#place(field, {left, width, right: left + token.width, room: outer.width});
    placeIn(Math.max(LEAST, token.width + ROOM));
    field.addEventListener('input', () => {
      if (field.scrollWidth > field.clientWidth) placeIn(field.scrollWidth + ROOM);
    });
    field.addEventListener('keydown', event => this.#onKey(event, back, () => this.onDone(row, piece, field.value)));
    field.addEventListener('blur', () => {
      // A blur comes also when the field was closed, or when the window loses the focus: nothing is used then.
      if (this.#field !== field || !document.hasFocus()) return;
      this.close();
      if (field.value.trim() !== text.trim()) this.onDone(row, piece, field.value);
    });
    // The field's name says the same as the keys.
    const keys = this.#keys = make('small', {className: 'row-editor-keys'}, make('span', {className: 'keys-only', text: KEYS, ariaHidden: 'true'}), make('span', {className: 'finger-only'},
      this.#makeButton('Use it', back, () => this.onDone(row, piece, field.value)), this.#makeButton('Cancel', back)));
    this.root.append(field, keys);
    keys.style.cssText = `left: ${Math.max(0, Math.min(left, outer.width - keys.offsetWidth))}px; top: ${token.bottom - outer.top + GAP}px`;
    // The field closes without a change when its own row is scrolled so that the token moves, and when another row is scrolled.
    this.#onScroll = event => {
      const tokens = closestTo(event, '.tokens'), isOther = tokens !== null && !tokens.contains(button);
      if (isOther || Math.abs(button.getBoundingClientRect().left - token.left) > AWAY) this.#leave(back);
    };
    field.focus({preventScroll: true});
    field.select();
    if (!matchMedia(FINGER).matches) return;
    // The buttons may be below the window, or below the screen keyboard that the field opens.
    const showButtons = () => keys.scrollIntoView({block: 'nearest'});
    this.#closing = new AbortController();
    visualViewport?.addEventListener('resize', showButtons, {signal: this.#closing.signal});
    showButtons();
  }

  /**
   * A button that closes the field. A press on it leaves the focus in the field, which would else use what was typed.
   * @param {string} text
   * @param {HTMLElement} back gets the focus then
   * @param {() => void} [then]
   */
  #makeButton(text, back, then = () => {}) {
    const button = make('button', {tabIndex: -1, text});
    button.addEventListener('mousedown', event => event.preventDefault());
    button.addEventListener('click', event => {
      event.stopPropagation();
      this.#leave(back);
      then();
    });
    return button;
  }

  /** Close the field, and give the focus back. @param {HTMLElement} back the text that had it, or the token */
  #leave(back) {
    this.close();
    back.focus({preventScroll: true});
  }

  close() {
    const field = this.#field;
    this.#field = null;
    this.#closing.abort();
    this.#onScroll = () => {};
    if (this.#token) setAttribute(this.#token, 'data-editing', false);
    this.#token = null;
    field?.remove();
    this.#keys?.remove();
  }

  /**
   * Enter, Tab and Escape close the field, and give the focus back to the text that had it, or to the token. Enter and Tab use
   * what was typed, as a click elsewhere does.
   * @type {(event: KeyboardEvent, back: HTMLElement, done: () => void) => void}
   */
  #onKey(event, back, done) {
    const meaning = event.key === 'Tab' ? 'keep' : nameKey(event);
    event.stopPropagation();
    if (!meaning) return;
    event.preventDefault();
    this.#leave(back);
    if (meaning === 'keep') done();
  }

  /**
   * Give a field a width, and its place, in a line with this room; the tokens after the edited one move aside.
   * @type {(field: HTMLElement, wanted: {left: number, width: number, right: number, room: number}) => void}
   */
  #place(field, {left, width, right, room}) {
    const most = Math.min(width, room), start = Math.max(0, Math.min(left, room - most));
    field.style.width = `${most}px`;
    field.style.left = `${start}px`;
    const aside = this.#token?.matches(':dir(rtl)') ? Math.min(0, start - left) : Math.max(0, start + most - right);
    this.root.style.setProperty('--aside', `${aside}px`);
  }
}
