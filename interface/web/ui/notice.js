// One line for what is to be said, with at most one thing to do about it.
const STAYS = 12_000;   // milliseconds; what a person can act on, or must know, stays until they close it

export class Notice {
  #timer = 0;
  #action = null;

  constructor(element) {
    this.element = element;
    this.sentence = element.querySelector('.sentence');
    this.button = element.querySelector('.action');
    this.button.addEventListener('click', () => {
      const run = this.#action?.run;
      this.clear();
      run?.();
    });
    element.querySelector('.dismiss').addEventListener('click', () => this.clear());
  }

  // `action`: {label, run}. `stays`: until it is closed or another takes its place.
  say(sentence, action = null, {stays = Boolean(action)} = {}) {
    clearTimeout(this.#timer);
    this.#action = action;
    this.sentence.textContent = sentence;
    this.button.textContent = action?.label ?? '';
    this.button.hidden = !action;
    this.element.classList.add('said');
    if (!stays) this.#timer = setTimeout(() => this.clear(), STAYS);
  }

  clear() {
    clearTimeout(this.#timer);
    this.#action = null;
    this.element.classList.remove('said');
    this.sentence.textContent = '';
    this.button.hidden = true;
  }
}
