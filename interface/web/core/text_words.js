// Words of a text in any script. An ideograph is a word; so is a run of other letters and digits with their marks. A mark alone
// is none: the selector at the end of some emoji is one.
/** @import {Span} from './types.d.ts' */
const WORD = /\p{Ideographic}\p{M}*|(?!\p{Ideographic})[\p{L}\p{N}](?:(?!\p{Ideographic})[\p{L}\p{N}\p{M}])*(?:['’-](?:(?!\p{Ideographic})[\p{L}\p{N}\p{M}])+)*/gu;

const BEGINNING = 8;   // pieces

/**
 * Count the words of a text, and the words of which at least one character was chosen.
 * @param {string} text
 * @param {Span[]} spans the chosen stretches, in order
 */
export function countWords(text, spans) {
  let words = 0, chosen = 0, span = 0;
  for (const {index, 0: word} of text.matchAll(WORD)) {
    while (span < spans.length && spans[span][1] <= index) span += 1;
    words += 1;
    if (span < spans.length && spans[span][0] < index + word.length) chosen += 1;
  }
  return {words, chosen};
}

/**
 * The first words of a text: so many, or more where they have fewer than `least` characters. All of it where no word follows them.
 * @param {string} text
 * @param {number} most
 * @param {number} [least]
 */
export function firstWords(text, most, least = 0) {
  const ends = [...text.matchAll(WORD)].map(({index, 0: word}) => index + word.length);
  const last = ends.findIndex((end, index) => index + 1 >= most && end >= least);
  return last < 0 || last === ends.length - 1 ? text : text.slice(0, ends[last]);
}

/**
 * The beginning of a text as one line of at most so many characters. It ends with a whole word, if spaces separate its words.
 * @param {string} text
 * @param {number} [most]
 */
export function excerpt(text, most = 80) {
  const cut = text.slice(0, most * 4).replace(/[\ud800-\udbff]$/, '');
  const line = cut.replace(/\s+/g, ' ').trim(), characters = [...line];
  if (characters.length <= most && text.length <= most * 4) return line;
  const short = characters.slice(0, most).join(''), whole = (characters[most] ?? ' ') === ' ' ? short.trimEnd() : short.replace(/ \S*$/, '');
  // A cut word that is longer than all before it is an address, or a text without spaces.
  return `${(whole.length * 2 >= short.length ? whole : short).replace(/[.…\s]+$/, '')}…`;
}

/**
 * Pieces [start, …] with their starts counted in characters, as Python counts, instead of UTF-16 units.
 * @template {unknown[]} T
 * @param {string} text
 * @param {[start: number, ...T][]} pieces in the order of the text
 * @returns {[start: number, ...T][]}
 */
export function withCharacterStarts(text, pieces) {
  let from = 0, count = 0;
  return pieces.map(([start, ...piece]) => {
    count += [...text.slice(from, start)].length;
    from = start;
    return [count, ...piece];
  });
}

/**
 * The text of the first pieces of an analysed text, its words or tokens. Where it is another one, another text was analysed, and not
 * the same text with a change.
 * @param {{text: string}[]} pieces
 */
export const beginningOf = pieces => pieces.slice(0, BEGINNING).map(({text}) => text).join('');
