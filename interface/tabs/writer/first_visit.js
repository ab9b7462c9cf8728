// The example of a first visit: stored branches of a text that is not the person's, until something is written.
/** @import {ShowDetail, View} from '../../web/core/types.d.ts' */
const BEGIN = 'Click any word to begin with it, or write something of your own.';
const PLACEHOLDER = 'Once upon a time …';

/** @typedef {{text: string, model: string, view: View}} StoredExample */

export class FirstVisitExample {
  /**
   * @param {HTMLTextAreaElement} box
   * @param {StoredExample | null} stored null where there is no example
   * @param {(detail: ShowDetail) => void} show draws it in the branch view
   */
  constructor(box, stored, show) {
    this.box = box;
    this.stored = stored;
    this.showBranches = show;
  }

  /** The text of the example; empty once it has ended. */
  get text() { return this.stored?.text ?? ''; }

  /** @param {number} revision */
  show(revision) {
    if (!this.stored) return;
    const {text, model, view} = this.stored;
    this.box.placeholder = `${text} …`;
    this.showBranches({revision, state: 'empty', view, stored: true, note: `After “${text}”, as ${model} saw it. ${BEGIN}`});
  }

  end() {
    if (!this.stored) return;
    this.stored = null;
    this.box.placeholder = PLACEHOLDER;
  }
}
