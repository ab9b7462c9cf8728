// A line for one sentence with at most one action.
import {find} from './elements.js';

const SHOWN_FOR = 12_000;   // milliseconds; a notice with an action stays until it is closed

/** @typedef {{label: string, run: () => unknown}} NoticeAction */

/** The notice of a sheet. */
export class Notice {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {NoticeAction | null} */
  #action = null;
  text = '';   // the sentence that is shown

  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.sentence = find(element, '.sentence');
    this.buttonName = find(element, '.button-name');   // names the button after the sentence, for screen readers
    this.button = find(element, '.action');
    this.button.addEventListener('click', () => {
      const run = this.#action?.run;
      this.clear();
      run?.();
    });
    find(element, '.dismiss').addEventListener('click', () => this.clear());
  }

  /**
   * Show a sentence.
   * @param {string} sentence
   * @param {NoticeAction | null} [action]
   * @param {{stays?: boolean}} [options] `stays`: until it is closed or replaced; true with an action
   */
  show(sentence, action = null, {stays = Boolean(action)} = {}) {
    clearTimeout(this.#timer);
    this.#setText(sentence);
    this.#offer(action);
    this.element.classList.add('said');
    if (!stays) this.#timer = setTimeout(() => this.clear(), SHOWN_FOR);
  }

  clear() {
    clearTimeout(this.#timer);
    this.element.classList.remove('said');
    this.#setText('');
    this.#offer(null);
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
