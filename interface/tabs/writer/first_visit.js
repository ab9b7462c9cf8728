// The example of a first visit: stored branches of a text that is not the person's, until something is written.
/** @import {ShowDetail, View} from '../../web/core/types.d.ts' */
const BEGIN = 'Choose a token to begin.';
const PLACEHOLDER = 'Once upon a time …';

/** @typedef {{text: string, model: string, view: View}} StoredExample */

export class FirstVisitExample {
  /**
   * @param {{box: HTMLTextAreaElement, hint: HTMLElement}} elements the text box, and the sentence beside settings that have no
   *   effect on the example
   * @param {StoredExample | null} stored null where there is no example
   * @param {(detail: ShowDetail) => void} show draws it in the branch view
   */
  constructor({box, hint}, stored, show) {
    this.box = box;
    this.hint = hint;
    this.stored = stored;
    this.showBranches = show;
  }

  /** The text of the example; empty once it has ended. */
  get text() { return this.stored?.text ?? ''; }

  /** The name of the model of its branches; null once it has ended. */
  get model() { return this.stored?.model ?? null; }

  /** @param {number} revision */
  show(revision) {
    if (!this.stored) return;
    const {text, model, view} = this.stored;
    this.box.placeholder = `${text} …`;
    this.hint.hidden = false;
    this.showBranches({revision, state: 'empty', view, stored: true, note: `Recorded: how ${model} continues the grey text. ${BEGIN}`});
  }

  end() {
    if (!this.stored) return;
    this.stored = null;
    this.hint.hidden = true;
    this.box.placeholder = PLACEHOLDER;
  }
}
