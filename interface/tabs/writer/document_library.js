// The documents of this browser: by name, saved as they are written, one of them open in this tab.
//
// Events: `state` {state, sentence} (saved, saving, unsaved), `copied` {sentence}, `forgotten`.
import {VersionConflict, DocumentStore} from './document_store.js';
import {OtherTabs, newId} from './other_tabs.js';
import {orNull, forgetKept} from '../../web/net/tab_storage.js';
import {cardOf, copyName, titleOf} from './document_titles.js';

const DEBOUNCE = 300;   // milliseconds
const KEY = 'lookahead:document';
const LEFT = 'lookahead:left';   // what was open and not yet saved when this tab left the page
const BLOCKED = 'Not saved: this browser keeps nothing here. Export before you leave.';
const FULL = 'Not saved: the browser\'s storage is full. Export now.';

// What the browser refuses to remember is forgotten.
const storages = () => ['sessionStorage', 'localStorage'].flatMap(name => {
  try {
    return [globalThis[name]];
  } catch {
    return [];
  }
});

export class DocumentLibrary extends EventTarget {
  state = 'saved';
  sentence = '';
  current = null;     // {id, name, created, version, stored}
  #dirty = false;
  #timer = 0;
  #saving = Promise.resolve();
  #claim = Promise.resolve();

