// The views a page has: the one of the present text, those one click ahead, and those of texts shown lately.
/** @import {RowSettings, View} from './types.d.ts' */
import {coversSettings} from './branch_rows.js';

const MOST_RECENT = 40;   // views that are kept, for undo and for the change between rows and tree
const ODDS = ['words', 'tokens'];

/**
 * The key of a path: its token ids.
 * @param {number[]} ids
 */
export const idsKey = ids => ids.join(' ');

/** The view of the present text, prefetched views, and complete views of recent texts. */
export class KnownViews {
  /** @type {Map<string, View>} the keys are what the odds are of, and the text */
  #recent = new Map();
  revision = -1;
  /** @type {View | null} */
  view = null;
  complete = false;
  /** @type {Map<string, View>} */
  ahead = new Map();
  tokens = 0;   // tokens that were prefetched

  /** Forget every view: the prompt has changed. */
  forget() {
    this.#recent.clear();
    this.#begin(-1, null, false);
  }

  /**
   * Take the view of a revision of the text.
   * @param {number} revision
   * @param {string} text
   * @param {View | null} view
   * @param {boolean} complete whether it has stopped growing
   */
  take(revision, text, view, complete) {
    // Prefetched views of an older view do not follow this one.
    if (revision !== this.revision || complete) this.#begin(revision, view, complete);
    else [this.view, this.complete] = [view, complete];
    if (complete) this.#remember(text, view);
  }

  /**
   * Keep a view that was prefetched.
   * @param {string} key of the accepted tokens
   * @param {View} view
   */
  add(key, view) { this.ahead.set(key, view); }

  /**
   * The view after accepting tokens of the present one, or null. Its rows may be shorter than asked for.
   * @param {number[]} ids
   * @param {RowSettings} settings
   */
  after(ids, settings) { return viewToBeginWith(this.ahead.get(idsKey(ids)), settings); }

  /**
   * The keys of the tokens after which a view is known.
   * @param {RowSettings} settings
   */
  ready(settings) { return [...this.ahead].filter(([, view]) => viewToBeginWith(view, settings)).map(([key]) => key); }

  /**
   * The complete view of a text that was shown lately, or null.
   * @param {string} text
   * @param {RowSettings} settings
   */
  at(text, settings) {
    return ODDS.map(odds => this.#recent.get(`${odds} ${text}`)).find(view => view && isComplete(view, settings)) ?? null;
  }

  /** @param {number} revision @param {View | null} view @param {boolean} complete */
  #begin(revision, view, complete) { Object.assign(this, {revision, view, complete, ahead: new Map(), tokens: 0}); }

  /** @param {string} text @param {View | null} view */
  #remember(text, view) {
    const key = `${view?.asked.odds ?? 'tokens'} ${text}`;
    this.#recent.delete(key);
    // A view with changed rows belongs to one visit of the text.
    if (view && !view.branches.some(branch => branch.edited)) this.#recent.set(key, view);
    const [oldest] = this.#recent.keys();
    if (this.#recent.size > MOST_RECENT) this.#recent.delete(oldest);
  }
}

/**
 * Whether a view holds everything that the settings ask for.
 * @param {View} view
 * @param {RowSettings} settings
 */
export const isComplete = (view, settings) =>
  coversSettings(view, settings) && (view.asked.until === 'tokens' || view.asked.depth >= (settings.depth ?? 0));

/**
 * Whether a growing view shows something that another one does not.
 * @param {View} view
 * @param {View} other
 */
export const showsMore = (view, other) => view.asked.mode !== other.asked.mode
  || view.branches.length > other.branches.length || leastDepth(view) > leastDepth(other);

/** @param {View} view */
const leastDepth = ({branches}) => Math.min(...branches.filter(({ended, repeats}) => !ended && !repeats).map(({ids}) => ids.length));

/**
 * The view itself, if its rows may be shown first, though they may be shorter than asked for; else null.
 * @type {(view: View | undefined, settings: RowSettings) => View | null}
 */
export const viewToBeginWith = (view, settings) =>
  (view && coversSettings(view, {...settings, depth: Math.min(settings.depth ?? Infinity, view.asked.depth)}) ? view : null);
