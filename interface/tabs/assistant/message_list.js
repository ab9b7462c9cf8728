// The messages so far, each with its role and a button that goes back to it.
import {ROLE_NAMES} from './conversation_state.js';
import {make} from '../../web/ui/elements.js';
import {markedNodes} from '../../web/ui/text_mirror.js';

// `back(index)` is called when somebody wants to go on from one of them.
export class MessageList {
  #shown = null;

  constructor(element, back) {
    this.element = element;
    element.addEventListener('click', ({target}) => {
      const button = target.closest('.edit');
      if (button) back([...element.children].indexOf(button.closest('.message')));
    });
  }

  show(messages) {
    if (messages === this.#shown) return;
    this.#shown = messages;
    this.element.replaceChildren(...messages.map(message));
    this.element.scrollTop = this.element.scrollHeight;
  }
}

function message({role, content, spans}, index) {
  const edit = make('button', {className: 'edit', text: 'Edit', title: 'Go back to this message and change it'});
  edit.setAttribute('aria-label', `Edit message ${index + 1}, the ${role}’s`);
  const words = make('p', {className: 'content', dir: 'auto'}, ...markedNodes(content, spans));
  const made = make('li', {className: 'message'}, make('b', {className: 'role', text: ROLE_NAMES[role]}), edit, words);
  made.dataset.role = role;
  return made;
}
