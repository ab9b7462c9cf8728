// The pieces that were accepted lately and are still unchanged in the text, so that the server keeps their token ids.
/** @import {AcceptedPiece, AcceptedSpan, Change, HistoryState, HistoryStep, NewStep} from './types.d.ts' */
const MOST_PIECES = 10000;   // as many as the server takes when it has lost its tree

/** @typedef {AcceptedSpan & {revision: number}} TrailPiece */

/** Where the accepted pieces stand in the text, and at which revision each was accepted. */
export class AcceptedTrail {
  /** @type {TrailPiece[]} */
  #pieces = [];

  /** The pieces in the order of the text, to be stored with it. */
  get spans() {
    return this.#pieces.map(({start, end, ids, healed}) => ({start, end, ids, healed})).sort((one, other) => one.start - other.start);
  }

  /**
   * Take the pieces of a text that was opened.
   * @param {AcceptedSpan[]} spans
   * @param {number} revision the text's revision
   */
  restore(spans, revision) { this.#pieces = spans.slice(-MOST_PIECES).map(span => ({...span, revision})); }

  /**
   * Take the pieces that the steps of a history have left in the text: for documents that were stored without them.
   * @param {HistoryState} history
   * @param {number} revision the text's revision
   */
  restoreFrom({steps, position}, revision) {
    this.#pieces = [];
    for (const step of steps.slice(0, position)) {
      this.applyChange(step);
      this.restoreStep(step, revision);
    }
  }

  /**
   * Add the pieces that a step has brought into the text.
   * @param {HistoryStep} step
   * @param {number} revision the text's revision after it
   */
  restoreStep(step, revision) {
    this.add(step, revision);
    this.addMissing(step.accepted ?? [], revision);
  }

  /**
   * Add the pieces that the steps of a history have left in the text, where no piece is known.
   * @param {HistoryState} history
   * @param {number} revision the text's revision
   */
  addFrom(history, revision) {
    const past = new AcceptedTrail();
    past.restoreFrom(history, revision);
    this.addMissing(past.spans, revision);
  }

  /**
   * Add those of some pieces of the text where no piece is known.
   * @param {AcceptedSpan[]} spans
   * @param {number} revision the text's revision
   */
  addMissing(spans, revision) {
    const known = this.#pieces;
    const missing = spans.filter(piece => known.every(({start, end}) => piece.end <= start || piece.start >= end));
    this.#pieces = [...known, ...missing.map(piece => ({...piece, revision}))].slice(-MOST_PIECES);
  }

  /**
   * Add an accepted piece, unless its token ids are unknown.
   * @param {NewStep} step
   * @param {number} revision the text's revision after it
   */
  add({start, after, ids, healed = false}, revision) {
    if (!ids?.length) return;
    this.#pieces = [...this.#pieces, {start, end: after[0], ids, healed, revision}].slice(-MOST_PIECES);
  }

  /**
   * Follow a change of the text: drop the pieces it reaches into, and move the pieces behind it.
   * @param {Change} change
   */
  applyChange({start, removed, inserted}) {
    const end = start + removed.length, by = inserted.length - removed.length;
    this.#pieces = this.#pieces
      .filter(piece => start >= piece.end || end < piece.start)
      .map(piece => (start >= piece.end ? piece : {...piece, start: piece.start + by, end: piece.end + by}));
  }

  /**
   * The pieces before the caret that were accepted after a revision or end behind a place of the text, and the piece that
   * ends at the caret: a letter that was typed after it, and undone, may have split its last token. In the order of the text.
   * @param {number} revision
   * @param {number} caret
   * @param {number} [place]
   * @returns {AcceptedPiece[]} with starts in UTF-16 units
   */
  since(revision, caret, place = Infinity) {
    return this.#pieces
      .filter(({revision: own, end}) => end === caret || (end < caret && (own > revision || end > place)))
      .sort((one, other) => one.start - other.start)
      .map(({start, ids, healed}) => [start, ids, healed]);
  }
}
