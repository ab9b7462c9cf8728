// The messages of a conversation that is analysed, each with its role. What is removed can be restored, the last first.
/** @import {Message} from '../../web/core/types.d.ts' */
import {Notice} from '../../web/ui/notice.js';
import {childrenOf, find, make} from '../../web/ui/elements.js';
import {closestTo, dispatch} from '../../web/ui/events.js';

const ROLES = ['system', 'user', 'assistant'];
/** @type {Record<string, string>} */
const NEXT_ROLE = {system: 'user', user: 'assistant', assistant: 'user'};
const FIRST = [{role: 'user', content: ''}, {role: 'assistant', content: ''}];
/** @param {number} number */
const REMOVED = number => `Message ${number} was removed.`;
const REPLACED = 'The messages were replaced.';

/** Event: `change`, when the messages change. */
export class MessageEditor extends EventTarget {
  /**
   * What can be undone; `undo` returns the element that it restores.
   * @type {{sentence: string, undo: () => HTMLElement}[]}
   */
  #undos = [];

  /** @param {HTMLElement} element */
  constructor(element) {
    super();
    this.turns = find(element, '.turns');
    this.notice = new Notice(find(element, '.notice'));
    find(element, '.add').addEventListener('click', () => this.#add());
    this.turns.addEventListener('input', () => this.#announce());
    this.turns.addEventListener('click', event => {
      const turn = closestTo(event, '.remove')?.closest('.turn');
      if (turn instanceof HTMLElement) this.#remove(turn);
    });
    this.turns.append(...FIRST.map(turnElement));
    this.#number();
  }

  /** @returns {Message[]} */
  get messages() {
    return childrenOf(this.turns).map(turn => ({role: roleField(turn).value, content: textField(turn).value}));
  }

  get empty() { return this.messages.every(({content}) => !content); }

  /**
   * Restore stored messages.
   * @param {Message[]} messages
   */
  load(messages) {
    this.turns.replaceChildren(...messages.map(turnElement));
    this.#number();
  }

  /**
   * Replace the messages by those of another tab.
   * @param {Message[]} messages
   */
  replaceBy(messages) {
    this.#replace(messages.map(turnElement), JSON.stringify(messages));
    this.#changed();
  }

  #add() {
    const last = this.messages.at(-1), added = turnElement({role: NEXT_ROLE[last?.role ?? 'assistant'], content: ''});
    this.turns.append(added);
    textField(added).focus();
    this.#changed();
  }

  /** @param {HTMLElement} turn */
  #remove(turn) {
    const all = childrenOf(this.turns), index = all.indexOf(turn), next = all[index + 1];
    const neighbour = next ?? all[index - 1];
    if (neighbour) textField(neighbour).focus();
    turn.remove();
    this.#offerUndo(REMOVED(index + 1), () => {
      this.turns.insertBefore(turn, next?.parentNode === this.turns ? next : null);
      return turn;
    });
    this.#changed();
  }

  /**
   * Replace the elements. Undoing keeps what it replaces, unless that is an unchanged copy of another tab.
   * @param {HTMLElement[]} turns
   * @param {string | null} [copy] the messages as JSON, if they are a copy
   */
  #replace(turns, copy = null) {
    const before = childrenOf(this.turns);
    this.turns.replaceChildren(...turns);
    this.#offerUndo(REPLACED, () => {
      if (JSON.stringify(this.messages) === copy) this.turns.replaceChildren(...before);
      else this.#replace(before);
      return before[0];
    });
  }

  /** @param {string} sentence @param {() => HTMLElement} undo */
  #offerUndo(sentence, undo) {
    this.#undos.push({sentence, undo});
    this.#showLast();
  }

  #showLast() {
    const last = this.#undos.at(-1);
    if (last) this.notice.show(last.sentence, {label: 'Undo', run: () => this.#undo()});
  }

  #undo() {
    const turn = this.#undos.pop()?.undo();
    this.#showLast();
    if (turn) textField(turn).focus();
    this.#changed();
  }

  #changed() {
    this.#number();
    this.#announce();
  }

  #number() {
    childrenOf(this.turns).forEach((turn, index) => {
      roleField(turn).ariaLabel = `Role of message ${index + 1}`;
      textField(turn).ariaLabel = `Message ${index + 1}`;
      find(turn, '.remove').ariaLabel = `Remove message ${index + 1}`;
    });
  }

  #announce() { dispatch(this, 'change'); }
}

/** @param {HTMLElement} turn */
const roleField = turn => find(turn, 'select', HTMLSelectElement);
/** @param {HTMLElement} turn */
const textField = turn => find(turn, 'textarea', HTMLTextAreaElement);

/** @param {Message} message */
function turnElement({role, content}) {
  const select = make('select', {}, ...ROLES.map(value => make('option', {text: value, value})));
  select.value = role;
  return make('div', {className: 'turn'}, select, make('button', {text: '×', className: 'round remove'}),
    make('textarea', {value: content, rows: 2, dir: 'auto', spellcheck: true, autocomplete: 'off'}));
}
