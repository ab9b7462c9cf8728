// The document that is open: between the draft and the shelf, from a link, from a file, to a file.
import {documentFrom} from './document_record.js';
import {DocumentLibrary} from './document_library.js';
import {exportDocument, fileName, readDocumentFile} from './document_files.js';
import {decodeLink, isLink} from './document_link.js';
import {downloadFile} from '../../web/ui/elements.js';
import {titleOf} from './document_titles.js';

const TREE_WAITS = 3000;   // milliseconds that an export waits for the tree

const withSeed = ({settings, seed}) => (seed === null || seed === undefined ? settings : {...settings, seed});

export class DocumentKeeper {
  #exported = '';
  #settings = '';   // as they were when last looked at: setting them again is no change

  constructor({draft, instruction, notice, hooks, offer}) {
    Object.assign(this, {draft, instruction, notice, hooks, offer});
    this.shelf = new DocumentLibrary({snapshot: () => this.snapshot()});
    draft.addEventListener('change', () => this.shelf.changed());
    instruction.addEventListener('change', () => this.shelf.changed());
    this.shelf.addEventListener('copied', event => notice.say(event.detail.sentence, null, {stays: true}));
    this.shelf.addEventListener('forgotten', () => this.blank());
  }

  get name() { return this.shelf.current ? titleOf({...this.shelf.current, text: this.draft.text}) : 'Untitled'; }

  snapshot() {
    const {text, on} = this.instruction, {settings, model} = this.hooks;
    return {...this.draft.state(), instruction: text, instructed: on, settings: settings(), model: model()};
  }

  // From here on the box may hold what was typed while all this was loaded: it is never thrown away.
  async start() {
    this.#settings = JSON.stringify(this.hooks.settings());
    await this.shelf.start();
    const linked = await this.#linked(), record = linked ? null : await this.shelf.last();
    await this.#composed();
    if (this.draft.text) this.#beside(linked, record);
    else if (record) this.#take(record);
    else this.shelf.begin();
    if (linked) this.#showLink(linked);
  }

  blank() { this.#new(documentFrom({text: ''})); }

  async switchTo(id) {
    if (id === this.shelf.current?.id) return;
    const record = await this.shelf.store.read(id);
    if (record) this.#take(record);
    else this.notice.say('This document is no longer here.');
  }

  async rename(id, name) {
    await this.shelf.rename(id, name);
    this.shelf.dispatchEvent(new CustomEvent('state', {detail: {state: this.shelf.state, sentence: this.shelf.sentence}}));
  }

  async remove(id) {
    const open = id === this.shelf.current?.id, name = open ? this.name : (await this.shelf.store.read(id))?.name;
    const restore = await this.shelf.remove(id);
    if (open) this.blank();
    const run = async () => {
      await restore();
      if (open) await this.switchTo(id);
    };
    this.notice.say(name ? `“${name}” is deleted.` : 'The document is deleted.', {label: 'Undo', run});
  }

  async forget() {
    await this.shelf.forget();
    this.notice.say('Everything that this browser kept is forgotten.');
  }

  async importFile(file) {
    try {
      const found = await readDocumentFile(file);
      this.#new(found, found.name);
      this.notice.say(`“${file.name}” is open, as a document of its own.`);
    } catch (error) {
      this.notice.say(error.message, null, {stays: true});
    }
  }

  async exportJson() {
    const view = this.hooks.view(), fields = this.snapshot(), name = this.name;
    const waiting = new Promise(resolve => { setTimeout(() => resolve(null), TREE_WAITS); });
    const tree = await Promise.race([Promise.resolve().then(() => this.hooks.tree()).catch(() => null), waiting]);
    downloadFile(exportDocument({...fields, name}, {view, tree}), fileName(name, 'json'), 'application/json');
    this.#exported = fields.text;
  }

  exportText() {
    downloadFile(this.draft.text, fileName(this.name, 'txt'), 'text/plain');
    this.#exported = this.draft.text;
  }

  // Whether closing the page now would lose something.
  get unsafe() {
    return this.shelf.state === 'unsaved' && Boolean(this.draft.text) && this.draft.text !== this.#exported;
  }

  // A link that was put into the address bar of the open page.
  async openLink() {
    const linked = await this.#linked();
    if (linked) this.#showLink(linked);
  }

  show(kept) {
    this.draft.load(kept);
    this.instruction.set(kept.instruction ?? '', kept.instructed ?? false);
    if (kept.settings) this.hooks.applySettings(kept.settings);
    this.#settings = JSON.stringify(this.hooks.settings());
  }

  settingsChanged() {
    const now = JSON.stringify(this.hooks.settings());
    if (now === this.#settings) return;
    this.#settings = now;
    this.shelf.changed();
  }

  #take(record) {
    this.shelf.take(record);
    this.show(documentFrom(record));
    this.shelf.unchanged();
  }

  #new(kept, name = '') {
    this.shelf.begin(name);
    this.show(kept);
  }

  // What was typed before anything was open: into the empty document that was open last, or into one of its own.
  #beside(linked, record) {
    if (record && !record.text) this.shelf.take(record);
    else this.shelf.begin();
    this.shelf.changed();
    if (!record?.text) return;
    const label = `Open “${titleOf(record)}”`;
    this.notice.say('What you typed is a new document.', {label, run: () => this.switchTo(record.id)});
  }

  async #linked() {
    const fragment = location.hash;
    if (!isLink(fragment)) return null;
    window.history.replaceState(window.history.state, '', location.pathname + location.search);
    try {
      return await decodeLink(fragment);
    } catch (error) {
      this.notice.say(error.message, null, {stays: true});
      return null;
    }
  }

  #showLink(linked) {
    this.#new({...documentFrom({text: linked.text}), settings: withSeed(linked)});
    this.notice.say(this.#madeWith(linked.model), null, {stays: true});
    if (linked.instruction) this.offer(linked.instruction, () => this.instruction.set(linked.instruction));
  }

  #madeWith(model) {
    const here = this.hooks.model(), opened = 'The link is open, as a document of its own.';
    if (!model) return opened;
    if (model === here) return `${opened} It was made with the model that is here, ${model}.`;
    const other = here ? `; here ${here} goes on with it, so the branches will differ` : '';
    return `${opened} It was made with ${model}${other}.`;
  }

  #composed() {
    if (!this.draft.composing) return null;
    return new Promise(resolve => {
      for (const name of ['compositionend', 'blur']) this.draft.box.addEventListener(name, resolve, {once: true});
    });
  }
}
