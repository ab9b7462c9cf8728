// The two dialogs with lists: of the history, and of the documents.
/** @import {DocumentCard, Moment} from '../../web/core/types.d.ts' */
/** @import {DocumentKeeper} from './document_keeper.js' */
/** @import {Notice} from '../../web/ui/notice.js' */
/** @import {TextOwner} from '../../web/ui/text_owner.js' */
import {announce} from '../../web/ui/announce.js';
import {find, formatTime, make} from '../../web/ui/elements.js';
import {isTouch} from '../../web/ui/click_cover.js';
import {historyEntry} from '../../web/ui/history_entry.js';
import {isPlayable} from '../../web/core/replay.js';
import {nameKey} from '../../web/core/shortcuts.js';

/**
 * The function that opens the dialog of the history.
 * @param {HTMLDialogElement} dialog
 * @param {{draft: TextOwner, notice: Notice}} parts
 */
export function historyDialog(dialog, {draft, notice}) {
  const list = find(dialog, '.moments');
  /**
   * Restore a text, and give it the focus: after a tap that would open the keyboard of a phone.
   * @type {(moment: Moment, click: MouseEvent) => void}
   */
  const restore = (moment, click) => {
    dialog.close();
    if (!draft.reenter(moment)) notice.show('The text of that moment is no longer known.');
    else if (!isTouch(click)) draft.box.focus();
  };
  const paint = () => {
    const {moments} = draft;
    list.replaceChildren(...moments.map(moment => historyEntry(moment, click => restore(moment, click))));
    find(dialog, '.choosing').hidden = !moments.length;
    find(dialog, '.making').hidden = !isPlayable(draft.state());
  };
  // A row that was waited for may be accepted while the dialog is open: then its entries would name other moments.
  draft.addEventListener('change', () => { if (dialog.open) paint(); });
  return () => {
    paint();
    dialog.showModal();
  };
}

/** The dialog of the documents. */
export class DocumentsDialog {
  /**
   * @param {HTMLDialogElement} dialog
   * @param {{keeper: DocumentKeeper, opened: HTMLElement}} parts `opened`: the live region that names an opened document
   */
  constructor(dialog, {keeper, opened}) {
    this.dialog = dialog;
    this.keeper = keeper;
    this.opened = opened;
    this.list = find(dialog, '.shelf');
    this.confirmation = find(dialog, '.forgetting');
    this.announcement = find(dialog, '.announcement');   // in the dialog: while it is open, the rest of the page is inert
    /** @type {(selector: string, run: () => void) => void} */
    const on = (selector, run) => find(dialog, selector).addEventListener('click', run);
    on('#new-document', () => this.#closeAnd(() => {
      keeper.openNew();
      keeper.draft.box.focus();
    }));
    on('#forget', () => this.#confirm(true));
    on('#forget-not', () => this.#confirm(false));
    on('#forget-really', () => this.#closeAnd(() => keeper.forget()));
  }

  async open() {
    this.#confirm(false);
    this.#announceCopy(null);
    await this.#paint();
    if (!this.dialog.open) this.dialog.showModal();
  }

  /** @param {boolean} shown whether the question is shown that comes before everything is deleted */
  #confirm(shown) {
    this.confirmation.hidden = !shown;
    if (shown) this.confirmation.scrollIntoView({block: 'nearest'});
  }

  /** @param {() => unknown} run */
  #closeAnd(run) {
    this.dialog.close();
    return run();
  }

  async #paint() {
    const cards = await this.keeper.library.list();
    this.list.replaceChildren(...cards.map(card => this.#item(card)));
  }

  /** @param {DocumentCard} card */
  #item(card) {
    const {id, open, title, words, edited} = card, {keeper} = this, {library} = keeper;
    const name = make('span', {className: 'name', dir: 'auto', text: title});
    const figures = make('small', {text: `${words} ${words === 1 ? 'word' : 'words'} · ${formatTime(edited)}${open ? ' · open here' : ''}`});
    const opener = this.#button('', click => this.#closeAnd(() => this.#open(card, click)), {className: 'open'});
    opener.append(name, figures);
    opener.setAttribute('aria-current', String(Boolean(open)));
    const duplicate = async () => {
      const copy = await library.duplicate(id);
      await this.#paint();
      this.#focus(copy ?? id);
      this.#announceCopy(copy);
    };
    /** @type {HTMLElement} */
    const item = make('li', {}, opener,
      this.#button('Rename', () => this.#rename(item, card), {title: `Rename “${title}”`}),
      this.#button('Duplicate', duplicate, {title: `Make a copy of “${title}”`}),
      this.#button('Delete', click => this.#closeAnd(() => keeper.remove(id, {byKeyboard: click.detail === 0, byTouch: isTouch(click)})), {title: `Delete “${title}”; this can be undone`}));
    item.dataset.id = id;
    return item;
  }

  /**
   * Open a document, announce it, and give the focus to its text: after a tap that would open the keyboard of a phone.
   * @param {DocumentCard} card
   * @param {MouseEvent} click
   */
  async #open({id, title}, click) {
    if (!await this.keeper.switchTo(id)) return;
    if (!isTouch(click)) this.keeper.draft.box.focus();
    announce(this.opened, `“${title}” is open.`, {again: true});
  }

  /** @param {string | null} id of the copy; null if there was nothing to copy */
  #announceCopy(id) {
    const name = id && this.list.querySelector(`[data-id="${id}"] .name`)?.textContent;
    announce(this.announcement, name ? `The copy “${name}” is made.` : '');
  }

  /** @param {string} id of the document in whose line the focus goes */
  #focus(id) { /** @type {HTMLElement | null} */ (this.list.querySelector(`[data-id="${id}"] .open`))?.focus(); }

  /**
   * @param {string} text
   * @param {(click: MouseEvent) => unknown} run
   * @param {{className?: string, title?: string}} properties
   */
  #button(text, run, properties) {
    const button = make('button', {text, ...properties});
    button.addEventListener('click', run);
    return button;
  }

  /**
   * Put a field for the name in the place of an item's title. Until it is left no other button of the item is there: the lines
   * break anew, and a second click on Rename would meet another button.
   * @param {HTMLElement} item
   * @param {DocumentCard} card
   */
  #rename(item, {id, title}) {
    const field = make('input', {type: 'text', value: title, dir: 'auto', maxLength: 120, ariaLabel: 'New name'});
    let done = false;
    /** @param {boolean} keep */
    const finish = async keep => {
      if (done) return;
      done = true;
      if (keep && field.value.trim()) await this.keeper.rename(id, field.value.trim());
      await this.#paint();
      this.#focus(id);
    };
    field.addEventListener('keydown', event => {
      const found = nameKey(event);
      if (!found) return;
      event.preventDefault();
      finish(found === 'keep');
    });
    field.addEventListener('blur', () => finish(true));
    item.addEventListener('mousedown', event => { if (event.target !== field) event.preventDefault(); });
    item.dataset.renaming = '';
    find(item, '.open').replaceWith(field);
    field.select();
    field.focus();
  }
}
