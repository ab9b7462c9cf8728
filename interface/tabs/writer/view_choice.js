// The choice of how branches are shown: as rows, or in another way. Each way is a radio button in the controls.
/** @import {StoredSettings} from '../../web/core/types.d.ts' */
import {dispatch} from '../../web/ui/events.js';
import {resetTabStop} from '../../branch_view/row_keys.js';

// Milliseconds between the clicks of a double click, as systems have it. Quick clicks on tokens may be meant: they have a shorter limit.
const DOUBLE_CLICK = 500;

/**
 * The chosen view. It stands as `data-view` on the branches, whose style hides the rows for every value but `rows`.
 * Events: `change`, when a person or `set` chooses another one; then `choose`, if it was a person.
 */
export class ViewChoice extends EventTarget {
  /**
   * @param {HTMLElement} element holds radio buttons, one for each view; it is hidden while there is only one
   * @param {HTMLElement} branches
   */
  constructor(element, branches) {
    super();
    this.branches = branches;
    /** @type {HTMLInputElement[]} */
    this.buttons = [...element.querySelectorAll('input')];
    element.hidden = this.buttons.length < 2;
    // The controls take every input for a change of the branches, and would request them again.
    element.addEventListener('input', event => {
      event.stopPropagation();
      // The controls may move: the second click of a double click would meet another one.
      const controls = element.parentElement;
      controls?.classList.add('rearranged');
      setTimeout(() => controls?.classList.remove('rearranged'), DOUBLE_CLICK);
      this.#changed();
      dispatch(this, 'choose');
    });
    this.#paint();
  }

  /** The name of the chosen view. */
  get view() { return this.buttons.find(({checked}) => checked)?.value ?? 'rows'; }

  /** @returns {StoredSettings} */
  get settings() { return {view: this.view}; }

  /**
   * Take the view of a document, a file or a link. A view that is not possible here changes nothing.
   * @param {StoredSettings} settings unchecked
   */
  set({view}) {
    const button = this.buttons.find(({value}) => value === view);
    if (!button || button.checked) return;
    button.checked = true;
    this.#changed();
  }

  #changed() {
    this.#paint();
    dispatch(this, 'change');
  }

  #paint() {
    this.branches.dataset.view = this.view;
    resetTabStop(this.branches);
  }
}
