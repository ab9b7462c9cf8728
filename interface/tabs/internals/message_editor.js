// The messages of a conversation, each with its role. Event `change` when it is another. What is taken away can be brought
// back, the last first.
import {Notice} from '../../web/ui/notice.js';
import {make} from '../../web/ui/elements.js';

const ROLES = ['system', 'user', 'assistant'];
const NEXT = {system: 'user', user: 'assistant', assistant: 'user'};
const FIRST = [{role: 'user', content: ''}, {role: 'assistant', content: ''}];
const REMOVED = number => `Message ${number} was removed.`;
const EXCHANGED = 'Other messages stand here now.';

export class MessageEditor extends EventTarget {
  #ways = [];   // back, each as {sentence, back}

  constructor(element) {
    super();
    this.turns = element.querySelector('.turns');
    this.notice = new Notice(element.querySelector('.notice'));
    element.querySelector('.add').addEventListener('click', () => this.#add());
    this.turns.addEventListener('input', () => this.#tell());
    this.turns.addEventListener('click', ({target}) => { if (target.matches('.remove')) this.#remove(target.closest('.turn')); });
    this.turns.append(...FIRST.map(row));
    this.#number();
  }

  get messages() {
    return [...this.turns.children].map(turn => ({
      role: turn.querySelector('select').value, content: turn.querySelector('textarea').value,
    }));
  }

  get empty() { return this.messages.every(({content}) => !content); }

  // Messages that stood here before.
  load(messages) {
    this.turns.replaceChildren(...messages.map(row));
    this.#number();
  }

  // Messages that there are elsewhere too, in place of these.
  take(messages) {
    this.#exchange(messages.map(row), JSON.stringify(messages));
    this.#changed();
  }

  #add() {
    const added = row({role: NEXT[this.messages.at(-1).role], content: ''});
    this.turns.append(added);
    added.querySelector('textarea').focus();
    this.#changed();
  }

  #remove(turn) {
    const next = turn.nextElementSibling, number = [...this.turns.children].indexOf(turn) + 1;
    (next ?? turn.previousElementSibling).querySelector('textarea').focus();
    turn.remove();
    this.#leave(REMOVED(number), () => {
      this.turns.insertBefore(turn, next?.parentNode === this.turns ? next : null);
      return turn;
    });
    this.#changed();
  }

  // The way back leads here again, unless what it puts away is nothing but a copy.
  #exchange(rows, copy = null) {
    const before = [...this.turns.children];
    this.turns.replaceChildren(...rows);
    this.#leave(EXCHANGED, () => {
      if (JSON.stringify(this.messages) === copy) this.turns.replaceChildren(...before);
      else this.#exchange(before);
      return before[0];
    });
  }

  // `back()` gives the message that it leads to.
  #leave(sentence, back) {
    this.#ways.push({sentence, back});
    this.#offer();
  }

  #offer() {
    const way = this.#ways.at(-1);
    if (way) this.notice.say(way.sentence, {label: 'Undo', run: () => this.#undo()});
  }

  #undo() {
    const turn = this.#ways.pop().back();
    this.#offer();
    turn.querySelector('textarea').focus();
    this.#changed();
  }

  #changed() {
    this.#number();
    this.#tell();
  }

  #number() {
    [...this.turns.children].forEach((turn, index) => {
      turn.querySelector('select').ariaLabel = `Role of message ${index + 1}`;
      turn.querySelector('textarea').ariaLabel = `Message ${index + 1}`;
      turn.querySelector('.remove').ariaLabel = `Remove message ${index + 1}`;
    });
  }

  #tell() { this.dispatchEvent(new CustomEvent('change')); }
}

function row({role, content}) {
  const select = make('select', {}, ...ROLES.map(value => make('option', {text: value, value})));
  select.value = role;
  const made = make('div', {className: 'turn'}, select, make('button', {text: '×', className: 'round remove'}),
    make('textarea', {value: content, rows: 2, dir: 'auto', spellcheck: true, autocomplete: 'off'}));
  return made;
}
