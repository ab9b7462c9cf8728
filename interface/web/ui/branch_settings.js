// The controls of the Rewrite and Type assistant tabs: how many branches, and how long.
/** @import {StoredSettings} from '../core/stored_settings.js' */
/** @import {RowSettings, ViewOptionsOfRequest} from '../core/types.d.ts' */
import {find, findAll} from './elements.js';
import {dispatch} from './events.js';
import {placeControls} from './controls_position.js';
import {keepAcrossReloads} from '../net/tab_storage.js';
import {settingsFrom} from '../core/stored_settings.js';
import {setTip} from './tips.js';

const NO_DEPTH = 'Depth has no effect now: Length is “end of the word”, so each branch is one word.';

/** The settings of a tab's branches, which survive a reload. Event: `change`, when one of them changes. */
export class BranchSettings extends EventTarget {
  #prefix;
  #depthTip;   // what the control of depth says while it has an effect

  /** @param {HTMLElement} element whose id is a prefix and `controls` */
  constructor(element) {
    super();
    this.element = element;
    this.#prefix = element.id.replace(/controls$/, '');
    this.#depthTip = this.#depthLabel.dataset.tip ?? '';
    placeControls(element);
    element.addEventListener('input', () => this.#adjust());
    for (const label of findAll(element, '[data-tip]')) setTip(label, label.dataset.tip ?? '');
    keepAcrossReloads(`${this.#prefix}settings`, {holds: () => false, take: () => this.#state, give: stored => this.#load(stored)});
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

  /** @returns {StoredSettings} */
  get #state() { return {k: this.#input('k').valueAsNumber, depth: this.#input('depth').valueAsNumber, length: this.#length.value}; }

  /** @param {unknown} stored unchecked */
  #load(stored) {
    const {k, depth, length} = settingsFrom(stored);
    if (k !== undefined) this.#input('k').valueAsNumber = k;
    if (depth !== undefined) this.#input('depth').valueAsNumber = depth;
    if (length !== undefined) this.#length.value = length;
    this.#adjust();
  }

  get #length() { return find(this.element, `#${this.#prefix}length`, HTMLSelectElement); }

  get #oneWord() { return this.#length.value === 'word'; }

  get #depthLabel() { return /** @type {HTMLElement} */ (this.#input('depth').closest('label')); }

  /** @param {string} name */
  #input(name) { return find(this.element, `#${this.#prefix}${name}`, HTMLInputElement); }

  #adjust() {
    const depth = this.#input('depth'), label = this.#depthLabel;
    for (const name of ['k', 'depth']) {
      find(this.element, `output[for=${this.#prefix}${name}]`, HTMLOutputElement).value = this.#input(name).value;
    }
    depth.disabled = this.#oneWord;
    label.classList.toggle('idle', this.#oneWord);
    if (this.#oneWord) find(label, 'output', HTMLOutputElement).value = '1 word';
    setTip(label, this.#oneWord ? NO_DEPTH : this.#depthTip);
    dispatch(this, 'change');
  }
}
