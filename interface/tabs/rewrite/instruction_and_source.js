// The Rewrite tab's prompt: an instruction, ready or of one's own, and the source that it is about.
/** @import {ShortenedSource} from './shortened_source.js' */
import {READY_INSTRUCTIONS, needsSource} from './ready_instructions.js';
import {dispatch} from '../../web/ui/events.js';
import {find, make} from '../../web/ui/elements.js';
import {followHiddenText, showWholeLines} from '../../web/ui/hidden_text.js';

const SETTLES = 300;   // milliseconds without a key
const OWN = 'Your own …';

/** @typedef {{instruction?: string, own?: string, source?: string, short?: unknown}} StoredPrompt */

/** Events: `changing` at every key, `change` when the prompt has rested. */
export class InstructionAndSource extends EventTarget {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #own = '';   // the person's own instruction, kept while a ready one is chosen

  /**
   * @param {HTMLElement} element
   * @param {(element: HTMLElement) => ShortenedSource} shorten makes what may take the place of the source
   */
  constructor(element, shorten) {
    super();
    this.element = element;
    this.short = shorten(element);
    this.short.addEventListener('change', () => this.#announce());
    this.ready = find(element, '#rewrite-ready', HTMLSelectElement);
    this.field = find(element, '#rewrite-instruction', HTMLTextAreaElement);
    this.box = find(element, '#rewrite-source', HTMLTextAreaElement);
    this.ready.append(...READY_INSTRUCTIONS.map(text => make('option', {text, value: text})), make('option', {text: OWN, value: ''}));
    this.field.value = READY_INSTRUCTIONS[0];
    this.ready.addEventListener('change', () => this.#chooseReady());
    this.field.addEventListener('input', () => this.#onInput());
    this.box.addEventListener('input', () => this.#onInput());
    followHiddenText(this.box);
    showWholeLines(this.box);
  }

  /** The fields of a request; null where nothing is written. */
  get fields() { return {instruction: textOrNull(this.field.value), source: textOrNull(this.short.text)}; }

  /** Whether the instruction is about a source, and there is none. */
  get needsSource() { return needsSource(this.field.value, this.short.text); }

  /** Whether there is something that a person wrote. */
  get holds() { return Boolean(this.box.value) || this.hasOwnInstruction; }

  get hasOwnInstruction() { return Boolean(this.#own.trim()); }

  /** @returns {StoredPrompt} */
  state() { return {instruction: this.field.value, own: this.#own, source: this.box.value, short: this.short.state()}; }

  /** @param {StoredPrompt} stored */
  load({instruction = READY_INSTRUCTIONS[0], own = '', source = '', short = null}) {
    [this.field.value, this.#own, this.box.value] = [instruction, own, source];
    this.short.load(short);
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

/** @param {string} text */
const textOrNull = text => (text.trim() ? text : null);
