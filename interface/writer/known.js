// Views that the page has: the one of the text as it stands, those a click away, and those of texts shown lately.
import {covers} from '../branch_view/shape.js';

const MOST_RECENT = 40;

export const keyOf = ids => ids.join(' ');

export class Known {
  #recent = new Map();

  constructor() { this.forget(); }

  // The text, or what the model is told of it, is another: nothing that was known is of use.
  forget() {
    this.#recent.clear();
    this.#stand(-1, null, false);
  }

  // The view of a revision of the text; complete, or still growing.
  take(revision, text, view, complete) {
    if (revision !== this.revision) this.#stand(revision, view, complete);
    else [this.view, this.complete] = [view, complete];
    if (complete) this.#remember(text, view);
  }

  // A view read ahead: what there is after accepting these tokens.
  add(key, view) { this.ahead.set(key, view); }

  // The view after accepting tokens of the one that is shown.
  after(ids, settings) { return enough(this.ahead.get(keyOf(ids)), settings); }

  // The view of a text that stood here before, as after an undo.
  at(text, settings) { return enough(this.#recent.get(text), settings); }

  #stand(revision, view, complete) { Object.assign(this, {revision, view, complete, ahead: new Map(), tokens: 0}); }

  #remember(text, view) {
    this.#recent.delete(text);
    this.#recent.set(text, view);
    if (this.#recent.size > MOST_RECENT) this.#recent.delete(this.#recent.keys().next().value);
  }
}

const enough = (view, settings) => (view && covers(view, settings) ? view : null);
