// A document as a file: JSON with everything, or plain text. Files that are opened are checked field by field; JSON of who
// wrote what opens too.
/** @import {DocumentFields, View} from '../../web/core/types.d.ts' */
import {AUTHORSHIP_FORMAT, AUTHORSHIP_VERSION, authorshipFields} from './authorship_export.js';
import {documentFrom} from './document_record.js';
import {isPlainObject} from '../../web/core/json_values.js';
import {historyToReplay} from '../../web/core/replay.js';

const FORMAT = 'lookahead';
const VERSION = 1;
const MOST_BYTES = 5 * 1024 * 1024;
const MOST_NAME = 60;

// Characters that file systems refuse, those that turn the writing direction, which can disguise a name, and the sign of a
// title that is cut.
const REFUSED = /[…\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}/\\:*?"<>|]/gu;

/**
 * A file name for a document.
 * @param {string} name of the document
 * @param {string} ending
 */
export function fileName(name, ending) {
  const clean = name.replace(/\.*…/g, ' ').replace(REFUSED, ' ').replace(/\s+/g, ' ').trim().replace(/^\.+/, ''), signs = [...clean];
  const short = signs.slice(0, MOST_NAME).join('');
  const whole = signs.length > MOST_NAME && signs[MOST_NAME] !== ' ' ? short.replace(/(?<=\S) \S*$/, '') : short;
  // A dot follows: those of a sentence's end are left out.
  return `${whole.replace(/[.\s]+$/, '') || FORMAT}.${ending}`;
}

/**
 * Everything of a document as the text of a JSON file.
 * @param {DocumentFields} document
 * @param {{view?: View | null, tree?: unknown}} [server] the branches shown, and the tree on the server
 */
export function exportDocument(document, {view = null, tree = null} = {}) {
  const {name, text, caret, history, left, side, spans, accepted, settings, model, instruction, instructed} = document;
  const seed = settings?.seed ?? null, from = {format: FORMAT, version: VERSION, exported: new Date().toISOString()};
  const kept = {name, text, caret, spans, accepted, history, left, side, settings, seed, model, instruction, instructed};
  return JSON.stringify({...from, ...kept, view, tree}, null, 1);
}

/**
 * The replay of a document as the text of a JSON file, which also opens as a document: its steps up to the present text,
 * without undone steps and abandoned texts. The same document gives the same bytes.
 * @param {DocumentFields} document
 */
export function exportReplay({name, text, spans, accepted, history, settings, model, instruction, instructed}) {
  const kept = {name, text, caret: text.length, spans, accepted, history: historyToReplay(history), settings, seed: settings?.seed ?? null};
  return `${JSON.stringify({format: FORMAT, version: VERSION, play: true, ...kept, model, instruction, instructed}, null, 1)}\n`;
}

/**
 * Read the document of a file. Throws an Error whose message is a sentence for the person.
 * @param {File} file
 * @returns {Promise<DocumentFields>}
 */
export async function readDocumentFile(file) {
  if (file.size > MOST_BYTES) throw new Error(`“${file.name}” is larger than 5 MB, so it was not opened.`);
  const text = decodeText(await bytesOf(file), file.name);
  const value = parseObject(text), name = file.name.replace(/\.[^.]*$/, '');
  if (value?.format === FORMAT) return documentOf(value, file.name, name);
  if (value?.format === AUTHORSHIP_FORMAT) return documentOf({...authorshipFields(value), version: value.version}, file.name, name, AUTHORSHIP_VERSION);
  if (!/\.json$/i.test(file.name) && file.type !== 'application/json') return documentFrom({name, text});
  const problem = value === undefined ? 'is broken: it is not whole JSON' : 'is JSON, but not a document of Lookahead';
  throw new Error(`“${file.name}” ${problem}. Nothing was opened.`);
}

/** @param {File} file */
async function bytesOf(file) {
  try {
    return await file.arrayBuffer();
  } catch {
    throw new Error(`“${file.name}” could not be read. Nothing was opened.`);
  }
}

/** @param {ArrayBuffer} bytes @param {string} name */
function decodeText(bytes, name) {
  try {
    const text = new TextDecoder('utf-8', {fatal: true}).decode(bytes);
    if (!text.includes('\0')) return text.replace(/\r\n?/g, '\n');
  } catch { /* the error below says so */ }
  throw new Error(`“${name}” is not a text in UTF-8. Nothing was opened; save it as UTF-8 text, or export it again.`);
}

/**
 * A JSON object; null for other JSON, undefined for a text that is no JSON.
 * @param {string} text
 * @returns {Record<string, any> | null | undefined}
 */
function parseObject(text) {
  try {
    const value = JSON.parse(text);
    return isPlainObject(value) ? value : null;
  } catch {
    return undefined;
  }
}

/**
 * @param {Record<string, any>} value
 * @param {string} file its name
 * @param {string} name for a document without one
 * @param {number} newest version of the format that can be read
 */
function documentOf(value, file, name, newest = VERSION) {
  if (typeof value.text !== 'string') throw new Error(`“${file}” is a document of Lookahead without a text. Nothing was opened.`);
  if (Number.isFinite(value.version) && value.version > newest) {
    throw new Error(`“${file}” was made by a newer Lookahead than this one. Nothing was opened.`);
  }
  const played = value.play === true ? {play: true} : {};
  const found = {...documentFrom({...value, text: value.text, name: value.name || name}), ...played};
  if (!Number.isSafeInteger(value.seed)) return found;
  return {...found, settings: {...found.settings, seed: value.seed}};
}
