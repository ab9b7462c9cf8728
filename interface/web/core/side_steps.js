// Steps beside those of the text, such as bans and changes of rows. They are undone and redone in the order in which they were made among the steps
// of the text. Each is kept with the number of the text's step before it.
/** @import {SideStep, SideStepsState} from './types.d.ts' */

/** All such steps of a document. */
export class SideSteps {
  /** @type {SideStep[]} */
  #done = [];
  /** @type {SideStep[]} */
  #undone = [];

  /** @param {number} at the number of the text's step before it @param {unknown} step */
  add(at, step) {
    this.#done.push({at, step});
    this.#undone = [];
  }

  /**
   * Undo the last step that was made at this point of the text. Returns it, or null if there is none.
   * @param {number} at
   */
  undo(at) { return move(this.#done, this.#undone, at); }

  /**
   * Redo the step that was undone last at this point of the text. Returns it, or null if there is none.
   * @param {number} at
   */
  redo(at) { return move(this.#undone, this.#done, at); }

  /** @param {number} at */
  canUndo(at) { return this.#done.some(one => one.at === at); }

  /** @param {number} at */
  canRedo(at) { return this.#undone.some(one => one.at === at); }

  /** The text has a new step: what was undone cannot be redone after it. */
  forgetUndone() { this.#undone = []; }

  /** The steps that were made at a point of the text. @param {number} at */
  at(at) { return this.#done.filter(one => one.at === at).map(({step}) => step); }

  /** The steps as they are stored. @returns {SideStepsState} */
  state() { return {done: [...this.#done], undone: [...this.#undone]}; }

  /** Replace all steps, as another document is open. @param {Partial<SideStepsState>} [state] */
  load({done = [], undone = []} = {}) { [this.#done, this.#undone] = [[...done], [...undone]]; }
}

/** @type {(from: SideStep[], to: SideStep[], at: number) => any} */
function move(from, to, at) {
  const index = from.findLastIndex(one => one.at === at);
  if (index < 0) return null;
  const [found] = from.splice(index, 1);
  to.push(found);
  return found.step;
}
