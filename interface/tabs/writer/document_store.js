// The storage of documents: IndexedDB, and memory for what IndexedDB refuses.
//
// The list of documents is made of cards, so that no text is read for it.
/** @import {DocumentCard, DocumentRecord} from '../../web/core/types.d.ts' */
const DATABASE = 'lookahead';
const TIMEOUT = 2000;   // milliseconds; some browsers never answer when they forbid storage
const RETRY = 5000;     // milliseconds after which refused storage is tried again

/** @typedef {{records: IDBObjectStore, cards: IDBObjectStore}} ObjectStores */

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
const resultOf = request => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/** @returns {Promise<IDBDatabase>} */
function openDatabase() {
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('The storage does not answer.')), TIMEOUT);
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => {
      for (const name of ['records', 'cards']) request.result.createObjectStore(name, {keyPath: 'id'});
    };
    request.onerror = () => reject(request.error);
    request.onsuccess = () => resolve(request.result);
  });
}

/** Thrown where another tab has stored a later version of a document. */
export class VersionConflict extends Error {}

/** Documents by id, each as a record and a card. */
export class DocumentStore {
  /** @type {IDBDatabase | null} */
  #database = null;
  /** @type {Map<string, {record: DocumentRecord, card: DocumentCard}>} */
  #memory = new Map();
  /** @type {{at: number, error: unknown}} */
  #refused = {at: -Infinity, error: null};

  /** Whether the browser stores anything here. */
  works() { return this.#open().then(() => true, () => false); }

  /** The records that storage has refused and that are only in memory. */
  get inMemory() { return [...this.#memory.values()].map(({record}) => record); }

  /** @returns {Promise<DocumentCard[]>} */
  async cards() {
    /** @type {DocumentCard[]} */
    const stored = await this.#run('readonly', ({cards}) => resultOf(cards.getAll())).catch(() => []);
    const held = [...this.#memory.values()].map(({card}) => card);
    return [...stored.filter(({id}) => !this.#memory.has(id)), ...held];
  }

  /**
   * A record; undefined if there is none.
   * @param {string} id
   * @returns {Promise<DocumentRecord | undefined>}
   */
  async read(id) {
    const held = this.#memory.get(id)?.record;
    return held ?? this.#run('readonly', ({records}) => resultOf(records.get(id))).catch(() => undefined);
  }

  /**
   * Store a record. What storage refuses is kept in memory, and the reason is thrown.
   * @param {DocumentRecord} record
   * @param {DocumentCard} card
   * @param {number} [over] the version that was edited; VersionConflict is thrown if a later one is stored. An earlier one is
   *   replaced: the browser gave up the write of a page that was being closed
   */
  async write(record, card, over) {
    try {
      await this.#run('readwrite', async ({records, cards}) => {
        const found = await resultOf(cards.get(card.id));
        if (found && !(over !== undefined && found.version <= over)) throw new VersionConflict();
        records.put(record);
        cards.put(card);
      });
      this.#memory.delete(card.id);
    } catch (error) {
      if (error instanceof VersionConflict) this.#memory.delete(card.id);   // the caller makes a copy
      else this.#memory.set(card.id, {record, card});
      throw error;
    }
  }

  /**
   * Store a record without comparing versions and without waiting, for a page that is being closed.
   * @param {DocumentRecord} record
   * @param {DocumentCard} card
   */
  writeNow(record, card) {
    if (!this.#database) return;
    try {
      const {transaction, records, cards} = this.#stores(this.#database, 'readwrite');
      records.put(record);
      cards.put(card);
      transaction.commit();
    } catch { /* the page is closing */ }
  }

  /** @param {string} id */
  async erase(id) {
    this.#memory.delete(id);
    await this.#run('readwrite', async ({records, cards}) => { records.delete(id); cards.delete(id); });
  }

  async clear() {
    this.#memory.clear();
    await this.#run('readwrite', async ({records, cards}) => { records.clear(); cards.clear(); });
  }

  /** @returns {Promise<IDBDatabase>} */
  async #open() {
    if (this.#database) return this.#database;
    if (performance.now() - this.#refused.at < RETRY) throw this.#refused.error;
    /** @type {IDBDatabase} */
    let database;
    try {
      database = await openDatabase();
    } catch (error) {
      this.#refused = {at: performance.now(), error};
      throw error;
    }
    this.#database = database;
    database.onclose = () => { this.#database = null; };
    database.onversionchange = () => {
      database.close();
      this.#database = null;
    };
    return database;
  }

  /** @param {IDBDatabase} database @param {IDBTransactionMode} mode */
  #stores(database, mode) {
    const transaction = database.transaction(['records', 'cards'], mode);
    return {transaction, records: transaction.objectStore('records'), cards: transaction.objectStore('cards')};
  }

  /**
   * Do work in one transaction.
   * @template T
   * @param {IDBTransactionMode} mode
   * @param {(stores: ObjectStores) => Promise<T>} work
   * @returns {Promise<T>}
   */
  async #run(mode, work) {
    const {transaction, ...stores} = this.#stores(await this.#open(), mode);
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error ?? new Error('The storage gave up.'));
    });
    done.catch(() => {});
    try {
      const result = await work(stores);
      await done;
      return result;
    } catch (error) {
      try { transaction.abort(); } catch { /* it has ended already */ }
      throw error;
    }
  }
}
