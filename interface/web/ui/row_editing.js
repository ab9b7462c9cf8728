// Changes of rows of which nothing is accepted yet. Each is a step beside the text, so that undo takes it back; all of them are
// sent with each request.
/** @import {BranchRemainder, BranchViewElement, RowEdit, RowEditDetail} from '../core/types.d.ts' */
/** @import {TextOwner} from './text_owner.js' */
import {NO_EDITS, editsAt, editsKept, withEdit, withoutEdit} from '../core/row_edits.js';
import {dispatch, onDetail} from './events.js';

const MANY_EDITS = 'Eight rows are changed already: accept something first.';
const PROMPT_KINDS = ['prompt', 'prompting'];   // changes of the draft after which the text is the same

/** @typedef {{edit: RowEdit, pinned: BranchRemainder | null}} RowEditStep a change of a row, and the pinned row that it replaced */

/** The changes of the rows of the present text. */
export class RowEditing {
  #edits = NO_EDITS;

  /**
   * @param {object} parts
   * @param {BranchViewElement} parts.branches
   * @param {TextOwner} parts.draft
   * @param {() => string} parts.refusal why no row can be changed now; empty where one can
   * @param {() => number[]} parts.banned token ids
   * @param {() => BranchRemainder | null} parts.pinned the pinned row
   * @param {(pinned: BranchRemainder | null) => void} parts.request requests the rows again, with this row pinned
   */
  constructor({branches, draft, refusal, banned, pinned, request}) {
    this.branches = branches;
    this.draft = draft;
    this.refusal = refusal;
    this.banned = banned;
    this.pinned = pinned;
    this.request = request;
    branches.dataset.editable = '';
    branches.addEventListener('edit', event => this.#take(/** @type {CustomEvent<RowEditDetail>} */ (event)));
    onDetail(draft, 'side', ({verb, step}) => { if (step?.edit) this.#apply(step, verb); });
  }

  /** The changes that a request for the present text has. */
  get list() { return editsAt(this.#edits, this.draft.revision); }

  /** Forget all changes: the server has refused one of them. */
  forget() { this.#edits = NO_EDITS; }

  /**
   * Make a change a step beside the text, unless it is refused.
   * @param {CustomEvent<RowEditDetail>} event
   */
  #take(event) {
    const {detail} = event, {draft} = this;
    detail.because = this.refusal() || (withEdit(this.#edits, detail) ? undefined : MANY_EDITS);
    if (detail.revision !== draft.revision || detail.because) event.preventDefault();
    else draft.addSideStep({edit: detail.edit, pinned: detail.pinned ? this.pinned() : null});
  }

  /**
   * Make a change, or undo it, and request the rows again.
   * @param {RowEditStep} step
   * @param {'take' | 'undo' | 'redo'} verb
   */
  #apply({edit, pinned}, verb) {
    const {revision} = this.draft, undoes = verb === 'undo';
    this.#edits = undoes ? withoutEdit(this.#edits, edit) : withEdit(this.#edits, {revision, edit}) ?? this.#edits;
    if (undoes) dispatch(this.branches, 'confirm', {kind: 'unchanged', text: edit.text});
    if (verb !== 'take') dispatch(this.branches, 'follow', {edit: undoes ? null : edit});
    this.request(pinned ? undoes ? pinned : null : this.pinned());
  }

  /**
   * The text or the prompt has changed. Changed rows stay while the text does, as after a ban. A change that is gone cannot be
   * undone, nor one that was undone be made in other rows.
   * @param {string} kind of the draft's change
   */
  draftChanged(kind) {
    const before = this.#edits.list, keeps = PROMPT_KINDS.includes(kind);
    this.#edits = keeps ? editsKept(this.#edits, this.draft.revision, this.banned()) : NO_EDITS;
    if (!keeps && before.length) dispatch(this.branches, 'follow', {});
    this.draft.dropSideSteps(({edit}) => edit && (keeps ? before.includes(edit) && !this.#edits.list.includes(edit) : true));
  }
}
