// Accepting branches by the keys of the text box: the next word of a row, a whole row, the ghost text. What Tab inserts is
// announced before Tab inserts it.
/** @import {BranchViewElement} from '../core/types.d.ts' */
/** @import {GhostText} from './ghost_text.js' */
/** @import {TextOwner} from './text_owner.js' */
import {GHOST_IS_COMING, GHOST_IS_NEW, GUESS_FIRST, refusedRowSentence} from '../core/branch_sentences.js';
import {SLOWEST_PAINT, afterPaint, dispatch} from './events.js';
import {listenToTextKeys} from './text_keys.js';

/** Accepts rows and ghost text by key, and announces what Tab inserts. */
export class AcceptingByKeys {
  #tabLeadsOn = () => false;   // whether Tab leads on from the text box, and accepts nothing

  /**
   * @param {object} parts
   * @param {BranchViewElement} parts.branches the branch view of the page
   * @param {() => BranchViewElement} parts.keyed the branch view whose rows the keys accept
   * @param {TextOwner} parts.draft
   * @param {GhostText} parts.ghost
   * @param {() => boolean} parts.onHidden called when Tab asks for rows that are hidden; returns whether the focus has moved
   * @param {() => void} parts.confirmHidden lets it be announced that the ghost text was hidden
   * @param {() => boolean} parts.rows moves the focus to the rows
   * @param {() => boolean} parts.pause pauses branching, or goes on
   */
  constructor({branches, keyed, draft, ghost, onHidden, confirmHidden, rows, pause}) {
    this.branches = branches;
    this.keyed = keyed;
    this.draft = draft;
    this.ghost = ghost;
    this.onHidden = onHidden;
    this.confirmHidden = confirmHidden;
    this.rows = rows;
    this.pause = pause;
  }

  /** Listen to the keys of the text box, and announce what Tab inserts where the focus or the pointed row changes. */
  listen() {
    const {branches, draft: {box}, draft, rows, pause} = this;
    box.addEventListener('blur', () => dispatch(this.keyed(), 'announceTab', {text: null}));
    box.addEventListener('focus', () => this.announceTab());
    branches.addEventListener('point', () => this.announceTab());
    draft.addEventListener('caret', () => this.announceTab());   // it may be back at the end, where the rows are known
    this.#tabLeadsOn = listenToTextKeys({box, draft, actions: {
      word: branch => this.#accept(branch, this.keyed().branchView.nextWord(branch)),
      whole: branch => this.#acceptWhole(branch),
      ghost: () => {
        draft.sync();   // a caret that has just moved has no rows, and no request for them, yet
        return this.#acceptGhost() || this.#awaitGhost() || this.#goToGuess();
      },
      guess: () => this.#goToGuess(),
      hide: () => this.keyed().branchView.giveUp() || this.#hideGhost(),
      rows,
      pause,
      begin: () => this.announceTab(),
    }});
  }

  /**
   * Announce the ghost text that Tab inserts, unless it was announced already, or that Tab moves the focus to the next control instead.
   * While the rows are computed it still grows: it is announced when they are complete, or where Tab asks for it.
   * @param {{isAskedFor?: boolean}} [options]
   */
  announceTab({isAskedFor = false} = {}) {
    const {draft} = this, {revision} = draft;
    // Whether the ghost text fits into its line is known after the next paint, which may be late on a busy computer.
    afterPaint(() => {
      if (draft.revision !== revision || !draft.hasFocus) return;
      const {text} = this.ghost, keyed = this.keyed(), leadsOn = this.#tabLeadsOn();
      if (keyed.branchView.state() === 'thinking' && !isAskedFor && !leadsOn) return;
      // In Compare, the page's own branch view announces the last action, and has to be first; a column announces what Tab inserts.
      if (text && keyed !== this.branches) dispatch(this.branches, 'announceConfirmed');
      dispatch(keyed, 'announceTab', {text, leadsOn});
    }, SLOWEST_PAINT);
  }

  /**
   * Accept the ghost text as far as it was announced, or say that it is new and announce it: nobody who does not see it should insert
   * it unheard. False if there is none.
   */
  #acceptGhost() {
    if (!this.ghost.text) return false;
    if (this.ghost.accept(this.keyed().branchView.announcedTab())) return true;
    this.#refuse(GHOST_IS_NEW);
    this.announceTab({isAskedFor: true});
    return true;
  }

  /** Keep the focus in the text while the ghost text is computed: on a button, what is typed next would be lost. */
  #awaitGhost() {
    const {isComing} = this.ghost;
    if (isComing) this.#refuse(GHOST_IS_COMING);
    return isComing;
  }

  /** Move the focus to the guess that is asked for first. Returns whether one is. */
  #goToGuess() { return this.branches.branchView.isVeiled() && this.onHidden(); }

  #hideGhost() {
    const hidden = this.ghost.hide();
    if (hidden) this.confirmHidden();
    return hidden;
  }

  /** Say why a key inserts nothing. @param {string} because */
  #refuse(because) { dispatch(this.keyed(), 'refuse', {because}); }

  /**
   * Accept a row up to a token. Returns whether there was such a row, or its absence was said.
   * @param {number} branch
   * @param {number} token
   */
  #accept(branch, token) {
    const {rows, choose, isVeiled} = this.keyed().branchView;
    const row = rows()[branch], because = refusedRowSentence(rows(), branch);
    if (isVeiled()) this.#refuse(GUESS_FIRST);
    else if (because) this.#refuse(because);
    else if (row?.pieces[token]) choose(branch, token, {byKeyboard: true});
    else return false;
    return true;
  }

  /**
   * Accept a whole row, or wait until it is there and complete. Rows of another text than the one in the box refuse. Returns
   * whether there was such a row, or may be.
   * @param {number} branch
   */
  #acceptWhole(branch) {
    const {rows, chooseWhole, isVeiled} = this.keyed().branchView, row = rows()[branch], revision = this.draft.sync();
    return (row?.revision ?? revision) === revision && !isVeiled() ? chooseWhole(branch) : this.#accept(branch, (row?.pieces.length ?? 0) - 1);
  }
}
