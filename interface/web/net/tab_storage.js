// The content of a tab of the page, stored by the browser's tab: it survives a reload, and no longer than the tab. A page asks
// before it is left where that would lose a text that is written there, or where the content cannot be stored.
//
// Event on the document: `forgotten`, when a person wants everything deleted.
const FORMAT = 1;           // version of the stored form: other versions are not read
const MOST = 1_000_000;     // characters, so that the Write tab's storage finds room too
const PREFIX = 'lookahead:kept:';

/**
 * The result of a function, or null if it throws.
 * @template T
 * @param {() => T} work
 * @returns {T | null}
 */
export const orNull = work => {
  try {
    return work();
  } catch {
    return null;
  }
};

/** @type {(name: string, value: unknown) => unknown} */
const withoutHistory = (name, value) => (name === 'history' || name === 'left' ? undefined : value);
/** @param {unknown} state */
const withoutHistoryAsJson = state => JSON.stringify(state, withoutHistory);

/** Delete what every tab of the page has stored, also those that were not opened since. */
export function forgetKept() {
  orNull(() => Object.keys(sessionStorage).filter(key => key.startsWith(PREFIX)).forEach(key => sessionStorage.removeItem(key)));
  document.dispatchEvent(new CustomEvent('forgotten'));
}

/**
 * Store a tab's content when the page is left, and restore it now. A content that is too long is stored without its
 * history.
 * @param {string} name of the tab
 * @param {object} content
 * @param {() => unknown} content.take returns the content
 * @param {(content: any) => void} content.give restores the content, unless there is some already
 * @param {() => unknown} content.holds whether there is content
 * @param {() => unknown} [content.inProgress] whether it has a text that was written here, and would be lost with the tab
 * @param {(name: string, value: any) => any} [content.revive] the reviver of `JSON.parse`
 * @param {HTMLTextAreaElement[]} [content.boxes] empty text boxes, unless a person has typed before the tab's script has started: that is
 *   put after the text that is restored
 */
export function keepAcrossReloads(name, {take, give, holds, inProgress = () => false, revive, boxes = []}) {
  const key = `${PREFIX}${FORMAT}:${name}`;
  /** @type {string | null} */
  let forgotten = null;   // content that is not to be stored again
  /** Returns whether the content is stored, or is not to be. */
  const store = () => Boolean(orNull(() => {
    sessionStorage.removeItem(key);
    const state = take();
    if (withoutHistoryAsJson(state) === forgotten) return true;
    const text = [JSON.stringify(state), withoutHistoryAsJson(state)].find(({length}) => length <= MOST);
    if (text) sessionStorage.setItem(key, text);
    return text;
  }));
  const stored = orNull(() => JSON.parse(sessionStorage.getItem(key) ?? 'null', revive));
  orNull(() => sessionStorage.removeItem(key));
  const typed = boxes.filter(({value}) => value).map(box => ({box, text: box.value}));
  if (stored && (typed.length || !holds())) {
    for (const {box} of typed) box.value = '';
    orNull(() => give(stored));
    for (const {box, text} of typed) box.value += text;
  }
  for (const {box} of typed) box.dispatchEvent(new Event('input', {bubbles: true}));
  addEventListener('beforeunload', event => { if (inProgress() || (holds() && !store())) event.preventDefault(); });
  addEventListener('pagehide', store);
  document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'hidden') store(); });
  document.addEventListener('forgotten', () => { forgotten = orNull(() => withoutHistoryAsJson(take())); });
}
