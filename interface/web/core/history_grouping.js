// Which changes form one step of the history: typing is one step until a pause, and long runs are cut between words.
/** @import {NewStep, Span} from './types.d.ts' */
const PAUSE = 1000;   // milliseconds between two changes of one step
const RUN = 40;       // characters after which the next word begins a new step
const PHRASE = 20;    // characters: a longer change was not typed by hand

/**
 * Whether two selections are the same caret, with nothing selected.
 * @type {(one: Span, other: Span) => boolean}
 */
const sameCaret = ([start, end], [from, to]) => start === end && start === from && end === to;

/**
 * Whether a run is long enough, and the next text begins a new word.
 * @type {(before: string, after: string) => boolean}
 */
const runEnds = (before, after) => before.length >= RUN && /\s$/u.test(before) && !/^\s/u.test(after);

/** @type {(last: NewStep, step: NewStep) => boolean} */
function continuesTyping(last, step) {
  const follows = !step.removed && step.start === last.start + last.inserted.length;
  const newLine = last.inserted.endsWith('\n') && !step.inserted.startsWith('\n');
  return follows && !newLine && step.inserted.length <= PHRASE && !runEnds(last.inserted, step.inserted);
}

/** @type {(last: NewStep, step: NewStep) => boolean} */
function continuesDeleting(last, step) {
  const beside = step.start + step.removed.length === last.start || step.start === last.start;
  return beside && step.removed.length <= PHRASE && !(last.removed.length >= RUN && /\s$/u.test(step.removed));
}

/**
 * Whether a change belongs to the same step of the history as the one before it.
 * @param {NewStep | undefined} last
 * @param {NewStep} step
 */
export function canJoin(last, step) {
  if (!last || last.kind !== step.kind || Math.abs(step.time - last.time) >= PAUSE) return false;
  if (!sameCaret(last.after, step.before)) return false;
  return step.kind === 'type' ? continuesTyping(last, step) : step.kind === 'delete' && continuesDeleting(last, step);
}

/**
 * Both changes as one step.
 * @template {NewStep} T
 * @param {T} last
 * @param {NewStep} step
 * @returns {T}
 */
export function joinSteps(last, step) {
  const {after, time} = step;
  if (step.kind === 'type') return {...last, inserted: last.inserted + step.inserted, after, time};
  const forward = step.start === last.start;
  const removed = forward ? last.removed + step.removed : step.removed + last.removed;
  return {...last, start: step.start, removed, after, time};
}
