// Who wrote each character of a text: a list of runs, each with its length, its author, and the step that brought it.
//
// Authors: `typed`; `pasted`; `chosen` among branches; `example`, the opening of the stored example; `earlier`, which stood
// in the text before its recorded history, as in a document from a link or a text file.
/** @import {Author, AuthorRun, Change, HistoryStep, NewStep, Span, TextState} from './types.d.ts' */
import {lengthDifference} from './difference.js';

/**
 * The authors of what a step inserts, by its kind. Another kind puts characters back whose author is not recorded.
 * @type {Record<string, Author>}
 */
const AUTHORS = {type: 'typed', composition: 'typed', replace: 'typed', delete: 'typed', cut: 'typed', paste: 'pasted'};

/** @type {(one: AuthorRun, other: AuthorRun) => boolean} */
const same = (one, other) => one.author === other.author && one.step === other.step && one.model === other.model
  && one.logprob === other.logprob && one.instruction === other.instruction;

/**
 * Runs without empty ones, and neighbours that differ in nothing as one.
 * @param {AuthorRun[]} runs
 * @returns {AuthorRun[]}
 */
export function joinRuns(runs) {
  /** @type {AuthorRun[]} */
  const joined = [];
  for (const run of runs) {
    const last = joined[joined.length - 1];
    if (last && same(last, run)) joined[joined.length - 1] = {...last, length: last.length + run.length};
    else if (run.length) joined.push(run);
  }
  return joined;
}

/**
 * The number of characters of all runs, in UTF-16 units.
 * @param {AuthorRun[]} runs
 */
export const lengthOfRuns = runs => runs.reduce((sum, {length}) => sum + length, 0);

/**
 * The runs of a stretch of the text.
 * @param {AuthorRun[]} runs
 * @param {number} start
 * @param {number} end
 * @returns {AuthorRun[]}
 */
export function runsWithin(runs, start, end) {
  /** @type {AuthorRun[]} */
  const found = [];
  let at = 0;
  for (const run of runs) {
    const length = Math.min(at + run.length, end) - Math.max(at, start);
    if (length > 0) found.push(length === run.length ? run : {...run, length});
    at += run.length;
    if (at >= end) break;
  }
  return found;
}

/**
 * The runs after a change of the text.
 * @param {AuthorRun[]} runs
 * @param {Pick<Change, 'start' | 'removed'>} change
 * @param {AuthorRun[]} inserted the runs of the inserted text
 */
export const runsAfterChange = (runs, {start, removed}, inserted) =>
  joinRuns([...runsWithin(runs, 0, start), ...inserted, ...runsWithin(runs, start + removed.length, Infinity)]);

/**
 * How many characters at the start of two texts have the same authors.
 * @param {AuthorRun[]} one
 * @param {AuthorRun[]} other
 */
function commonLength(one, other) {
  let length = 0, [first, second] = [0, 0], [left, right] = [one[0]?.length ?? 0, other[0]?.length ?? 0];
  while (first < one.length && second < other.length && same(one[first], other[second])) {
    const step = Math.min(left, right);
    length += step;
    [left, right] = [left - step, right - step];
    if (!left) left = one[++first]?.length ?? 0;
    if (!right) right = other[++second]?.length ?? 0;
  }
  return length;
}

/**
 * The change that leads from one text to another, and from its authors to the other's: a change of the text, widened to all
 * characters whose authors differ.
 * @param {{text: string, authors: AuthorRun[]}} from
 * @param {{text: string, authors: AuthorRun[]}} to
 * @param {Change} change of the text
 * @returns {Change}
 */
export function changeWithAuthors(from, to, {start, removed}) {
  const head = Math.min(start, commonLength(from.authors, to.authors));
  const tail = Math.min(from.text.length - start - removed.length, commonLength(from.authors.toReversed(), to.authors.toReversed()));
  return {start: head, removed: from.text.slice(head, from.text.length - tail), inserted: to.text.slice(head, to.text.length - tail)};
}

/**
 * The parts of a stretch of the text that lie in spans, and those between them.
 * @param {Span[]} spans
 * @param {number} start
 * @param {number} end
 * @returns {{length: number, marked: boolean}[]}
 */
