// Changes of rows of which nothing is accepted yet. Each is a step beside the text, so that undo takes it back, and it is there
// again when undo or redo leads back to its text. Those of the present text are sent with each request.
/** @import {BranchRemainder, BranchViewElement, RowEdit, RowEditDetail} from '../core/types.d.ts' */
/** @import {RowEditStep} from '../core/row_edits.js' */
/** @import {TextOwner} from './text_owner.js' */
import {MOST_EDITS, bannedTextSentence, bannedTokenIn, editsAfter} from '../core/row_edits.js';
import {dispatch, onDetail} from './events.js';

const MANY_EDITS = 'Eight rows are changed already: accept something first.';

/** The changes of the rows of the present text. */
export class RowEditing {
  /**
   * Changes that the server has refused.
   * @type {WeakSet<RowEdit>}
   */
  #refused = new WeakSet();
  #follows = false;   // whether the branch view follows a row of this text whose change was made or undone

  /**
   * @param {object} parts
   * @param {BranchViewElement} parts.branches
   * @param {TextOwner} parts.draft
   * @param {() => string} parts.refusal why no row can be changed now; empty where one can
   * @param {() => number[]} parts.banned token ids
   * @param {() => string[]} parts.bannedTexts the texts of these tokens
   * @param {() => boolean} parts.steers whether a word to go towards is set: then requests have no changes
   * @param {() => BranchRemainder | null} parts.pinned the pinned row
   * @param {(pinned: BranchRemainder | null) => void} parts.request requests the rows again, with this row pinned
   */
  constructor({branches, draft, refusal, banned, bannedTexts, steers, pinned, request}) {
    this.branches = branches;
    this.draft = draft;
    this.refusal = refusal;
    this.banned = banned;
    this.bannedTexts = bannedTexts;
    this.steers = steers;
    this.pinned = pinned;
    this.request = request;
    branches.dataset.editable = '';
    branches.addEventListener('edit', event => this.#take(/** @type {CustomEvent<RowEditDetail>} */ (event)));
    onDetail(draft, 'side', ({verb, step}) => { if (step.edit) this.#apply(step, verb); });
  }

  /** The changes that a request for the present text has. */
  get list() {
    const {sideSteps, before} = this.draft;
    return this.steers() ? [] : editsAfter(sideSteps, before, this.banned()).filter(edit => !this.#refused.has(edit));
  }

  /** The server has refused a request: one of its changes may be the reason. */
  refuse() { for (const edit of this.list) this.#refused.add(edit); }

  /**
   * Make a change a step beside the text, unless it is refused.
   * @param {CustomEvent<RowEditDetail>} event
   */
  #take(event) {
    const {detail} = event, {draft} = this, banned = bannedTokenIn(detail.edit.text, this.bannedTexts());
    detail.because = this.refusal() || (banned ? bannedTextSentence(banned) : this.list.length < MOST_EDITS ? undefined : MANY_EDITS);
    if (detail.revision !== draft.revision || detail.because) event.preventDefault();
    else draft.addSideStep({edit: detail.edit, text: draft.before, pinned: detail.pinned ? this.pinned() : null});
  }

  /**
   * A change was made or undone: request the rows again.
   * @param {RowEditStep} step
   * @param {'take' | 'undo' | 'redo'} verb
   */
  #apply({edit, pinned}, verb) {
    const undoes = verb === 'undo';
    if (undoes) dispatch(this.branches, 'confirm', {kind: 'unchanged', text: edit.text});
    if (verb !== 'take') dispatch(this.branches, 'follow', {edit, verb});
    this.#follows = true;
    this.request(pinned ? undoes ? pinned : null : this.pinned());
  }

  /** The text has changed, and not only the prompt: the rows of another text have other changes. */
  textChanged() {
    if (this.#follows) dispatch(this.branches, 'follow', {});
    this.#follows = false;
  }
}
