// The widths of labels without a browser: an upper bound for the fonts that common systems have.

/** @typedef {(text: string, size: number) => number} WidthOf a width in pixels; `size` is that of the font */

/** Widths in font sizes of the widest common serif and sans-serif fonts, by the characters that have them. */
/** @type {[RegExp, number][]} */
const WIDTHS = [
  [/\p{M}|[\u200b-\u200f]/u, 0],
  [/[ijlI.,;:'’!|()[\]ftr\- ]/u, 0.5],
  [/[mwMW%@&…—↵⇥]/u, 1.1],
  [/[a-z0-9]/u, 0.68],
  [/[A-Z]/u, 0.9],
  [/[\u00a0-\u052f]/u, 1],
];
const WIDEST = 1.5;   // ideographs, emoji and everything else

/**
 * A width in pixels that no common font exceeds.
 * @param {string} text
 * @param {number} size of the font in pixels
 */
export function labelWidth(text, size) {
  const widths = [...text].map(character => WIDTHS.find(([pattern]) => pattern.test(character))?.[1] ?? WIDEST);
  return Math.ceil(size * widths.reduce((all, one) => all + one, 0));
}
