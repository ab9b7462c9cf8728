// A document's instruction: whether the text goes on as it is, or as the instruction says.
import {dispatch} from '../../web/ui/events.js';

const SETTLES = 300;   // milliseconds without a key
const IN_COLUMNS = 'While you compare, each column has its own instruction and at most 5 rows; a row that you changed is not among them.';

/** Events: `changing` while it is being written, `change` {instruction} when another one is in force, `paint` when it gives way to columns. */
export class Instruction extends EventTarget {
  on = false;
  #inColumns = false;   // whether columns with instructions of their own are shown
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {object} parts
   * @param {HTMLElement} parts.toggle
   * @param {HTMLElement} parts.off
   * @param {HTMLTextAreaElement} parts.field
   * @param {HTMLElement} parts.area shown with an instruction
   * @param {HTMLElement} parts.hint shown without one: it says that the text is continued and not obeyed
   * @param {HTMLElement} parts.choice holds both buttons
   */
  constructor({toggle, off, field, area, hint, choice}) {
    super();
    this.hint = hint;
    this.plain = [...hint.childNodes];
    this.choice = choice;
    this.toggle = toggle;
    this.off = off;
    this.field = field;
    this.area = area;
    toggle.addEventListener('click', () => {
      if (!this.on) this.#turn(true);
      this.field.focus();
    });
    off.addEventListener('click', () => this.#turn(false));
    field.addEventListener('input', () => {
      dispatch(this, 'changing');
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#announce(), SETTLES);
    });
    this.#paint();
  }

  get text() { return this.field.value; }

  /** The instruction in force; null where the text goes on as it is. */
  get value() { return this.on && this.text.trim() ? this.text : null; }

  /**
   * Give way to the instructions of columns, or come back.
   * @param {boolean} given
   */
  giveWay(given) {
    this.#inColumns = given;
    this.#paint();
    dispatch(this, 'paint');
  }

  /** Whether the hint is shown. */
  get hints() { return this.#inColumns || !this.on; }

  /** @param {string} text @param {boolean} [on] */
  set(text, on = Boolean(text)) {
    this.field.value = text;
    this.#turn(on);
  }

  /** @param {boolean} on */
  #turn(on) {
    this.on = on;
    this.#paint();
    this.#announce();
  }

  #paint() {
    this.toggle.setAttribute('aria-expanded', String(this.on));
    this.toggle.setAttribute('aria-pressed', String(this.on));
    this.off.setAttribute('aria-pressed', String(!this.on));
    this.area.hidden = this.hints;
    this.choice.hidden = this.#inColumns;
    this.hint.hidden = !this.hints;
    this.hint.replaceChildren(...(this.#inColumns ? [IN_COLUMNS] : this.plain));
  }

  #announce() {
    clearTimeout(this.#timer);
    dispatch(this, 'change', {instruction: this.value});
  }
}
