// What a list of moments shows of each: the end of the text before it, and its piece.
/** @import {Moment, Span} from './types.d.ts' */
import {excerpt} from './text_words.js';
import {markedStretches} from './text_marks.js';
import {spansOutside} from './chosen_spans.js';
import {isSigns, spokenText, visibleText} from './figures_and_labels.js';

const SHOWN = 160;   // characters of a piece

/**
 * The stretches of a piece as its line shows it: chosen, or written into the row by the person.
 * @param {string} text of the moment
 * @param {string} piece as it is shown
 * @param {Span[]} written
 */
function stretchesOf(text, piece, written) {
  if (!written.length) return [{text: piece, chosen: true}];
  const shownAt = (/** @type {number} */ place) => Math.min(text.slice(0, place).replace(/\s+/g, ' ').trimStart().length, piece.length);
  /** @type {Span[]} */
  const chosen = spansOutside(written, text.length).map(([from, to]) => [shownAt(from), shownAt(to)]);
  return [...markedStretches(piece, chosen)].filter(({text: one}) => one);
}

/**
 * The texts of a moment's line: the end of the text before it, and the piece that was added, whole and in stretches. Between the
 * two there is a space only if the document has one there, or if the text before is the name of who sent a message. `spoken` is the line
 * for screen readers where the piece is made of signs alone; empty elsewhere.
 * @param {Pick<Moment, 'before' | 'text'> & Partial<Pick<Moment, 'earlier' | 'written'>>} moment
 */
export function momentTexts({before, text, earlier, written = []}) {
  const gap = before && !/\s$/.test(before) && (earlier || /^\s/.test(text)) ? ' ' : '';
  const added = text || '\n', piece = excerpt(added, SHOWN) || visibleText(added);
  const spoken = isSigns(added) ? `${before.trim()} ${spokenText(added)}`.trim() : '';
  return {before: before + gap, piece, spoken, stretches: stretchesOf(text, piece, written)};
}
