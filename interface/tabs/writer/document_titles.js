// What a document is called, what its copy is called, and its card in the list.
import {countWords, excerpt} from '../../web/core/text_words.js';

const TITLE = 48;   // characters

export const titleOf = ({name, text}) => name || excerpt(text, TITLE) || 'Untitled';

export function copyName(name) {
  const [, stem, number] = /^(.*?)(?: \(copy(?: (\d+))?\))?$/su.exec(name);
  return stem === name ? `${name} (copy)` : `${stem} (copy ${Number(number ?? 1) + 1})`;
}

// So that the list is made without reading texts.
export function cardOf(record) {
  const {id, version, name, edited, text, spans} = record;
  return {id, version, name, edited, title: titleOf(record), words: countWords(text, spans).words};
}
