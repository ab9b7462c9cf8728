// What stands in a tab of the page, kept by this tab of the browser: it is there again after a reload, and nowhere else.

// What cannot be kept, or read again, is forgotten.
const attempt = work => {
  try {
    return work();
  } catch {
    return null;
  }
};
const withoutHistory = (name, value) => (name === 'history' || name === 'left' ? undefined : value);

// `take` gives what stands there; `give` puts it back. With `revive`, objects are made of what was kept as JSON makes them.
export function keepOverReloads(name, {take, give, revive}) {
  const key = `lookahead:${name}`;
  const put = text => attempt(() => { sessionStorage.setItem(key, text); return true; });
  const keep = () => {
    const state = take();
    put(JSON.stringify(state)) || put(JSON.stringify(state, withoutHistory));
  };
  attempt(() => {
    const kept = JSON.parse(sessionStorage.getItem(key), revive);
    if (kept) give(kept);
  });
  addEventListener('pagehide', keep);
  document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'hidden') keep(); });
}
