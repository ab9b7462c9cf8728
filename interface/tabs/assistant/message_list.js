// The messages so far, each with its role and a button that goes back to it.
/** @import {MarkedMessage} from '../../web/core/types.d.ts' */
import {ROLE_NAMES} from './conversation_state.js';
import {closestTo} from '../../web/ui/events.js';
import {make} from '../../web/ui/elements.js';
import {markedNodes} from '../../web/ui/text_mirror.js';

/** The list of messages. */
export class MessageList {
  /** @type {MarkedMessage[] | null} */
  #shown = null;
  #isAtEnd = true;   // whether it is scrolled to its end: then it stays there when its height changes

  /**
   * @param {HTMLElement} element
   * @param {(index: number) => void} onEdit called when somebody wants to go back to a message
   */
  constructor(element, onEdit) {
    this.element = element;
    element.addEventListener('click', event => {
      const message = closestTo(event, '.edit')?.closest('.message');
      if (message) onEdit([...element.children].indexOf(message));
    });
    element.addEventListener('scroll', () => {
      this.#isAtEnd = element.scrollHeight - element.clientHeight - element.scrollTop < 2;
      element.toggleAttribute('data-scrolled', element.scrollTop > 0);
    }, {passive: true});
    new ResizeObserver(() => { if (this.#isAtEnd) this.#scrollToEnd(); }).observe(element);
  }

  /** @param {MarkedMessage[]} messages */
  show(messages) {
    if (messages === this.#shown) return;
    this.#shown = messages;
    this.element.replaceChildren(...messages.map(messageElement));
    this.#scrollToEnd();
  }

  #scrollToEnd() {
    this.element.scrollTop = this.element.scrollHeight;
    this.#isAtEnd = true;
  }
}

/** @param {MarkedMessage} message @param {number} index */
function messageElement({role, content, spans}, index) {
  const edit = make('button', {className: 'edit', text: 'Edit', title: 'Go back to this message and change it'});
  edit.setAttribute('aria-label', `Edit message ${index + 1}, the ${role}’s`);
  const words = make('p', {className: 'content', dir: 'auto'}, ...markedNodes(content, spans));
  const made = make('li', {className: 'message'}, make('b', {className: 'role', text: ROLE_NAMES[role]}), edit, words);
  made.dataset.role = role;
  return made;
}
