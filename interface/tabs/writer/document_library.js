// The documents of this browser: named, saved while they are written, one of them open in this tab.
//
// Events: `state` {state, sentence} (saved, saving, unsaved), `copied` {sentence}, `forgotten`.
/** @import {DocumentCard, DocumentFields, DocumentRecord} from '../../web/core/types.d.ts' */
import {DocumentStore, VersionConflict} from './document_store.js';
import {OtherTabs} from './other_tabs.js';
import {randomId} from '../../web/net/requests.js';
import {columnInstructions} from '../../web/core/compared_columns.js';
import {cardOf, copyName, titleOf} from './document_titles.js';
import {dispatch} from '../../web/ui/events.js';
import {forgetKept, orNull} from '../../web/net/tab_storage.js';

const DEBOUNCE = 300;              // milliseconds from a change to its storage
const KEY = 'lookahead:document';
const LEFT = 'lookahead:left';     // the record that was open and not yet saved when this tab left the page
const BLOCKED = 'Not saved: this browser keeps nothing here. Export before you leave.';
const FULL = 'Not saved: the browser\'s storage is full. Export now.';

/** @typedef {{id: string, name: string, created: number, edited: number, version: number | undefined, stored: boolean}} OpenDocument */

/** The storages that the browser allows: of this tab, and of all tabs. */
const storages = () => [() => sessionStorage, () => localStorage].map(orNull).filter(storage => storage !== null);

/** The documents, and the state of the open one. */
export class DocumentLibrary extends EventTarget {
  state = 'saved';
  sentence = '';
  /** @type {OpenDocument | null} */
  current = null;
  #changed = false;   // whether the open document differs from its stored record
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {Promise<void>} */
  #saving = Promise.resolve();
  #unfinished = 0;   // saves that have begun and not ended
  /** @type {Promise<void>} */
  #claim = Promise.resolve();

  /** @param {{snapshot: () => DocumentFields, store?: DocumentStore}} options `snapshot`: the open document's fields */
  constructor({snapshot, store = new DocumentStore()}) {
    super();
    this.snapshot = snapshot;
    this.store = store;
    this.tabs = new OtherTabs({onForget: () => this.#emptied()});
    document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'hidden') this.flush(); });
    addEventListener('pagehide', () => this.#leave());
  }

  /** Say at once if nothing can be stored here. */
  async start() {
    if (!await this.store.works()) this.#setState('unsaved', BLOCKED);
  }

  /**
   * The cards of all documents: the open one first, then the last edited ones.
   * @returns {Promise<DocumentCard[]>}
   */
  async list() {
    const cards = (await this.store.cards()).filter(({id}) => id !== this.current?.id);
    if (this.current) cards.push({...cardOf(this.#recordOf(this.current)), open: true});
    return cards.sort((one, other) => Number(Boolean(other.open)) - Number(Boolean(one.open)) || other.edited - one.edited);
  }

  /**
   * Open a new document. It is stored as soon as it has content.
   * @param {string} [name]
   */
  begin(name = '') {
    this.flush();
    this.current = {id: randomId(), name, created: Date.now(), edited: Date.now(), version: undefined, stored: false};
    this.#claim = Promise.resolve();
    this.tabs.hold(this.current.id);
  }

  /**
   * Open a record. If another tab has it open, it soon becomes a copy.
   * @param {DocumentRecord} record
   */
  open(record) {
    this.flush();
    const {id, name, created, edited, version} = record;
    const current = this.current = {id, name, created, edited, version, stored: true};
    this.#remember(id);
    this.#claim = this.tabs.claim(id).then(taken => {
      if (taken && this.current === current) this.#becomeCopy(current, 'is open in another tab');
    });
  }

  /**
   * The record that this tab had open, else the one that was opened last; null if there is none.
   * @returns {Promise<DocumentRecord | null>}
   */
  async last() {
    const left = await this.#storeLeft();
    if (left) return left;
    for (const id of storages().map(storage => orNull(() => storage.getItem(KEY)))) {
      const record = id && await this.store.read(id);
      if (record) return record;
    }
    return null;
  }

  /** Whether this tab had a document open before it was loaded again. @param {string} id */
  wasOpen(id) { return orNull(() => sessionStorage.getItem(KEY)) === id; }

  /** The open document has changed. */
  changed() {
    if (!this.current) return;
    this.#changed = true;
    this.current.edited = Date.now();
    if (this.state !== 'unsaved') this.#setState('saving', '');
    this.#flushSoon();
  }

  /** What is stored beside the text of the open document has changed. That is no edit; a document that is not stored yet waits for one. */
  besideChanged() {
    if (!this.current?.stored) return;
    this.#changed = true;
    this.#flushSoon();
  }

  #flushSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.flush(), DEBOUNCE);
  }

