// The title of a document, the name of its copy, and its card in the list.
/** @import {DocumentCard, DocumentRecord} from '../../web/core/types.d.ts' */
import {countWords, excerpt} from '../../web/core/text_words.js';

const TITLE = 48;   // characters
const FROM_LINK = ' (from a link)';

/**
 * A document's name, else the beginning of its text.
 * @param {{name: string, text: string}} document
 */
export const titleOf = ({name, text}) => name || excerpt(text, TITLE) || 'Untitled';

/**
 * The name of a document that a link opens; empty if it has neither name nor text.
 * @param {{text: string, name?: string}} linked
 */
export const linkName = ({text, name = ''}) =>
  (name || text.trim() ? `${titleOf({name: name.replace(FROM_LINK, ''), text})}${FROM_LINK}` : '');

/**
 * The name of a copy: "A", "A (copy)", "A (copy 2)" …
 * @param {string} name
 */
export function copyName(name) {
  const [, stem, number] = /^(.*?)(?: \(copy(?: (\d+))?\))?$/su.exec(name) ?? [name, name];
  return stem === name ? `${name} (copy)` : `${stem} (copy ${Number(number ?? 1) + 1})`;
}

/**
 * The card of a document, so that the list is made without reading texts.
 * @param {DocumentRecord} record
 * @returns {DocumentCard}
 */
export function cardOf(record) {
  const {id, version, name, edited, text, spans} = record;
  return {id, version, name, edited, title: titleOf(record), words: countWords(text, spans).words};
}
