// The banned tokens as chips; a click on a chip lifts its ban.
/** @import {BannedToken} from '../core/types.d.ts' */
import {make} from './elements.js';
import {closestTo, dispatch} from './events.js';

const MOST = 100;

/** A document's banned tokens. Event: `change`, when there are others. */
export class BanChips extends EventTarget {
  /** @type {BannedToken[]} */
  #list = [];

  /** @param {HTMLElement} element */
  constructor(element) {
    super();
    this.element = element;
    element.addEventListener('click', event => {
      const button = closestTo(event, 'button');
      if (button) this.set(this.#list.filter(({id}) => id !== Number(button.dataset.id)));
    });
  }

  get list() { return [...this.#list]; }

  get ids() { return this.#list.map(({id}) => id); }

  /**
   * Replace the list. Entries that are no bans, as from a file, are left out.
   * @param {unknown[]} list
   */
  set(list) {
    this.#list = list.filter(isBan).slice(0, MOST);
    this.#paint();
    dispatch(this, 'change');
  }

  /** @param {number} id @param {string} text */
  add(id, text) {
    if (this.#list.length < MOST && !this.ids.includes(id)) this.set([...this.#list, {id, text}]);
  }

  #paint() {
    this.element.hidden = !this.#list.length;
    this.element.replaceChildren('Never:', ...this.#list.map(({id, text}) => {
      const chip = make('button', {text: `${text.trim() || 'a sign'} ×`, title: 'Offer this again'});
      chip.dataset.id = String(id);
      return chip;
    }));
  }
}

/**
 * @param {any} one
 * @returns {one is BannedToken}
 */
function isBan(one) {
  return Boolean(one) && Number.isInteger(one.id) && one.id >= 0 && typeof one.text === 'string';
}
