// The Rewrite tab's prompt: an instruction, ready or of one's own, and the source that it is about.
import {READY_INSTRUCTIONS} from './ready_instructions.js';
import {dispatch} from '../../web/ui/events.js';
import {find, make} from '../../web/ui/elements.js';

const SETTLES = 300;   // milliseconds without a key
const OWN = 'Your own …';

/** @typedef {{instruction?: string, own?: string, source?: string}} StoredPrompt */

/** Events: `changing` at every key, `change` when the prompt has rested. */
export class InstructionAndSource extends EventTarget {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #own = '';   // the person's own instruction, kept while a ready one is chosen

  /** @param {HTMLElement} element */
  constructor(element) {
    super();
    this.element = element;
    this.ready = find(element, '#rewrite-ready', HTMLSelectElement);
    this.field = find(element, '#rewrite-instruction', HTMLTextAreaElement);
    this.box = find(element, '#rewrite-source', HTMLTextAreaElement);
    this.ready.append(...READY_INSTRUCTIONS.map(text => make('option', {text, value: text})), make('option', {text: OWN, value: ''}));
    this.field.value = READY_INSTRUCTIONS[0];
    this.ready.addEventListener('change', () => this.#chooseReady());
    this.field.addEventListener('input', () => this.#onInput());
    this.box.addEventListener('input', () => this.#onInput());
  }

  /** The fields of a request; null where nothing is written. */
  get fields() { return {instruction: textOrNull(this.field), source: textOrNull(this.box)}; }

  /** Whether there is something that a person wrote. */
  get holds() { return Boolean(this.box.value) || this.hasOwnInstruction; }

  get hasOwnInstruction() { return Boolean(this.#own.trim()); }

  /** @returns {StoredPrompt} */
  state() { return {instruction: this.field.value, own: this.#own, source: this.box.value}; }

  /** @param {StoredPrompt} stored */
  load({instruction = READY_INSTRUCTIONS[0], own = '', source = ''}) {
    [this.field.value, this.#own, this.box.value] = [instruction, own, source];
    this.#selectReady();
  }

  #selectReady() { this.ready.value = READY_INSTRUCTIONS.includes(this.field.value) ? this.field.value : ''; }

  #chooseReady() {
    this.field.value = this.ready.value || this.#own;
    if (!this.ready.value) this.field.focus();
    this.#announce();
  }

  #onInput() {
    this.#selectReady();
    if (!this.ready.value) this.#own = this.field.value;
    dispatch(this, 'changing');
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#announce(), SETTLES);
  }

  #announce() {
    clearTimeout(this.#timer);
    dispatch(this, 'change');
  }
}

/** @param {HTMLTextAreaElement} field */
const textOrNull = ({value}) => (value.trim() ? value : null);
