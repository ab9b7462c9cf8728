// The grey text behind the caret: what would be accepted, of the first branch or of the one that is pointed at.
/** @import {BranchViewElement} from '../core/types.d.ts' */
/** @import {TextOwner} from './text_owner.js' */
import {onDetail} from './events.js';
import {textUpTo} from '../core/choice.js';

/** Decides which ghost text is shown. */
export class GhostText {
  isHidden = false;   // by Esc, until the next edit
  /** @type {string | null} */
  #pointed = null;
  /** @type {BranchViewElement | null} */
  #source = null;    // the branch view whose button is pointed at
  #text = '';

  /**
   * @param {object} parts
   * @param {BranchViewElement} parts.branches
   * @param {() => BranchViewElement} parts.keyed the branch view whose first row is shown
   * @param {TextOwner} parts.draft
   * @param {(text: string) => void} parts.show draws a ghost text
   * @param {() => boolean} parts.shown whether a ghost text is visible
   * @param {() => void} parts.onHidden called when a person has hidden the ghost text, and when the text changes after that
   */
  constructor({branches, keyed, draft, show, shown, onHidden}) {
    this.keyed = keyed;
    this.draft = draft;
    this.show = show;
    this.shown = shown;
    this.onHidden = onHidden;
    onDetail(branches, 'point', ({text, source}) => {
      this.#pointed = text;
      this.#source = source ?? null;
      this.refresh();
    });
    draft.addEventListener('caret', () => this.refresh());
  }

  /** What accepting the ghost text inserts; empty where it is not shown. */
  get text() { return this.shown() ? this.#text : ''; }

  /**
   * Accept the ghost text as far as it was announced: rows that grow add to it. Returns false, and accepts nothing, if it is not
   * shown or another text was announced.
   * @param {string} announced
   */
  accept(announced) {
    if (!this.shown() || !announced) return false;
    const keyed = this.keyed(), {rows, choose} = keyed.branchView, row = rows()[0], isPointed = this.#pointed !== null;
    const last = isPointed ? -1 : row.pieces.findIndex((piece, index) => textUpTo(row, index) === announced);
    if (isPointed ? announced !== this.#pointed : last < 0) return false;
    if (isPointed) (this.#source ?? keyed).branchView.choosePointed();
    else choose(0, last, {byKeyboard: true});
    return true;
  }

  /** Whether the ghost text of the present text is still being computed. */
  get isComing() {
    const {branchView} = this.keyed();
    return this.#isPossible && branchView.awaitsRows() && !branchView.isVeiled();
  }

  /** Hide the ghost text until the next edit. Returns whether there was any, or one was coming. */
  hide() {
    const was = this.shown() || this.isComing;
    this.#setHidden(this.isHidden || was);
    this.show('');
    return was;
  }

  /** The text has changed. */
  edited() {
    this.#setHidden(false);
    this.moved();
  }

  /** @param {boolean} isHidden */
  #setHidden(isHidden) {
    const changes = this.isHidden !== isHidden;
    this.isHidden = isHidden;
    if (changes) this.onHidden();
  }

  /** The caret has moved. */
  moved() {
    this.#pointed = null;
    this.show('');
  }

  /** Whether ghost text may stand behind the caret. */
  get #isPossible() {
    const {draft} = this;
    return !this.isHidden && draft.isSynced && !draft.selected && !draft.composing && draft.caret === draft.text.length && draft.text !== '';
  }

  /** The branches were drawn, or something else is pointed at. */
  refresh() {
    const {branchView} = this.keyed(), first = branchView.rows()[0];
    const own = first ? first.pieces.map(piece => piece.text).join('') : '';
    this.#text = this.#isPossible && !branchView.isStale() ? this.#pointed ?? own : '';
    this.show(this.#text);
  }
}
