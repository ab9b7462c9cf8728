// Tokens that are not to be offered again: chips, each of which takes its ban back.
const MOST = 100;

// Event `change` whenever there are others.
export class BanChips extends EventTarget {
  #list = [];

  constructor(element) {
    super();
    this.element = element;
    element.addEventListener('click', ({target}) => {
      const button = target.closest('button');
      if (button) this.set(this.#list.filter(({id}) => id !== Number(button.dataset.id)));
    });
  }

  get list() { return [...this.#list]; }

  get ids() { return this.#list.map(({id}) => id); }

  // What makes no sense here, from a file say, is left out.
  set(list) {
    this.#list = list.filter(isBan).slice(0, MOST);
    this.#paint();
    this.dispatchEvent(new CustomEvent('change'));
  }

  add(id, text) {
    if (this.#list.length < MOST && !this.ids.includes(id)) this.set([...this.#list, {id, text}]);
  }

  #paint() {
    this.element.hidden = !this.#list.length;
    this.element.replaceChildren('Never:', ...this.#list.map(({id, text}) => {
      const chip = document.createElement('button');
      Object.assign(chip, {type: 'button', textContent: `${text.trim() || 'a sign'} ×`, title: 'Offer this again'});
      chip.dataset.id = id;
      return chip;
    }));
  }
}

const isBan = one => Boolean(one) && Number.isInteger(one.id) && one.id >= 0 && typeof one.text === 'string';
