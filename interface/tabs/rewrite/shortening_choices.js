// What the Rewrite tab offers for a source that is too long, and a shortened source as data. Pure functions.
/** @import {News} from '../../web/core/types.d.ts' */
import {formatNumber} from '../../web/core/figures_and_labels.js';

export const RATIOS = [0.5, 0.25];
const TOO_LONG = 'source_too_long';   // the reason of such an error

/**
 * @typedef {object} ShortSource a shortened source
 * @property {string} text what the model reads
 * @property {[string, boolean][]} parts the source in order: characters, and whether they are kept
 * @property {number} before tokens of the source
 * @property {number} after tokens of the text
 * @property {number} ratio the share that was asked for
 */

/** @typedef {{tokens?: number | null, most?: number | null}} TooLongDetails tokens of instruction and source, and the most that fit */

/**
 * The ratios to which a source can be shortened so that it fits, as far as that is known; the largest first.
 * @param {TooLongDetails} details of the error; tokens are those at the ratio `now`
 * @param {number} [now] the ratio of the source that was too long
 */
export const ratiosThatFit = ({tokens, most}, now = 1) =>
  RATIOS.filter(ratio => ratio < now && (!tokens || !most || tokens * ratio / now <= most));

/**
 * The sentence above the buttons that shorten a source.
 * @param {TooLongDetails} details
 * @param {number[]} ratios that are offered
 */
export function offerSentence({tokens, most}, ratios) {
  const why = tokens && most ? `: instruction and source have ${formatNumber(tokens)} tokens, and ${formatNumber(most)} fit` : '';
  const remedy = ratios.length
    ? 'The model can shorten it for itself. Phrases that surprise it least go first, names and numbers stay longest; your source is not changed.'
    : 'Even a quarter of it would not fit: shorten it yourself.';
  return `The source is too long for this model${why}. ${remedy}`;
}

/**
 * How far a source is read, from an answer of the server; null if it does not say so.
 * @param {any} answer
 * @returns {{share: number, sentence: string} | null}
 */
export function readingOf(answer) {
  const [read, total] = Array.isArray(answer?.reading) ? answer.reading : [];
  if (![read, total].every(Number.isFinite) || total <= 0) return null;
  return {share: Math.min(1, Math.max(0, read / total)), sentence: `${formatNumber(read)} of ${formatNumber(total)} tokens read`};
}

/** @param {ShortSource} short */
export const shortSentence = ({before, after}) =>
  `The model reads ${formatNumber(after)} of the ${formatNumber(before)} tokens of your source. What is struck through is left out.`;

/** @param {number} ratio */
export const ratioLabel = ratio => `Shorten to 1/${Math.round(1 / ratio)}`;

/**
 * A shortened source from an answer of the server, or from storage; null if it is none of this source.
 * @param {any} found
 * @param {string} source
 * @returns {ShortSource | null}
 */
export function shortSourceOf(found, source) {
  const {text, parts, ratio} = found ?? {}, before = found?.before ?? found?.tokens_before, after = found?.after ?? found?.tokens_after;
  const valid = typeof text === 'string' && Array.isArray(parts) && [before, after].every(Number.isFinite) && RATIOS.includes(ratio)
    && parts.every(part => Array.isArray(part) && typeof part[0] === 'string' && typeof part[1] === 'boolean')
    && parts.map(([characters]) => characters).join('') === source;
  return valid ? {text, parts, before, after, ratio} : null;
}

/**
 * The source in pieces to paint: characters, and whether they are struck through. White space at the edges of a removed
 * part is not.
 * @param {ShortSource['parts']} parts
 * @returns {[string, boolean][]}
 */
export const painted = parts => parts.flatMap(([text, kept]) => {
  const core = text.trim(), start = text.indexOf(core);
  if (kept || !core) return /** @type {[string, boolean][]} */ ([[text, false]]);
  const pieces = /** @type {[string, boolean][]} */ ([[text.slice(0, start), false], [core, true], [text.slice(start + core.length), false]]);
  return pieces.filter(([characters]) => characters);
});

/**
 * Whether news say that the source is too long.
 * @param {News} news
 */
export const saysTooLong = news => news.state === 'error' && news.reason === TOO_LONG;
