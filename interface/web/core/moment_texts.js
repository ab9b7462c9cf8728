// What a list of moments shows of each: the end of the text before it, and its piece.
/** @import {Moment} from './types.d.ts' */
import {excerpt} from './text_words.js';
import {visibleText} from './figures_and_labels.js';

const SHOWN = 160;   // characters of a piece

/**
 * The two texts of a moment's line, with a space between them only where one stands in the document, or behind the name of
 * who sent a message.
 * @param {Pick<Moment, 'before' | 'text'> & Partial<Pick<Moment, 'earlier'>>} moment
 */
export function momentTexts({before, text, earlier}) {
  const gap = before && !/\s$/.test(before) && (earlier || /^\s/.test(text)) ? ' ' : '';
  return {before: before + gap, piece: excerpt(text, SHOWN) || visibleText(text) || '↵'};
}
