// Which stretches of a text were chosen and which typed, for the mirror under the text box and the strip below it.
/** @import {Span} from './types.d.ts' */
const LONG = 20_000;   // characters; of longer texts only the last paragraphs are mirrored
const CELLS = 200;     // of the strip

/**
 * Spans that touch each other as one.
 * @param {Span[]} spans
 * @returns {Span[]}
 */
const joinAdjacent = spans => spans.reduce((/** @type {Span[]} */ runs, [from, to]) => {
  const last = runs.at(-1);
  if (last && last[1] >= from) last[1] = Math.max(last[1], to);
  else runs.push([from, to]);
  return runs;
}, []);

/**
 * Where the mirrored part of a text begins; null if the last paragraph is too long.
 * @param {string} text
 */
export function mirrorStart(text) {
  if (text.length <= LONG) return 0;
  const lineBreak = text.indexOf('\n', text.length - LONG);
  return lineBreak < 0 ? null : lineBreak + 1;
}

/**
 * Generate the text as stretches that were chosen or typed. White space around a chosen piece counts as typed.
 * @param {string} text
 * @param {Span[]} spans
 * @param {number} [start] of the part that is generated
 * @returns {Generator<{text: string, chosen: boolean}>}
 */
export function* markedStretches(text, spans, start = 0) {
  let done = start;
  for (const [from, to] of joinAdjacent(spans)) {
    const piece = text.slice(Math.max(from, start), to), lead = piece.length - piece.trimStart().length;
    if (!piece.trim()) continue;
    yield {text: text.slice(done, Math.max(from, start) + lead), chosen: false};
    yield {text: piece.trim(), chosen: true};
    done = Math.max(from, start) + lead + piece.trim().length;
  }
  yield {text: text.slice(done), chosen: false};
}

/**
 * Generate the cells of the strip from left to right. A chosen cell is always wide enough to be seen.
 * @param {number} length of the text
 * @param {Span[]} spans
 * @returns {Generator<{share: number, chosen: boolean}>} `share` is a width in characters
 */
export function* stripCells(length, spans) {
  const cell = Math.max(1, length / CELLS);
  /** @param {number} position */
  const round = position => Math.round(position / cell) * cell;
  let done = 0;
  for (const [from, to] of joinAdjacent(spans.map(([from, to]) => [round(from), Math.max(round(to), round(from) + cell)]))) {
    if (from > done) yield {share: from - done, chosen: false};
    yield {share: to - from, chosen: true};
    done = to;
  }
  if (length > done) yield {share: length - done, chosen: false};
}
