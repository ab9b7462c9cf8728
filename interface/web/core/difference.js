// A change of a text, as one stretch that was replaced: {start, removed, inserted}.

export const applyChange = (text, {start, removed, inserted}) =>
  text.slice(0, start) + inserted + text.slice(start + removed.length);

export const inverseChange = ({start, removed, inserted}) => ({start, removed: inserted, inserted: removed});

export const changeFits = (text, {start, removed}) => text.startsWith(removed, start) && start <= text.length;

export const lengthDifference = ({removed, inserted}) => inserted.length - removed.length;

const isHigh = unit => unit >= 0xd800 && unit < 0xdc00;
const isLow = unit => unit >= 0xdc00 && unit < 0xe000;

function commonStart(old, now) {
  const most = Math.min(old.length, now.length);
  let length = 0;
  while (length < most && old.charCodeAt(length) === now.charCodeAt(length)) length += 1;
  // Half a character is none: two emoji may share their first half.
  return isHigh(old.charCodeAt(length - 1)) ? length - 1 : length;
}

function commonEnd(old, now, most) {
  let length = 0;
  while (length < most && old.charCodeAt(old.length - 1 - length) === now.charCodeAt(now.length - 1 - length)) length += 1;
  return isLow(old.charCodeAt(old.length - length)) ? length - 1 : length;
}

// The smallest change that leads from one text to another.
export function changeBetween(old, now) {
  const start = commonStart(old, now);
  const tail = commonEnd(old, now, Math.min(old.length, now.length) - start);
  return {start, removed: old.slice(start, old.length - tail), inserted: now.slice(start, now.length - tail)};
}

// The change that a person made who had this selection, and has the caret here now. In "aaa" the texts alone do not
// tell which a is the new one; the caret does.
export function changeTyped(old, now, selection, caret) {
  const start = Math.min(selection[0], caret), end = old.length - (now.length - caret);
  const same = start <= end && old.slice(end) === now.slice(caret) && old.slice(0, start) === now.slice(0, start);
  return same ? {start, removed: old.slice(start, end), inserted: now.slice(start, caret)} : changeBetween(old, now);
}
