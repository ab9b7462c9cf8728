// The two dialogs that list things: what was accepted and left, and the documents.
import {make, formatTime} from '../../web/ui/elements.js';
import {historyEntry} from '../../web/ui/history_entry.js';
import {nameKey} from '../../web/core/shortcuts.js';

export function historyDialog(dialog, {draft, notice}) {
  const list = dialog.querySelector('.moments');
  const go = moment => {
    dialog.close();
    if (!draft.reenter(moment)) notice.say('The text of that moment is no longer known.');
  };
  return () => {
    list.replaceChildren(...draft.moments.map(moment => historyEntry(moment, () => go(moment))));
    dialog.showModal();
  };
}

export class DocumentsDialog {
  constructor(dialog, keeping) {
    Object.assign(this, {dialog, keeping, list: dialog.querySelector('.shelf'), sure: dialog.querySelector('.forgetting')});
    const on = (name, run) => dialog.querySelector(name).addEventListener('click', run);
    on('#new-document', () => this.#leave(() => keeping.blank()));
    on('#forget', () => this.#ask(true));
    on('#forget-not', () => this.#ask(false));
    on('#forget-really', () => this.#leave(() => keeping.forget()));
  }

  async open() {
    this.#ask(false);
    await this.#paint();
    if (!this.dialog.open) this.dialog.showModal();
  }

  #ask(sure) {
    this.sure.hidden = !sure;
    if (sure) this.sure.scrollIntoView({block: 'nearest'});
  }

  #leave(run) {
    this.dialog.close();
    return run();
  }

  async #paint() {
    const cards = await this.keeping.shelf.list();
    this.list.replaceChildren(...cards.map(card => this.#row(card)));
  }

  #row(card) {
    const {id, open, title, words, edited} = card, {keeping} = this, shelf = keeping.shelf;
    const name = make('span', {className: 'name', dir: 'auto', text: title});
    const figures = make('small', {text: `${words} ${words === 1 ? 'word' : 'words'} · ${formatTime(edited)}${open ? ' · open here' : ''}`});
    const opener = this.#button('', () => this.#leave(() => keeping.switchTo(id)), {className: 'open'});
    opener.append(name, figures);
    opener.setAttribute('aria-current', Boolean(open));
    const again = work => async () => { await work(); await this.#paint(); };
    const row = make('li', {}, opener,
      this.#button('Rename', () => this.#rename(row, card), {title: `Rename “${title}”`}),
      this.#button('Duplicate', again(() => shelf.duplicate(id)), {title: `Make a copy of “${title}”`}),
      this.#button('Delete', () => this.#leave(() => keeping.remove(id)), {title: `Delete “${title}”; this can be undone`}));
    row.dataset.id = id;
    return row;
  }

  #button(text, run, options) {
    const button = make('button', {text, ...options});
    button.addEventListener('click', run);
    return button;
  }

  #rename(row, {id, title}) {
    const field = make('input', {type: 'text', value: title, dir: 'auto', maxLength: 120, ariaLabel: 'New name'});
    let done = false;
    const finish = async keep => {
      if (done) return;
      done = true;
      if (keep && field.value.trim()) await this.keeping.rename(id, field.value.trim());
      await this.#paint();
      this.list.querySelector(`[data-id="${id}"] .open`)?.focus();
    };
    field.addEventListener('keydown', event => {
      const found = nameKey(event);
      if (!found) return;
      event.preventDefault();
      finish(found === 'keep');
    });
    field.addEventListener('blur', () => finish(true));
    row.querySelector('.open').replaceWith(field);
    field.select();
    field.focus();
  }
}
