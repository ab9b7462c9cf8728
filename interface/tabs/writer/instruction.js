// How the text goes on: as it is, or as an instruction says. It belongs to the document.
const SETTLES = 300;   // milliseconds

export class Instruction extends EventTarget {
  on = false;
  #timer = 0;

  // Events: `changing` while another is being written, `change` {instruction} whenever what is in force is another.
  constructor({toggle, off, field, area}) {
    super();
    Object.assign(this, {toggle, off, field, area});
    toggle.addEventListener('click', () => {
      this.#turn(!this.on);
      if (this.on) this.field.focus();
    });
    off.addEventListener('click', () => this.#turn(false));
    field.addEventListener('input', () => {
      this.dispatchEvent(new CustomEvent('changing'));
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#tell(), SETTLES);
    });
    this.#paint();
  }

  get text() { return this.field.value; }

  // What is in force: null where the text goes on as it is.
  get value() { return this.on && this.text.trim() ? this.text : null; }

  set(text, on = Boolean(text)) {
    this.field.value = text;
    this.#turn(on);
  }

  #turn(on) {
    this.on = on;
    this.#paint();
    this.#tell();
  }

  #paint() {
    this.toggle.setAttribute('aria-expanded', this.on);
    this.toggle.setAttribute('aria-pressed', this.on);
    this.off.setAttribute('aria-pressed', !this.on);
    this.area.hidden = !this.on;
  }

  #tell() {
    clearTimeout(this.#timer);
    this.dispatchEvent(new CustomEvent('change', {detail: {instruction: this.value}}));
  }
}
