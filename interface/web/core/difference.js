// A change of a text as one replaced stretch: {start, removed, inserted}. Positions count UTF-16 units.
/** @import {Change, Span} from './types.d.ts' */

/** @type {(text: string, change: Change) => string} */
export const applyChange = (text, {start, removed, inserted}) =>
  text.slice(0, start) + inserted + text.slice(start + removed.length);

/** @type {(change: Change) => Change} */
export const inverseChange = ({start, removed, inserted}) => ({start, removed: inserted, inserted: removed});

/**
 * Whether a text contains the removed stretch at its start.
 * @type {(text: string, change: Pick<Change, 'start' | 'removed'>) => boolean}
 */
export const changeFits = (text, {start, removed}) => text.startsWith(removed, start) && start <= text.length;

/**
 * How much longer a text is after a change.
 * @type {(change: Pick<Change, 'removed' | 'inserted'>) => number}
 */
export const lengthDifference = ({removed, inserted}) => inserted.length - removed.length;

/** @param {number} unit */
const isHigh = unit => unit >= 0xd800 && unit < 0xdc00;
/** @param {number} unit */
const isLow = unit => unit >= 0xdc00 && unit < 0xe000;

/**
 * @param {string} old
 * @param {string} now
 */
function commonStart(old, now) {
  const most = Math.min(old.length, now.length);
  let length = 0;
  while (length < most && old.charCodeAt(length) === now.charCodeAt(length)) length += 1;
  // Two emoji may share their first surrogate: a change never cuts a character.
  return isHigh(old.charCodeAt(length - 1)) ? length - 1 : length;
}

/**
 * @param {string} old
 * @param {string} now
 * @param {number} most
 */
function commonEnd(old, now, most) {
  let length = 0;
  while (length < most && old.charCodeAt(old.length - 1 - length) === now.charCodeAt(now.length - 1 - length)) length += 1;
  return isLow(old.charCodeAt(old.length - length)) ? length - 1 : length;
}

/**
 * Whether a change removes more than one word.
 * @param {Pick<Change, 'removed'>} change
 */
export const removesWords = ({removed}) => /\S\s+\S/.test(removed);

/**
 * The smallest change that leads from one text to another.
 * @param {string} old
 * @param {string} now
 * @returns {Change}
 */
export function changeBetween(old, now) {
  const start = commonStart(old, now);
  const tail = commonEnd(old, now, Math.min(old.length, now.length) - start);
  return {start, removed: old.slice(start, old.length - tail), inserted: now.slice(start, now.length - tail)};
}

/**
 * The change that a person made, from the selection before and the caret after it. In "aaa" the texts alone do not show
 * which letter is new.
 * @param {string} old
 * @param {string} now
 * @param {Span} selection before the change
 * @param {number} caret after the change
 * @returns {Change}
 */
export function changeTyped(old, now, selection, caret) {
  const start = Math.min(selection[0], caret), end = old.length - (now.length - caret);
  const same = start <= end && old.slice(end) === now.slice(caret) && old.slice(0, start) === now.slice(0, start);
  return same ? {start, removed: old.slice(start, end), inserted: now.slice(start, caret)} : changeBetween(old, now);
}