  // `snapshot` gives the fields of the open document as they are now.
  constructor({snapshot, store = new DocumentStore()}) {
    super();
    Object.assign(this, {snapshot, store});
    this.tabs = new OtherTabs({onForget: () => this.#emptied()});
    document.addEventListener('visibilitychange', () => document.visibilityState === 'hidden' && this.flush());
    addEventListener('pagehide', () => this.#leave());
  }

  // Whether anything is kept here at all; said at once where not.
  async start() {
    if (!await this.store.works()) this.#say('unsaved', BLOCKED);
  }

  // Cards, the last edited first; the open one as it is now.
  async list() {
    const cards = (await this.store.cards()).filter(({id}) => id !== this.current?.id);
    if (this.current) cards.push({...cardOf(this.#record()), open: true});
    return cards.sort((one, other) => Number(Boolean(other.open)) - Number(Boolean(one.open)) || other.edited - one.edited);
  }

  // A new document, from now on the open one. It is kept as soon as there is something in it.
  begin(name = '') {
    this.flush();
    this.current = {id: newId(), name, created: Date.now(), edited: Date.now(), version: undefined, stored: false};
    this.#claim = Promise.resolve();
    this.tabs.hold(this.current.id);
  }

  // A record is from now on the open one; another tab that has it open already turns it into a copy, soon after.
  take(record) {
    this.flush();
    const {id, name, created, edited, version} = record;
    const current = this.current = {id, name, created, edited, version, stored: true};
    this.#remember();
    this.#claim = this.tabs.claim(id).then(taken => {
      if (taken && this.current === current) this.#becomeCopy(current, 'is open in another tab');
    });
  }

  // The record of the document that this tab had open, or else of the one that was opened last; or null.
  async last() {
    const left = this.#takeLeft();
    if (left && left.edited >= ((await this.store.read(left.id))?.edited ?? 0)) return left;
    for (const id of storages().map(storage => orNull(() => storage.getItem(KEY)))) {
      const record = id && await this.store.read(id);
      if (record) return record;
    }
    return null;
  }

  // Something is different in the open document.
  changed() {
    if (!this.current) return;
    this.#dirty = true;
    this.current.edited = Date.now();
    if (this.state !== 'unsaved') this.#say('saving', '');
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.flush(), DEBOUNCE);
  }

  // What is open is what was kept: showing it is no change.
  unchanged() {
    clearTimeout(this.#timer);
    this.#dirty = false;
    if (this.state === 'saving') this.#say('saved', '');
  }

  // What is to be saved is taken at once, so that another document may be opened in the next moment.
  flush() {
    clearTimeout(this.#timer);
    if (!this.#dirty || !this.current) return this.#saving;
    const fields = this.snapshot(), current = this.current, claim = this.#claim;
    this.#dirty = false;
    this.#saving = this.#saving.then(() => claim).then(() => this.#save(fields, current));
    return this.#saving;
  }

  // Keep a document beside the open one; its id.
  async keep(fields, name = '') {
    const id = newId(), now = Date.now();
    const record = {...fields, id, name, created: now, edited: now, version: 1};
    await this.store.write(record, cardOf(record)).catch(error => this.#refused(error));
    return id;
  }

  async rename(id, name) {
    if (id === this.current?.id) {
      this.current.name = name;
      return this.changed();
    }
    const record = await this.store.read(id);
    if (!record) return;
    const renamed = {...record, name, version: record.version + 1};
    await this.store.write(renamed, cardOf(renamed), record.version).catch(error => this.#refused(error));
  }

  async duplicate(id) {
    const record = id === this.current?.id ? this.#record() : await this.store.read(id);
    return record ? this.keep(record, copyName(titleOf(record))) : null;
  }

  // Take a document away; a function that puts it back.
  async remove(id) {
    const open = id === this.current?.id, record = open ? this.#record() : await this.store.read(id);
    if (open) this.#close();
    await this.#saving;
    await this.store.erase(id).catch(() => {});
    return () => this.store.write(record, cardOf(record)).catch(error => this.#refused(error));
  }

  // Everything, in every tab.
  async forget() {
    this.tabs.forget();
    this.#close();
    await this.#saving;
    await this.store.clear().catch(() => {});
    this.#emptied();
  }

  #close() {
    clearTimeout(this.#timer);
    this.#dirty = false;
    this.current = null;
  }

  #emptied() {
    this.#close();
    for (const storage of storages()) orNull(() => storage.removeItem(KEY));
    forgetKept();
    this.dispatchEvent(new CustomEvent('forgotten'));
  }

  #record(fields = this.snapshot(), {id, name, created, edited, version = 0} = this.current) {
    return {...fields, id, name, created, edited, version: version + 1};
  }

  async #save(fields, current) {
    const record = this.#record(fields, current), empty = !record.text && !record.name && !record.instruction;
    if (empty && !current.stored) return this.#say('saved', '');
    try {
      await this.store.write(record, cardOf(record), current.version);
      current.version = Math.max(record.version, current.version ?? 0);
      current.stored = true;
      if (current !== this.current) return;
      this.#remember();
      if (!this.#dirty) this.#say('saved', '');
    } catch (error) {
      await this.#failed(error, fields, current);
    }
  }

  async #failed(error, fields, current) {
    if (error instanceof VersionConflict) {
      this.#becomeCopy(current, 'was changed in another tab');
      return this.#save(fields, current);
    }
    if (current === this.current) this.#dirty = true;
    this.#refused(error);
  }

  #refused(error) {
    this.#say('unsaved', error?.name === 'QuotaExceededError' ? FULL : BLOCKED);
  }

  #becomeCopy(current, why) {
    const known = titleOf({...current, text: this.snapshot().text});
    Object.assign(current, {id: newId(), name: copyName(known), version: undefined, stored: false});
    if (current === this.current) this.tabs.hold(current.id);
    this.dispatchEvent(new CustomEvent('copied', {detail: {sentence: `“${known}” ${why}, so this is a copy of it.`}}));
  }

  #leave() {
    if (!this.#dirty || !this.current) return;
    const record = this.#record();
    this.#leaveHere(record);
    this.store.writeNow(record, cardOf(record));
    this.current.version = record.version;
    this.#remember();
  }

  // A database may not finish while a page is closed; this is there at once when the same tab comes back.
  #leaveHere(record) { orNull(() => sessionStorage.setItem(LEFT, JSON.stringify(record))); }

  #takeLeft() {
    const left = orNull(() => JSON.parse(sessionStorage.getItem(LEFT)));
    orNull(() => sessionStorage.removeItem(LEFT));
    return left && typeof left.id === 'string' && typeof left.text === 'string' ? left : null;
  }

  #remember() {
    for (const storage of storages()) orNull(() => storage.setItem(KEY, this.current.id));
  }

  #say(state, sentence) {
    Object.assign(this, {state, sentence});
    this.dispatchEvent(new CustomEvent('state', {detail: {state, sentence}}));
  }
}
