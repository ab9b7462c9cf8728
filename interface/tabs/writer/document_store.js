// Where documents are kept: IndexedDB, and what it refuses in memory, behind four small verbs.
//
// Lists are made of cards, so that no text is read for them. A record is {id, version, ...}, its card {id, version, ...}.
const NAME = 'lookahead';
const PATIENCE = 2000;   // milliseconds; some browsers never answer when they forbid storage
const AGAIN = 5000;      // milliseconds, after which storage that was refused is tried once more

const settled = request => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

function opened() {
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('The storage does not answer.')), PATIENCE);
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => {
      for (const name of ['records', 'cards']) request.result.createObjectStore(name, {keyPath: 'id'});
    };
    request.onerror = () => reject(request.error);
    request.onsuccess = () => resolve(request.result);
  });
}

export class VersionConflict extends Error {}

export class DocumentStore {
  #database = null;
  #memory = new Map();   // id -> {record, card}
  #refused = {at: -Infinity, error: null};

  // Whether the browser keeps anything here.
  works() { return this.#open().then(() => true, () => false); }

  async cards() {
    const kept = await this.#run('readonly', ({cards}) => settled(cards.getAll())).catch(() => []);
    const held = [...this.#memory.values()].map(({card}) => card);
    return [...kept.filter(({id}) => !this.#memory.has(id)), ...held];
  }

  async read(id) {
    const held = this.#memory.get(id)?.record;
    return held ?? this.#run('readonly', ({records}) => settled(records.get(id))).catch(() => undefined);
  }

  // Keep a record over the version that is there; `Changed` is thrown where another one is. What storage refuses is
  // held in memory, and the reason thrown.
  async write(record, card, over) {
    try {
      await this.#run('readwrite', async ({records, cards}) => {
        const found = await settled(cards.get(card.id));
        if (found && found.version !== over) throw new VersionConflict();
        records.put(record);
        cards.put(card);
      });
      this.#memory.delete(card.id);
    } catch (error) {
      if (!(error instanceof VersionConflict)) this.#memory.set(card.id, {record, card});
      throw error;
    }
  }

  // The same without looking and without waiting, for a page that is being closed.
  writeNow(record, card) {
    if (!this.#database) return;
    try {
      const {transaction, records, cards} = this.#stores('readwrite');
      records.put(record);
      cards.put(card);
      transaction.commit();
    } catch { /* nobody is there to be told */ }
  }

  async erase(id) {
    this.#memory.delete(id);
    await this.#run('readwrite', ({records, cards}) => { records.delete(id); cards.delete(id); });
  }

  async clear() {
    this.#memory.clear();
    await this.#run('readwrite', ({records, cards}) => { records.clear(); cards.clear(); });
  }

  async #open() {
    if (this.#database) return;
    if (performance.now() - this.#refused.at < AGAIN) throw this.#refused.error;
    try {
      this.#database = await opened();
    } catch (error) {
      this.#refused = {at: performance.now(), error};
      throw error;
    }
    const lost = () => { this.#database = null; };
    this.#database.onclose = lost;
    this.#database.onversionchange = () => { this.#database?.close(); lost(); };
  }

  #stores(mode) {
    const transaction = this.#database.transaction(['records', 'cards'], mode);
    return {transaction, records: transaction.objectStore('records'), cards: transaction.objectStore('cards')};
  }

  async #run(mode, work) {
    await this.#open();
    const {transaction, ...stores} = this.#stores(mode);
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
