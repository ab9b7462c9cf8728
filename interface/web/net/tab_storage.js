// What stands in a tab of the page, kept by this tab of the browser: it is there again after a reload, and no longer; so a
// page that is left says so first.
//
// Event on the document: `forgotten`, when a person wants nothing kept any more.
const FORM = 1;            // of what is kept: that of another version of this page is not believed
const MOST = 1_000_000;    // characters: what the writer leaves here must find room too
const KEPT = 'lookahead:kept:';

// What cannot be kept, or read again, is forgotten.
export const orNull = work => {
  try {
    return work();
  } catch {
    return null;
  }
};
const withoutHistory = (name, value) => (name === 'history' || name === 'left' ? undefined : value);
const brief = state => JSON.stringify(state, withoutHistory);

// Of tabs that were not opened since as well.
export function forgetKept() {
  orNull(() => Object.keys(sessionStorage).filter(key => key.startsWith(KEPT)).forEach(key => sessionStorage.removeItem(key)));
  document.dispatchEvent(new CustomEvent('forgotten'));
}

// `take` gives what stands there; `give` puts it back, unless something stands there already, which `holds` tells. With
// `revive`, objects are made of what was kept as JSON makes them.
export function keepAcrossReloads(name, {take, give, holds, revive}) {
  const key = `${KEPT}${FORM}:${name}`;
  let unwanted = null;
  const keep = () => orNull(() => {
    sessionStorage.removeItem(key);
    const state = take();
    if (brief(state) === unwanted) return;
    const text = [JSON.stringify(state), brief(state)].find(({length}) => length <= MOST);
    if (text) sessionStorage.setItem(key, text);
  });
  const kept = orNull(() => JSON.parse(sessionStorage.getItem(key), revive));
  orNull(() => sessionStorage.removeItem(key));
  if (kept && !holds()) orNull(() => give(kept));
  addEventListener('beforeunload', event => { if (holds()) event.preventDefault(); });
  addEventListener('pagehide', keep);
  document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'hidden') keep(); });
  document.addEventListener('forgotten', () => { unwanted = orNull(() => brief(take())); });
}
