// Which characters of a text were chosen among branches, and not typed: a sorted list of [start, end].
import {lengthDifference} from './difference.js';

const moved = (spans, by) => (by ? spans.map(([start, end]) => [start + by, end + by]) : spans);
const same = (one, other) => one[0] === other[0] && one[1] === other[1];

// The spans after a change of the text; `marks` are those of what it inserted, counted from its start.
export function spansAfterChange(spans, change, marks = []) {
  const {start, removed} = change, end = start + removed.length, by = lengthDifference(change);
  const head = [], tail = [];
  for (const [from, to] of spans) {
    if (from < start) head.push([from, Math.min(to, start)]);
    if (to > end) tail.push([Math.max(from, end) + by, to + by]);
  }
  // What was taken out of the middle of a piece leaves one piece.
  const joins = !change.inserted && head.length && tail.length && spans.some(([from, to]) => from < start && to > end);
  if (joins) tail[0] = [head.pop()[0], tail[0][1]];
  return [...head, ...moved(marks, start), ...tail];
}

// What a change did to the spans, as one stretch of the list: to be undone and redone with the change.
export function spansPatch(old, now, by) {
  const later = moved(old, by), most = Math.min(old.length, now.length);
  let from = 0, kept = 0;
  while (from < most && same(old[from], now[from])) from += 1;
  while (kept < most - from && same(later[later.length - 1 - kept], now[now.length - 1 - kept])) kept += 1;
  return {from, before: old.slice(from, old.length - kept), after: now.slice(from, now.length - kept)};
}

export const redoSpans = (spans, {from, before, after}, by) =>
  [...spans.slice(0, from), ...after, ...moved(spans.slice(from + before.length), by)];

export const undoSpans = (spans, {from, before, after}, by) => redoSpans(spans, {from, before: after, after: before}, -by);

// The spans within a stretch of the text, counted from its start.
export const spansWithin = (spans, start, end) =>
  spans.map(([from, to]) => [Math.max(from, start) - start, Math.min(to, end) - start]).filter(([from, to]) => from < to);
