// What the model is told: an instruction, ready or one's own, and the source that it is about.
import {READY_INSTRUCTIONS} from './ready_instructions.js';
import {make} from '../../web/ui/elements.js';

const SETTLES = 300;   // milliseconds
const OWN = 'Your own …';

// Events: `changing` at once when it is another, `change` when it has been so for a while.
export class InstructionAndSource extends EventTarget {
  #timer = 0;
  #own = '';   // the instruction that was last written by hand: a ready one takes its place, and does not lose it

  constructor(element) {
    super();
    const find = selector => element.querySelector(selector);
    Object.assign(this, {ready: find('#rewrite-ready'), field: find('#rewrite-instruction'), box: find('#rewrite-source')});
    this.ready.append(...READY_INSTRUCTIONS.map(text => make('option', {text, value: text})), make('option', {text: OWN, value: ''}));
    this.field.value = READY_INSTRUCTIONS[0];
    this.ready.addEventListener('change', () => this.#choose());
    this.field.addEventListener('input', () => this.#soon());
    this.box.addEventListener('input', () => this.#soon());
  }

  // As fields of a request; null where there is none.
  get fields() { return {instruction: written(this.field), source: written(this.box)}; }

  // Whether there is anything here that a person wrote.
  get holds() { return Boolean(this.box.value || this.#own.trim()); }

  state() { return {instruction: this.field.value, own: this.#own, source: this.box.value}; }

  // What was written before.
  load({instruction = READY_INSTRUCTIONS[0], own = '', source = ''}) {
    [this.field.value, this.#own, this.box.value] = [instruction, own, source];
    this.#mark();
  }

  #mark() { this.ready.value = READY_INSTRUCTIONS.includes(this.field.value) ? this.field.value : ''; }

  #choose() {
    this.field.value = this.ready.value || this.#own;
    if (!this.ready.value) this.field.focus();
    this.#tell();
  }

  #soon() {
    this.#mark();
    if (!this.ready.value) this.#own = this.field.value;
    this.dispatchEvent(new CustomEvent('changing'));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tell(), SETTLES);
  }

  #tell() {
    clearTimeout(this.#timer);
    this.dispatchEvent(new CustomEvent('change'));
  }
}

const written = ({value}) => (value.trim() ? value : null);