  /** The open document is the stored one: showing it has changed nothing. */
  unchanged() {
    clearTimeout(this.#timer);
    this.#changed = false;
    if (this.state === 'saving') this.#setState('saved', '');
  }

  /** Store the changes. Its content is taken at once, so that another document may be opened in the next moment. */
  flush() {
    clearTimeout(this.#timer);
    if (!this.#changed || !this.current) return this.#saving;
    const fields = this.snapshot(), current = this.current, claim = this.#claim;
    this.#changed = false;
    this.#unfinished += 1;
    this.#saving = this.#saving.then(() => claim).then(() => this.#save(fields, current)).finally(() => { this.#unfinished -= 1; });
    return this.#saving;
  }

  /**
   * Whether a document of this browser has this instruction, or shows a column with it.
   * @param {string} instruction
   */
  async hasInstruction(instruction) {
    /** @type {(document: Pick<DocumentFields, 'instruction' | 'settings'> | null | undefined) => boolean} */
    const has = document => document?.instruction === instruction || columnInstructions(document?.settings).includes(instruction);
    if (this.current && has(this.snapshot())) return true;
    for (const {id} of await this.store.cards()) if (has(await this.store.read(id))) return true;
    return false;
  }

  /**
   * Store a document beside the open one.
   * @param {DocumentFields} fields
   * @param {string} [name]
   * @returns {Promise<string>} its id
   */
  async keep(fields, name = '') {
    const id = randomId(), now = Date.now();
    const record = {...fields, id, name, created: now, edited: now, version: 1};
    await this.store.write(record, cardOf(record)).catch(error => this.#refused(error));
    return id;
  }

  /**
   * The name for one more document: the title itself, or that of a copy if a document of this browser has that title.
   * @param {string} title
   */
  async freeName(title) {
    const taken = new Set((await this.list()).map(card => card.title));
    let name = title;
    while (taken.has(name)) name = copyName(name);
    return name;
  }

  /** @param {string} id @param {string} name */
  async rename(id, name) {
    if (this.current?.id === id) {
      this.current.name = name;
      this.changed();
      return;
    }
    const record = await this.store.read(id);
    if (!record) return;
    const renamed = {...record, name, version: record.version + 1};
    await this.store.write(renamed, cardOf(renamed), record.version).catch(error => this.#refused(error));
  }

  /**
   * @param {string} id
   * @returns {Promise<string | null>} the id of the copy
   */
  async duplicate(id) {
    const record = this.current?.id === id ? this.#recordOf(this.current) : await this.store.read(id);
    return record ? this.keep(record, await this.freeName(copyName(titleOf(record)))) : null;
  }

  /**
   * Delete a document.
   * @param {string} id
   * @returns {Promise<() => Promise<void>>} a function that restores it
   */
  async remove(id) {
    const current = this.current?.id === id ? this.current : null, record = current ? this.#recordOf(current) : await this.store.read(id);
    if (current) this.#close();
    await this.#saving;
    await this.store.erase(id).catch(() => {});
    return async () => {
      if (record) await this.store.write(record, cardOf(record)).catch(error => this.#refused(error));
    };
  }

  /** Delete everything, in every tab. */
  async forget() {
    this.tabs.forget();
    this.#close();
    await this.#saving;
    await this.store.clear().catch(() => {});
    this.#emptied();
  }

  /** Tell listeners the state once more: the open document has another name. */
  announceState() { dispatch(this, 'state', {state: this.state, sentence: this.sentence}); }

  #close() {
    clearTimeout(this.#timer);
    this.#changed = false;
    this.current = null;
  }

  #emptied() {
    this.#close();
    for (const storage of storages()) for (const key of [KEY, LEFT]) orNull(() => storage.removeItem(key));
    forgetKept();
    dispatch(this, 'forgotten');
  }

  /**
   * The record of an open document, as its next version.
   * @param {OpenDocument} current
   * @param {DocumentFields} [fields]
   * @returns {DocumentRecord}
   */
  #recordOf({id, name, created, edited, version = 0}, fields = this.snapshot()) {
    return {...fields, id, name, created, edited, version: version + 1};
  }

  /**
   * @param {DocumentFields} fields
   * @param {OpenDocument} current
   * @returns {Promise<void>}
   */
  async #save(fields, current) {
    const record = this.#recordOf(current, fields), empty = !record.text && !record.name && !record.instruction;
    if (empty && !current.stored) {
      this.#setSaved();
      return;
    }
    try {
      await this.store.write(record, cardOf(record), current.version);
      current.version = Math.max(record.version, current.version ?? 0);
      current.stored = true;
      await this.#storeRefused();
      if (current !== this.current) return;
      this.#remember(current.id);
      if (!this.#changed) this.#setSaved();
    } catch (error) {
      await this.#onFailedSave(error, fields, current);
    }
  }

  /**
   * @param {unknown} error
   * @param {DocumentFields} fields
   * @param {OpenDocument} current
   */
  async #onFailedSave(error, fields, current) {
    if (error instanceof VersionConflict) {
      this.#becomeCopy(current, 'was changed in another tab', fields);
      await this.#save(fields, current);
      return;
    }
    if (current === this.current) this.#changed = true;
    this.#refused(error);
  }

  /** Store what was refused before, as far as there is room now. What another tab has changed since becomes a copy. */
  async #storeRefused() {
    for (const record of this.store.inMemory) {
      await this.store.write(record, cardOf(record), record.version - 1).catch(async error => {
        if (error instanceof VersionConflict) await this.keep(record, copyName(titleOf(record)));
      });
    }
  }

  /** The open document is saved; say so, unless another document is not. */
  #setSaved() {
    const [other] = this.store.inMemory;
    if (other) this.#setState('unsaved', `Not saved: “${titleOf(other)}”. Open it under Documents and export it.`);
    else this.#setState('saved', '');
  }

  /** Whether a document that is not open is not saved. */
  get losesAnother() { return this.store.inMemory.some(({id}) => id !== this.current?.id); }

  /** @param {unknown} error */
  #refused(error) {
    const full = error instanceof DOMException && error.name === 'QuotaExceededError';
    this.#setState('unsaved', full ? FULL : BLOCKED);
  }

