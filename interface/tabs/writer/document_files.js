// A document as a file: JSON with everything, or plain text; and back, checked field by field.
import {documentFrom, isPlainObject} from './document_record.js';

const FORMAT = 'lookahead';
const VERSION = 1;
const MOST_BYTES = 5 * 1024 * 1024;
const MOST_NAME = 60;

// Signs that file systems refuse, and those that turn the writing direction, which can make a name look like another.
const REFUSED = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}/\\:*?"<>|]/gu;

export function fileName(name, ending) {
  const clean = [...name.replace(REFUSED, ' ').replace(/\s+/g, ' ').trim().replace(/^\.+/, '')].slice(0, MOST_NAME).join('').trim();
  return `${clean || FORMAT}.${ending}`;
}

// Everything, as text of a JSON file. `document` is as the shelf keeps it; `view` and `tree` may be null.
export function exportDocument(document, {view = null, tree = null} = {}) {
  const {name, text, caret, history, left, spans, settings, model, instruction, instructed} = document;
  const seed = settings?.seed ?? null, from = {format: FORMAT, version: VERSION, exported: new Date().toISOString()};
  const kept = {name, text, caret, spans, history, left, settings, seed, model, instruction, instructed};
  return JSON.stringify({...from, ...kept, view, tree}, null, 1);
}

// The document of a file, or an Error whose message is a sentence.
export async function readDocumentFile(file) {
  if (file.size > MOST_BYTES) throw new Error(`“${file.name}” is larger than 5 MB, so it was not opened.`);
  const text = decoded(await bytesOf(file), file.name);
  const ours = parsed(text), name = file.name.replace(/\.[^.]*$/, '');
  if (ours?.format === FORMAT) return fromOurs(ours, file.name, name);
  if (!/\.json$/i.test(file.name) && file.type !== 'application/json') return documentFrom({name, text});
  const what = ours === undefined ? 'is broken: it is not whole JSON' : 'is JSON, but not a document of Lookahead';
  throw new Error(`“${file.name}” ${what}. Nothing was opened.`);
}

async function bytesOf(file) {
  try {
    return await file.arrayBuffer();
  } catch {
    throw new Error(`“${file.name}” could not be read. Nothing was opened.`);
  }
}

function decoded(bytes, name) {
  try {
    const text = new TextDecoder('utf-8', {fatal: true}).decode(bytes);
    if (!text.includes('\0')) return text.replace(/\r\n?/g, '\n');
  } catch { /* said below */ }
  throw new Error(`“${name}” is not a text in UTF-8. Nothing was opened; save it as UTF-8 text, or export it again.`);
}

function parsed(text) {
  try {
    const value = JSON.parse(text);
    return isPlainObject(value) ? value : null;
  } catch {
    return undefined;
  }
}

function fromOurs(value, file, name) {
  if (typeof value.text !== 'string') throw new Error(`“${file}” is a document of Lookahead without a text. Nothing was opened.`);
  if (Number.isFinite(value.version) && value.version > VERSION) {
    throw new Error(`“${file}” was made by a newer Lookahead than this one. Nothing was opened.`);
  }
  const found = documentFrom({...value, name: value.name || name});
  if (!Number.isSafeInteger(value.seed)) return found;
  return {...found, settings: {...found.settings, seed: value.seed}};
}
