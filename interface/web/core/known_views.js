// Views that the page has: the one of the text as it stands, those a click away, and those of texts shown lately.
import {coversSettings} from './branch_rows.js';

const MOST_RECENT = 40;

export const idsKey = ids => ids.join(' ');

export class KnownViews {
  #recent = new Map();

  constructor() { this.forget(); }

  // The text, or what the model is told of it, is another: nothing that was known is of use.
  forget() {
    this.#recent.clear();
    this.#stand(-1, null, false);
  }

  // The view of a revision of the text; complete, or still growing.
  take(revision, text, view, complete) {
    // What was read ahead of another view is of no use beside this one.
    if (revision !== this.revision || complete) this.#stand(revision, view, complete);
    else [this.view, this.complete] = [view, complete];
    if (complete) this.#remember(text, view);
  }

  // A view read ahead: what there is after accepting these tokens.
  add(key, view) { this.ahead.set(key, view); }

  // The view after accepting tokens of the one that is shown; its rows may be shorter than they are to be.
  after(ids, settings) { return begun(this.ahead.get(idsKey(ids)), settings); }

  // Of which tokens that is there.
  ready(settings) { return [...this.ahead].filter(([, view]) => begun(view, settings)).map(([key]) => key); }

  // The view of a text that stood here before, as after an undo.
  at(text, settings) { return enough(this.#recent.get(text), settings); }

  #stand(revision, view, complete) { Object.assign(this, {revision, view, complete, ahead: new Map(), tokens: 0}); }

  #remember(text, view) {
    this.#recent.delete(text);
    this.#recent.set(text, view);
    if (this.#recent.size > MOST_RECENT) this.#recent.delete(this.#recent.keys().next().value);
  }
}

// Whether a view is all that was asked for.
export const isComplete = (view, settings) =>
  coversSettings(view, settings) && (view.asked.until === 'tokens' || view.asked.depth >= settings.depth);

// Whether a view that still grows shows something that another one does not.
export const showsMore = (view, had) => view.asked.mode !== had.asked.mode || view.branches.length > had.branches.length
  || depthOf(view) > depthOf(had);

// How deep all rows of a view are at least.
const depthOf = ({branches}) => Math.min(...branches.filter(({ended}) => !ended).map(({ids}) => ids.length));

const begun = (view, settings) =>
  (view && coversSettings(view, {...settings, depth: Math.min(settings.depth, view.asked.depth)}) ? view : null);

const enough = (view, settings) => (view && isComplete(view, settings) ? view : null);
