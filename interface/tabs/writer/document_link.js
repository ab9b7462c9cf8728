// A document as a link: text, name, settings, seed, instruction, model, what was chosen, changes of rows, and for a replay its
// history, in the fragment, which no server receives.
/** @import {DocumentLink} from '../../web/core/types.d.ts' */
import {isPlainObject} from '../../web/core/json_values.js';
import {settingsFrom} from './document_record.js';

const MARK = '#t=';
const VERSION = 1;
const MOST_INFLATED = 1024 * 1024;   // bytes
const MOST_PACKED = 512 * 1024;      // characters of a link that is opened
const MOST_LABEL = 200;              // characters of a name
export const MOST_LINK = 8192;       // characters of a link that mail and chat programs keep whole

const BROKEN = 'This link is broken: part of it is missing or changed. Nothing was opened; ask for it once more.';
const TOO_LARGE = 'This link holds more than a text of 1 MB, so it was not opened. Ask for a file instead.';
const NO_TEXT = 'This link holds no text that Lookahead can read. Nothing was opened.';
const NEWER = 'This link was made by a newer Lookahead than this one, so it was not opened. Ask for a file instead.';
const UNSUPPORTED = 'This browser cannot pack a text into a link. Export a file instead.';

/**
 * Whether a fragment of an address holds a document.
 * @param {string} fragment
 */
export const isLink = fragment => fragment.startsWith(MARK);

/** @param {Uint8Array<ArrayBuffer>} bytes */
const streamOf = bytes => new Blob([bytes]).stream();

/**
 * All bytes of a stream. Throws if there are too many: a small link can unpack to more than the memory holds.
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} readable
 * @param {number} most
 */
async function bytesOf(readable, most) {
  const reader = readable.getReader();
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const chunks = [];
  for (let size = 0; ;) {
    const {done, value} = await reader.read();
    if (done) return new Blob(chunks).arrayBuffer();
    chunks.push(value);
    size += value.byteLength;
    if (size > most) {
      reader.cancel().catch(() => {});
      throw new Error(TOO_LARGE);
    }
  }
}

/** @param {ArrayBuffer} buffer */
function toBase64(buffer) {
  const bytes = new Uint8Array(buffer), parts = [];
  for (let start = 0; start < bytes.length; start += 8192) parts.push(String.fromCharCode(...bytes.subarray(start, start + 8192)));
  return btoa(parts.join('')).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @param {string} text */
function fromBase64(text) {
  if (!/^[\w-]+$/.test(text)) throw new Error(BROKEN);
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), character => character.charCodeAt(0));
  } catch {
    throw new Error(BROKEN);
  }
}

/**
 * The fragment of a document, with its number sign.
 * @param {{text: string} & Partial<DocumentLink>} link
 */
export async function encodeLink({text, name, settings = null, seed = null, instruction = null, model = null, spans, accepted, edits, history, play}) {
  if (!('CompressionStream' in globalThis)) throw new Error(UNSUPPORTED);
  const packed = JSON.stringify({version: VERSION, text, name: name || undefined, settings, seed, instruction, model, spans, accepted, edits, history, play});
  const bytes = new TextEncoder().encode(packed);
  return MARK + toBase64(await bytesOf(streamOf(bytes).pipeThrough(new CompressionStream('deflate-raw')), Infinity));
}

/**
 * The document of a fragment. Throws an Error whose message is a sentence for the person who opened it.
 * @param {string} fragment
 * @returns {Promise<DocumentLink>}
 */
export async function decodeLink(fragment) {
  if (!isLink(fragment)) throw new Error(NO_TEXT);
  if (fragment.length > MOST_PACKED) throw new Error(TOO_LARGE);
  const packed = fromBase64(fragment.slice(MARK.length));
  if (!('DecompressionStream' in globalThis)) throw new Error(UNSUPPORTED);
  const bytes = await bytesOf(streamOf(packed).pipeThrough(new DecompressionStream('deflate-raw')), MOST_INFLATED)
    .catch(error => { throw error.message === TOO_LARGE ? error : new Error(BROKEN); });
  return linkOf(bytes);
}

/**
 * @param {ArrayBuffer} bytes
 * @returns {DocumentLink}
 */
function linkOf(bytes) {
  let value;
  try {
    value = JSON.parse(new TextDecoder('utf-8', {fatal: true}).decode(bytes));
  } catch {
    throw new Error(BROKEN);
  }
  if (!isPlainObject(value) || typeof value.text !== 'string') throw new Error(NO_TEXT);
  if (Number.isFinite(value.version) && value.version > VERSION) throw new Error(NEWER);
  const {spans, accepted, edits, history} = value;
  /** @type {(field: unknown) => string | null} */
  const stringOrNull = field => (typeof field === 'string' && field ? field : null);
  return {
    text: value.text,
    settings: settingsFrom(value.settings),
    seed: Number.isSafeInteger(value.seed) ? value.seed : null,
    instruction: stringOrNull(value.instruction),
    model: stringOrNull(value.model)?.slice(0, MOST_LABEL) ?? null,
    ...(stringOrNull(value.name) && {name: value.name.slice(0, MOST_LABEL)}),
    ...(spans && {spans}),
    ...(accepted && {accepted}),
    ...(edits && {edits}),
    ...(history && {history}),
    ...(value.play === true && {play: true}),
  };
}
