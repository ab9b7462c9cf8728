// How many branches there are, how deep they are, and whether a click takes one word or as many as one likes. Event
// `change` whenever that is another.
export class BranchSettings extends EventTarget {
  #prefix;

  constructor(element) {
    super();
    this.element = element;
    this.#prefix = element.id.replace(/controls$/, '');
    element.addEventListener('input', () => this.#adjust());
  }

  // What is asked for.
  get settings() {
    return {k: this.#at('k').valueAsNumber, depth: this.#at('depth').valueAsNumber, mode: 'likely', until: 'tokens'};
  }

  // How it is shown.
  get drawn() { return {...this.settings, oneWord: this.#oneWord}; }

  get #oneWord() { return !this.#at('words').checked; }

  #at(name) { return this.element.querySelector(`#${this.#prefix}${name}`); }

  #adjust() {
    const depth = this.#at('depth');
    for (const name of ['k', 'depth']) this.element.querySelector(`output[for=${this.#prefix}${name}]`).value = this.#at(name).value;
    depth.disabled = this.#oneWord;
    depth.closest('label').classList.toggle('idle', this.#oneWord);
    this.dispatchEvent(new CustomEvent('change'));
  }
}
