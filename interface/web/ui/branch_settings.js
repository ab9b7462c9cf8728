// The controls of the Rewrite and Type assistant tabs: how many branches, how deep, and whether a click takes one word.
/** @import {RowSettings, ViewOptionsOfRequest} from '../core/types.d.ts' */
import {find} from './elements.js';
import {dispatch} from './events.js';

/** The settings of a tab's branches. Event: `change`, when one of them changes. */
export class BranchSettings extends EventTarget {
  #prefix;

  /** @param {HTMLElement} element whose id is a prefix and `controls` */
  constructor(element) {
    super();
    this.element = element;
    this.#prefix = element.id.replace(/controls$/, '');
    element.addEventListener('input', () => this.#adjust());
  }

  /**
   * The settings of a request.
   * @returns {Partial<ViewOptionsOfRequest>}
   */
  get settings() {
    return {k: this.#input('k').valueAsNumber, depth: this.#input('depth').valueAsNumber, mode: 'likely', until: 'tokens'};
  }

  /**
   * The settings that rows are drawn with.
   * @returns {RowSettings}
   */
  get drawn() { return {...this.settings, oneWord: this.#oneWord}; }

  get #oneWord() { return !this.#input('words').checked; }

  /** @param {string} name */
  #input(name) { return find(this.element, `#${this.#prefix}${name}`, HTMLInputElement); }

  #adjust() {
    const depth = this.#input('depth');
    for (const name of ['k', 'depth']) {
      find(this.element, `output[for=${this.#prefix}${name}]`, HTMLOutputElement).value = this.#input(name).value;
    }
    depth.disabled = this.#oneWord;
    depth.closest('label')?.classList.toggle('idle', this.#oneWord);
    dispatch(this, 'change');
  }
}
