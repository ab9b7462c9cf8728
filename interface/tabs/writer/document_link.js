// A document as a link: text, settings, seed, instruction and model in the part of the address that no server sees.
import {isPlainObject, settingsFrom} from './document_record.js';

const MARK = '#t=';
const VERSION = 1;
const MOST_INFLATED = 1024 * 1024;   // bytes
const MOST_CARRIED = 512 * 1024;     // characters that are looked at
export const MOST_LINK = 8192;       // characters of a link that mail and chat programs leave whole

const BROKEN = 'This link is broken: part of it is missing or changed. Nothing was opened; ask for it once more.';
const HUGE = 'This link holds more than a text of 1 MB, so it was not opened. Ask for a file instead.';
const STRANGE = 'This link holds no text that Lookahead can read. Nothing was opened.';
const NEWER = 'This link was made by a newer Lookahead than this one, so it was not opened. Ask for a file instead.';
const NO_LINKS = 'This browser cannot pack a text into a link. Export a file instead.';

export const isLink = fragment => fragment.startsWith(MARK);

const stream = bytes => new Blob([bytes]).stream();

// Read at most so many bytes: a small link can unpack to more than the machine holds.
async function bytesOf(readable, most) {
  const reader = readable.getReader(), chunks = [];
  for (let size = 0; ;) {
    const {done, value} = await reader.read();
    if (done) return new Blob(chunks).arrayBuffer();
    chunks.push(value);
    size += value.byteLength;
    if (size > most) {
      reader.cancel().catch(() => {});
      throw new Error(HUGE);
    }
  }
}

function toBase64(buffer) {
  const bytes = new Uint8Array(buffer), parts = [];
  for (let start = 0; start < bytes.length; start += 8192) parts.push(String.fromCharCode(...bytes.subarray(start, start + 8192)));
  return btoa(parts.join('')).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function fromBase64(text) {
  if (!/^[\w-]+$/.test(text)) throw new Error(BROKEN);
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), character => character.charCodeAt(0));
  } catch {
    throw new Error(BROKEN);
  }
}

// The fragment, with its number sign.
export async function encodeLink({text, settings = null, seed = null, instruction = null, model = null}) {
  if (!('CompressionStream' in globalThis)) throw new Error(NO_LINKS);
  const packed = JSON.stringify({version: VERSION, text, settings, seed, instruction, model});
  const bytes = new TextEncoder().encode(packed);
  return MARK + toBase64(await bytesOf(stream(bytes).pipeThrough(new CompressionStream('deflate-raw')), Infinity));
}

// The document of a fragment, or an Error whose message is a sentence for the person who opened it.
export async function decodeLink(fragment) {
  if (!isLink(fragment)) throw new Error(STRANGE);
  if (fragment.length > MOST_CARRIED) throw new Error(HUGE);
  const packed = fromBase64(fragment.slice(MARK.length));
  if (!('DecompressionStream' in globalThis)) throw new Error(NO_LINKS);
  const bytes = await bytesOf(stream(packed).pipeThrough(new DecompressionStream('deflate-raw')), MOST_INFLATED)
    .catch(error => { throw error.message === HUGE ? error : new Error(BROKEN); });
  return read(bytes);
}

function read(bytes) {
  let value;
  try {
    value = JSON.parse(new TextDecoder('utf-8', {fatal: true}).decode(bytes));
  } catch {
    throw new Error(BROKEN);
  }
  if (!isPlainObject(value) || typeof value.text !== 'string') throw new Error(STRANGE);
  if (Number.isFinite(value.version) && value.version > VERSION) throw new Error(NEWER);
  const orNull = field => (typeof value[field] === 'string' && value[field] ? value[field] : null);
  return {
    text: value.text,
    settings: settingsFrom(value.settings),
    seed: Number.isSafeInteger(value.seed) ? value.seed : null,
    instruction: orNull('instruction'),
    model: orNull('model')?.slice(0, 200) ?? null,
  };
}

const isLoopback = host => /^(localhost|.*\.localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\])$/.test(host);
const isNear = host => /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.)|\.local$|^\[f[cd]|^\[fe80/.test(host);

const ALONE = 'Only this computer can open this link, because Lookahead runs on it and for nobody else. For a classmate: '
  + 'start it with “python app.py --share”, set a public address, or send a file.';
const NEAR = 'Only computers in the same network can open this link.';

// An address without its query, which is the visitor's own, and its fragment.
const bare = address => address.split(/[?#]/)[0];

// Where others find this page, and a sentence where they do not.
export function publicAddress(location, configured = null) {
  if (configured) return {address: bare(configured), sentence: ''};
  const address = bare(location.href);
  if (isLoopback(location.hostname)) return {address, sentence: ALONE};
  return {address, sentence: isNear(location.hostname) ? NEAR : ''};
}
