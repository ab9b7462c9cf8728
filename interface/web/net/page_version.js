// Whether the server serves another version of this page: then the page has to be loaded again.
const OTHER_VERSION = 'This script belongs to another version of the page.';   // the beginning of the server's answer
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

/** Have the page's header say that the page has to be loaded again. */
export const sayOutdated = () => document.dispatchEvent(new CustomEvent('lookahead:outdated'));
