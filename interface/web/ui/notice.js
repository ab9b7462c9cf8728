// A line for one sentence with at most one action.
import {findAll, make} from './elements.js';
import {historyKey} from '../core/shortcuts.js';

const SHOWN_FOR = 12_000;   // milliseconds; a notice with an action stays until it is closed

/** @typedef {{label: string, run: () => unknown}} NoticeAction */

/** The notice of a sheet. */
export class Notice {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {NoticeAction | null} */
  #action = null;
  text = '';   // the sentence that is shown
  #elsewhere = '';   // see `show`
  /** @type {HTMLElement | null} */
  #cameFrom = null;   // what had the focus before a button of the notice
  /** @type {HTMLElement | null} */
  #home = null;       // see `show`

  /** @param {HTMLElement} element empty; it gets the sentence, the button of the action, and one that closes the notice */
  constructor(element) {
    this.element = element;
    this.sentence = make('span', {className: 'sentence', dir: 'auto'});
    this.buttonName = make('span', {className: 'button-name spoken-only'});   // names the button after the sentence, for screen readers
    this.button = make('button', {className: 'action', hidden: true});
    const dismiss = make('button', {className: 'dismiss', text: '×', ariaLabel: 'Close this notice'});
    const spoken = make('div', {className: 'said-aloud'}, this.sentence, this.buttonName);
    spoken.setAttribute('role', 'status');
    element.append(spoken, this.button, dismiss);
    element.addEventListener('focusin', ({relatedTarget: from}) => {
      if (from instanceof HTMLElement && !element.contains(from)) this.#cameFrom = from;
    });
    this.button.addEventListener('click', () => {
      const run = this.#action?.run;
      this.clear();
      run?.();
    });
    // On the window: before the document, where the key undoes a step of the text.
    addEventListener('keydown', event => {
      if (event.target !== this.button || this.#action?.label !== 'Undo' || historyKey(event) !== 'undo') return;
      event.preventDefault();
      this.button.click();
    }, {capture: true});
    // In a narrow window the text keeps the focus: without it the notice would move before the button is released (see sheet.css).
    element.addEventListener('mousedown', event => { if (getComputedStyle(element).position === 'absolute') event.preventDefault(); });
    dismiss.addEventListener('click', () => this.clear());
    // Also when its tab is left or opened.
    new ResizeObserver(reserveRoom).observe(element);
  }

  /**
   * Show a sentence.
   * @param {string} sentence
   * @param {NoticeAction | null} [action]
   * @param {{stays?: boolean, focus?: boolean, elsewhere?: string, home?: HTMLElement | null}} [options] `stays`: until it is closed or
   *   replaced; true with an action. `focus`: move the keyboard focus to the button of the action. `elsewhere`: the sentence while
   *   another document is open, unless the notice is about the open one. `home`: what gets the focus of a button of the notice that
   *   is closed, in place of what had it before
   */
  show(sentence, action = null, {stays = Boolean(action), focus = false, elsewhere = '', home = null} = {}) {
    clearTimeout(this.#timer);
    if (!action && document.activeElement === this.button) this.#returnFocus();
    this.#elsewhere = elsewhere;
    this.#home = home;
    this.#setText(sentence);
    this.#offer(action);
    this.element.classList.add('said');
    this.element.classList.toggle('stays', stays);
    if (focus) this.#focusButton();
    reserveRoom();
    if (!stays) this.#timer = setTimeout(() => this.clear(), SHOWN_FOR);
  }

  /** Another document is open: close a notice that was about the one before. */
  documentChanged() {
    const elsewhere = this.#elsewhere;
    if (!elsewhere) this.clear();
    else if (elsewhere !== this.text) this.show(elsewhere, this.#action, {elsewhere, home: this.#home});
  }

  #returnFocus() { (this.#home ?? this.#cameFrom)?.focus(); }

  /** Close the notice. If one of its buttons has the focus, that returns to where it came from. */
  clear() {
    clearTimeout(this.#timer);
    if (this.element.contains(document.activeElement)) this.#returnFocus();
    this.#elsewhere = '';
    this.element.classList.remove('said', 'stays');
    this.#setText('');
    this.#offer(null);
    reserveRoom();
  }

  /** Focus the button of the action, and say that it has the focus. */
  #focusButton() {
    this.buttonName.textContent = ` The button ${this.button.textContent} has the focus.`;
    this.button.focus();
  }

  /** @param {NoticeAction | null} action */
  #offer(action) {
    this.#action = action;
    this.buttonName.textContent = action ? ` Button: ${action.label}.` : '';
    this.button.textContent = action?.label ?? '';
    this.button.hidden = !action;
  }

  /** @param {string} text */
  #setText(text) {
    this.text = text;
    this.sentence.textContent = text;
  }
}

/** Let the page of a phone begin below the notice that stays at the top of the window, which would cover the tabs: see page.css. */
function reserveRoom() {
  const notices = findAll(document, '.sheet:not(.talking) .notice.stays');
  const room = Math.max(0, ...notices.map(({offsetHeight}) => offsetHeight)), {style} = document.documentElement;
  if (room) style.setProperty('--notice-room', `${room}px`);
  else style.removeProperty('--notice-room');
}
