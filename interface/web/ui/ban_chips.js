// The banned tokens as chips; a click on a chip lifts its ban.
/** @import {BannedToken} from '../core/types.d.ts' */
/** @import {TextOwner} from './text_owner.js' */
import {spokenQuote, spokenSentence, visibleText} from '../core/figures_and_labels.js';
import {findAll, make} from './elements.js';
import {closestTo, dispatch, onDetail} from './events.js';

const MOST = 100;

/** @typedef {{id: number, text: string, banned: boolean}} BanStep a token that a person has banned, or allowed again */

/** A document's banned tokens. Event: `change`, when there are others. */
export class BanChips extends EventTarget {
  /** @type {BannedToken[]} */
  #list = [];
  /** @type {TextOwner | null} */
  #draft = null;

  /** @param {HTMLElement} element */
  constructor(element) {
    super();
    this.element = element;
    element.addEventListener('click', event => {
      const button = closestTo(event, 'button');
      if (button) this.#lift(button);
    });
  }

  get list() { return [...this.#list]; }

  get ids() { return this.#list.map(({id}) => id); }

  get texts() { return this.#list.map(({text}) => text); }

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
    if (this.#list.length < MOST && !this.ids.includes(id)) this.#take({id, text, banned: true});
  }

  /**
   * Make each ban, and each that is lifted, a step of the history of a text.
   * @param {TextOwner} draft
   */
  undoWith(draft) {
    this.#draft = draft;
    onDetail(draft, 'side', ({verb, step}) => { if ('banned' in step) this.#apply({...step, banned: step.banned === (verb !== 'undo')}); });
  }

  /** Lift a chip's ban. @param {HTMLElement} chip */
  #lift(chip) {
    const found = this.#list.find(({id}) => id === Number(chip.dataset.id));
    if (found) this.#take({...found, banned: false});
  }

  /** @param {BanStep} step that a person takes */
  #take(step) {
    if (this.#draft) this.#draft.addSideStep(step);
    else this.#apply(step);
  }

  /** @param {BanStep} step */
  #apply({id, text, banned}) {
    const others = this.#list.filter(one => one.id !== id);
    this.set(banned ? [...others, {id, text}] : others);
  }

  /**
   * Draw the chips. The focus of a chip that goes moves to the next one, or else to the line that opens the settings: in the text
   * box the next key would write.
   */
  #paint() {
    const before = findAll(this.element, 'button'), focused = before.find(chip => chip === document.activeElement);
    this.element.hidden = !this.#list.length;
    this.element.replaceChildren('Never:', ...this.#list.map(({id, text}) => {
      const word = visibleText(text.trim() || text), title = `“${word}” is left out, also where a longer word begins with it; other tokens may still spell such a word. Click to offer it again.`;
      const chip = make('button', {ariaLabel: `Never ${spokenQuote(text)}: offer it again`, title, ariaDescription: spokenSentence(title)}, make('span', {className: 'word', text: word}), ' ×');
      chip.dataset.id = String(id);
      return chip;
    }));
    if (!focused) return;
    const chips = findAll(this.element, 'button'), same = chips.find(chip => chip.dataset.id === focused.dataset.id);
    (same ?? chips[Math.min(before.indexOf(focused), chips.length - 1)] ?? this.element.parentElement?.querySelector('summary'))?.focus();
  }
}

/**
 * @param {any} one
 * @returns {one is BannedToken}
 */
function isBan(one) {
  return Boolean(one) && Number.isInteger(one.id) && one.id >= 0 && typeof one.text === 'string';
}