function partsOf(spans, start, end) {
  let at = start;
  const parts = [];
  for (const [from, to] of spans) {
    if (to <= at || from >= end) continue;
    if (from > at) parts.push({length: from - at, marked: false});
    at = Math.max(at, from);
    parts.push({length: Math.min(to, end) - at, marked: true});
    at = Math.min(to, end);
  }
  return [...parts, {length: end - at, marked: false}];
}

/**
 * The runs of a text that was there before its recorded history.
 * @param {Pick<TextState, 'text' | 'spans'>} state
 */
export const earlierRuns = ({text, spans}) =>
  joinRuns(partsOf(spans, 0, text.length).map(({length, marked}) => ({length, author: marked ? 'chosen' : 'earlier'})));

/**
 * The runs with `chosen` exactly where the spans are: a document from an older version does not say more.
 * @param {AuthorRun[]} runs
 * @param {Span[]} spans
 */
export function agreeWithSpans(runs, spans) {
  const parts = partsOf(spans, 0, lengthOfRuns(runs));
  /** @type {AuthorRun[]} */
  const found = [];
  let index = 0, left = parts[0].length;   // of the present part
  for (const run of runs) {
    for (let rest = run.length; rest > 0;) {
      while (!left) left = parts[++index].length;
      const length = Math.min(rest, left), {marked} = parts[index];
      if (marked !== (run.author === 'chosen')) found.push({length, author: marked ? 'chosen' : 'earlier'});
      else found.push(length === run.length ? run : {...run, length});
      rest -= length;
      left -= length;
    }
  }
  return joinRuns(found);
}

/**
 * The logarithm of the probability of an accepted piece; null where it is not known. Where a part was written into the row,
 * before the caret, the sum would be that of what was written too.
 * @param {Pick<NewStep, 'start' | 'after' | 'logprobs' | 'written'>} step
 */
const logprobOf = ({start, after: [caret], logprobs, written = []}) =>
  (logprobs?.length && written.every(([from]) => start + from >= caret) ? logprobs.reduce((sum, one) => sum + one, 0) : null);

/**
 * The authors of the text that a step inserts. An accepted text was chosen, except for what the person had written into the
 * row. The first one of a document may begin with the example's opening, which lies outside the step's marks.
 * @param {HistoryStep} step
 * @param {boolean} first whether it is inserted into an empty text
 * @returns {AuthorRun[]}
 */
function insertedRuns(step, first) {
  const {start, inserted: {length}, kind, number, marks, written, chosenLogprobs, model = null, instruction} = step;
  if (kind !== 'accept') return [{length, author: AUTHORS[kind] ?? 'earlier', step: number}];
  /** @type {Omit<AuthorRun, 'length'>} */
  const chosen = {author: 'chosen', step: number, model, logprob: logprobOf(step), ...(instruction && {instruction})};
  /** @type {(parts: ReturnType<typeof partsOf>, marked: Omit<AuthorRun, 'length'>, other: Omit<AuthorRun, 'length'>) => AuthorRun[]} */
  const runsOf = (parts, marked, other) => parts.map(part => ({length: part.length, ...(part.marked ? marked : other)}));
  if (written) return withLogprobs(runsOf(partsOf(written, 0, length), {author: 'typed', step: number}, chosen), chosenLogprobs);
  return first ? runsOf(partsOf(marks.after, start, start + length), chosen, {author: 'example', step: number}) : [{length, ...chosen}];
}

/**
 * Give each chosen run its log-probability. Returns the runs unchanged unless there is exactly one log-probability for each.
 * @type {(runs: AuthorRun[], logprobs: number[] | undefined) => AuthorRun[]}
 */
function withLogprobs(runs, logprobs) {
  const chosen = runs.filter(({author, length}) => author === 'chosen' && length);
  if (!logprobs || logprobs.length !== chosen.length) return runs;
  return runs.map(run => (chosen.includes(run) ? {...run, logprob: logprobs[chosen.indexOf(run)]} : run));
}

/**
 * The runs after a step of the history.
 * @param {AuthorRun[]} runs
 * @param {HistoryStep} step
 */
export function runsAfterStep(runs, step) {
  const {authors} = step, length = lengthOfRuns(runs) + lengthDifference(step);
  return authors && lengthOfRuns(authors) === length ? authors : runsAfterChange(runs, step, insertedRuns(step, !runs.length));
}
