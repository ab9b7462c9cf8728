// The address under which others reach this page.
/** @param {string} host */
const isLoopback = host => /^(localhost|.*\.localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\])$/.test(host);
/** @param {string} host */
const isPrivateNetwork = host => /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.)|\.local$|^\[f[cd]|^\[fe80/.test(host);

const ONLY_HERE = 'Only this computer can open this link.';
const ONLY_NEARBY = 'Only computers in the same network can open this link.';

/**
 * An address without its query, which is the visitor's own, and its fragment.
 * @param {string} address
 */
const withoutQuery = address => address.split(/[?#]/)[0];

/**
 * The address under which others reach this page, a sentence if they cannot, and whether only this computer can.
 * @param {Pick<Location, 'href' | 'hostname'>} location
 * @param {string | null} [configured] address
 */
export function publicAddress(location, configured = null) {
  if (configured) return {address: withoutQuery(configured), sentence: '', local: false};
  const address = withoutQuery(location.href);
  if (isLoopback(location.hostname)) return {address, sentence: ONLY_HERE, local: true};
  return {address, sentence: isPrivateNetwork(location.hostname) ? ONLY_NEARBY : '', local: false};
}
