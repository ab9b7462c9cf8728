// What was chosen lately and stands untouched: the model need not guess again into which tokens it falls.
const MOST = 10000;   // as many as the server takes, should it have started anew

export class AcceptedTrail {
  #pieces = [];

  clear() { this.#pieces = []; }

  add({start, inserted, ids, healed}, revision) {
    if (ids?.length) this.#pieces = [...this.#pieces, {start, end: start + inserted.length, ids, healed, revision}].slice(-MOST);
  }

  // A piece that a change reaches into is dropped; one that lies behind it moves along.
  applyChange({start, removed, inserted}) {
    const end = start + removed.length, by = inserted.length - removed.length;
    this.#pieces = this.#pieces
      .filter(piece => start >= piece.end || end < piece.start)
      .map(piece => (start >= piece.end ? piece : {...piece, start: piece.start + by, end: piece.end + by}));
  }

  since(revision, caret) {
    return this.#pieces
      .filter(piece => piece.revision > revision && piece.end <= caret)
      .sort((one, other) => one.start - other.start)
      .map(({start, ids, healed}) => [start, ids, healed]);
  }
}
