// The headers by which the shared GPUs of a Space know a visitor. The site around the page's frame gives them, as it gives
// them to Gradio's own requests; the server passes them on.
const SITE = 'https://huggingface.co';
const SPACES = '.hf.space';
const PATIENCE = 1000;      // milliseconds to wait for the site's answer

/**
 * @typedef {object} FramedWindow a window, or what stands for one in a test
 * @property {{postMessage: (message: string, origin: string, ports: MessagePort[]) => void}} [parent]
 * @property {{hostname: string}} [location]
 * @property {boolean} [supports_zerogpu_headers] set by Gradio when the site has said that it gives these headers
 */

/**
 * A promise of the headers, or of null if the site does not answer; null outside of a Space's frame.
 * @param {FramedWindow} [page]
 * @returns {Promise<Record<string, string> | null> | null}
 */
export function visitorHeaders(page = /** @type {FramedWindow} */ (/** @type {unknown} */ (globalThis))) {
  const {parent, location} = page;
  if (!parent || parent === /** @type {unknown} */ (page) || !page.supports_zerogpu_headers) return null;
  if (!location?.hostname.endsWith(SPACES)) return null;
  return new Promise(resolve => {
    const {port1, port2} = new MessageChannel();
    /** @param {Record<string, string> | null} headers */
    const end = headers => {
      clearTimeout(timer);
      port1.close();
      resolve(headers);
    };
    const timer = setTimeout(() => end(null), PATIENCE);
    port1.onmessage = ({data}) => end(data && typeof data === 'object' ? data : null);
    parent.postMessage('zerogpu-headers', SITE, [port2]);
  });
}
