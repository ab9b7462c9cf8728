// Which characters of a text were chosen among branches rather than typed: a sorted list of [start, end].
/** @import {Change, Span, SpansPatch} from './types.d.ts' */
import {lengthDifference} from './difference.js';

/** @type {(spans: Span[], by: number) => Span[]} */
const moved = (spans, by) => (by ? spans.map(([start, end]) => [start + by, end + by]) : spans);

/** @type {(one: Span, other: Span) => boolean} */
const same = (one, other) => one[0] === other[0] && one[1] === other[1];

/**
 * The spans after a change of the text.
 * @param {Span[]} spans
 * @param {Change} change
 * @param {Span[]} [marks] the spans of the inserted text, counted from its start
 * @returns {Span[]}
 */
export function spansAfterChange(spans, change, marks = []) {
  const {start, removed} = change, end = start + removed.length, by = lengthDifference(change);
  /** @type {Span[]} */
  const head = [];
  /** @type {Span[]} */
  const tail = [];
  for (const [from, to] of spans) {
    if (from < start) head.push([from, Math.min(to, start)]);
    if (to > end) tail.push([Math.max(from, end) + by, to + by]);
  }
  // A span that loses its middle stays one span.
  const joins = !change.inserted && head.length && tail.length && spans.some(([from, to]) => from < start && to > end);
  if (joins) tail[0] = [head.splice(-1)[0][0], tail[0][1]];
  return [...head, ...moved(marks, start), ...tail];
}

/**
 * What a change did to the spans, as one replaced stretch of the list, to be undone and redone with the change.
 * @param {Span[]} old
 * @param {Span[]} now
 * @param {number} by how much longer the text is after the change
 * @returns {SpansPatch}
 */
export function spansPatch(old, now, by) {
  const later = moved(old, by), most = Math.min(old.length, now.length);
  let from = 0, kept = 0;
  while (from < most && same(old[from], now[from])) from += 1;
  while (kept < most - from && same(later[later.length - 1 - kept], now[now.length - 1 - kept])) kept += 1;
  return {from, before: old.slice(from, old.length - kept), after: now.slice(from, now.length - kept)};
}

/**
 * The spans after a patch is applied.
 * @param {Span[]} spans
 * @param {SpansPatch} patch
 * @param {number} by how much longer the text is after the change
 * @returns {Span[]}
 */
export const redoSpans = (spans, {from, before, after}, by) =>
  [...spans.slice(0, from), ...after, ...moved(spans.slice(from + before.length), by)];

/**
 * The spans before a patch was applied.
 * @param {Span[]} spans
 * @param {SpansPatch} patch
 * @param {number} by how much longer the text is after the change
 */
export const undoSpans = (spans, {from, before, after}, by) => redoSpans(spans, {from, before: after, after: before}, -by);

/**
 * The spans within a stretch of the text, counted from its start.
 * @param {Span[]} spans
 * @param {number} start
 * @param {number} end
 * @returns {Span[]}
 */
export const spansWithin = (spans, start, end) => spans
  .map(([from, to]) => /** @type {Span} */ ([Math.max(from, start) - start, Math.min(to, end) - start]))
  .filter(([from, to]) => from < to);

/**
 * The parts of a text that lie in none of the spans.
 * @param {Span[]} spans in their order, none within another
 * @param {number} length of the text
 * @returns {Span[]}
 */
export function spansOutside(spans, length) {
  /** @type {Span[]} */
  const found = [];
  let at = 0;
  for (const [start, end] of [...spans, [length, length]]) {
    if (at < start) found.push([at, start]);
    at = end;
  }
  return found;
}
