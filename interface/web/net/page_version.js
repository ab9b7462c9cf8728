// Why the page has to be loaded again: the server serves another version of it, or no longer knows the sign-in.
const OTHER_VERSION = 'This script belongs to another version of the page.';   // the beginning of the server's answer
const SIGN_IN = new URL('../../../../gradio_api/login_check', import.meta.url).href;   // answers 401 to who is not signed in
const PATIENCE = 10000;   // milliseconds

/**
 * Whether the server has other scripts than this page, by its answer to a request for this script. False if it does not
 * answer: its proxy may answer in its place.
 * @param {(address: string, options: RequestInit) => Promise<Pick<Response, 'status' | 'text'>>} [load]
 */
export async function isOutdated(load = fetch) {
  try {
    const answer = await load(import.meta.url, {cache: 'no-store', signal: AbortSignal.timeout(PATIENCE)});
    return answer.status === 404 && (await answer.text()).startsWith(OTHER_VERSION);
  } catch {
    return false;
  }
}

/**
 * Whether the server answers only to people who have signed in, and does not know this browser's sign-in (any more). False
 * if it does not answer.
 * @param {(address: string, options: RequestInit) => Promise<Pick<Response, 'status'>>} [load]
 */
export async function isSignedOut(load = fetch) {
  try {
    return (await load(SIGN_IN, {cache: 'no-store', signal: AbortSignal.timeout(PATIENCE)})).status === 401;
  } catch {
    return false;
  }
}

/** Have the page's header say that the page has to be loaded again. */
export const sayOutdated = () => document.dispatchEvent(new CustomEvent('lookahead:outdated'));