  /** @param {OpenDocument} current @param {string} why @param {DocumentFields} [fields] of it: it may not be open any more */
  #becomeCopy(current, why, fields = this.snapshot()) {
    const known = titleOf({name: current.name, text: fields.text});
    Object.assign(current, {id: randomId(), name: copyName(known), version: undefined, stored: false});
    if (current === this.current) this.tabs.hold(current.id);
    dispatch(this, 'copied', {sentence: `“${known}” ${why}, so this is a copy of it.`});
  }

  /** The page is left: a database may not finish, so the record is also stored where writing is immediate. */
  #leave() {
    if (!this.current || !(this.#changed || this.#unfinished)) return;
    const record = this.#recordOf(this.current);
    orNull(() => sessionStorage.setItem(LEFT, JSON.stringify(record)));
    this.store.writeNow(record, cardOf(record));
    this.current.version = record.version;
    this.#remember(record.id);
  }

  /**
   * Store the record that was open and not yet saved when this tab left the page: the browser may have given up that write.
   * @returns {Promise<DocumentRecord | null>} that record; null if there is none or the stored one is as new
   */
  async #storeLeft() {
    const left = this.#takeLeft(), stored = left && await this.store.read(left.id);
    if (!left || (stored && (stored.edited - left.edited || stored.version - left.version) >= 0)) return null;
    await this.store.write(left, cardOf(left), stored?.version).catch(error => {
      if (!(error instanceof VersionConflict)) this.#refused(error);   // a conflict: the write at leaving came through late
    });
    return left;
  }

  /** @returns {DocumentRecord | null} */
  #takeLeft() {
    const left = orNull(() => JSON.parse(sessionStorage.getItem(LEFT) ?? 'null'));
    orNull(() => sessionStorage.removeItem(LEFT));
    return left && typeof left.id === 'string' && typeof left.text === 'string' ? left : null;
  }

  /** @param {string} id */
  #remember(id) {
    for (const storage of storages()) orNull(() => storage.setItem(KEY, id));
  }

  /** @param {string} state @param {string} sentence */
  #setState(state, sentence) {
    this.state = state;
    this.sentence = sentence;
    this.announceState();
  }
}
