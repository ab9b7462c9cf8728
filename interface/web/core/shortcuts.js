// The meaning of keys, and of the changes that a text box reports. While an input method composes, keys belong to it;
// with AltGr they write characters. Digits are told by the physical key, since Shift and Alt change the character.
const DIGIT = /^Digit([1-9])$/;
/** @type {[RegExp, string][]} */
const INPUTS = [
  [/^insertFrom(Paste|Drop|Yank)/, 'paste'],
  [/^deleteBy(Cut|Drag)/, 'cut'],
  [/^delete/, 'delete'],
  [/Composition/, 'composition'],
  [/^insert(Text|LineBreak|Paragraph)/, 'type'],
];
/** @type {Record<string, [down: number, along: number]>} */
const MOVES = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity]};

/** @type {Record<string, ReturnType<typeof treeKey>>} */
const TREE_KEYS = {
  ArrowLeft: {move: 'left'}, ArrowRight: {move: 'right'}, ArrowUp: {move: 'up'}, ArrowDown: {move: 'down'}, Home: {move: 'start'}, End: {move: 'end'},
  Enter: {click: true}, ' ': {click: true}, '+': {zoom: 'in'}, '=': {zoom: 'in'}, '-': {zoom: 'out'}, 0: {zoom: 'fit'}, Delete: {ban: true},
};

/** @param {KeyboardEvent} event */
const withAltAlone = event => event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;

/** @param {KeyboardEvent} event */
const withoutModifiers = event => !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;

/**
 * The Latin letter of a key, also on keyboards of other scripts.
 * @param {KeyboardEvent} event
 */
const letter = ({key, code}) => (/^[a-z]$/i.test(key) ? key.toLowerCase() : (/^Key([A-Z])$/.exec(code)?.[1] ?? '').toLowerCase());

/**
 * The kind of a step of the history.
 * @param {string | null | undefined} type of an input event
 */
export const kindOfInput = type => INPUTS.find(([pattern]) => pattern.test(type ?? ''))?.[1] ?? 'replace';

/**
 * Whether a key undoes or redoes.
 * @param {KeyboardEvent} event
 * @returns {'undo' | 'redo' | null}
 */
export function historyKey(event) {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.isComposing) return null;
  if (letter(event) === 'z') return event.shiftKey ? 'redo' : 'undo';
  return letter(event) === 'y' && event.ctrlKey && !event.shiftKey ? 'redo' : null;
}

/**
 * Whether a key, anywhere on the page, pauses branching.
 * @param {KeyboardEvent} event
 */
export const isPause = event => !composes(event) && event.code === 'KeyP' && withAltAlone(event);

/**
 * Whether a key opens the help where nobody is writing.
 * @param {KeyboardEvent} event
 */
export const isHelp = event => event.key === '?' && !event.ctrlKey && !event.metaKey && !event.isComposing;   // with Shift on most keyboards

/**
 * Whether a key writes a character where somebody is writing, and does nothing else elsewhere.
 * @param {KeyboardEvent} event
 */
export const isWritten = event => [...event.key].length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey && !isHelp(event);

/**
 * What a key in the text box does, or null. `branch` is the index of a row. If `ours`, the key has no other meaning, even
 * where there is no such row.
 * @param {KeyboardEvent} event
 * @param {boolean} atEnd whether the caret stands at the end of the text and nothing is selected
 * @returns {{verb: 'word' | 'whole', branch: number, ours?: boolean} | {verb: 'ghost' | 'hide' | 'rows', branch?: number, ours?: boolean} | null}
 */
export function textKey(event, atEnd) {
  if (composes(event)) return null;
  const {key, code, altKey, ctrlKey, metaKey, shiftKey} = event, digit = DIGIT.exec(code);
  if (digit && altKey && !ctrlKey && !metaKey) return {verb: shiftKey ? 'whole' : 'word', branch: Number(digit[1]) - 1, ours: true};
  if (key === 'ArrowRight' && ctrlKey && !altKey && !metaKey && !shiftKey) return atEnd ? {verb: 'word', branch: 0} : null;
  if (key === 'ArrowDown' && withAltAlone(event)) return {verb: 'rows'};
  if (key === 'Tab' && withoutModifiers(event)) return {verb: 'ghost'};
  return key === 'Escape' && withoutModifiers(event) ? {verb: 'hide'} : null;
}

/**
 * What a key among the branches does, or null: move the focus, accept a row's next word, ban or change the focused token, open
 * the help, or lead back to the text.
 * @param {KeyboardEvent} event
 * @returns {{move?: [down: number, along: number], word?: number, ban?: boolean, edit?: boolean, help?: boolean, leave?: boolean} | null}
 */
export function branchKey(event) {
  const {key} = event, digit = withAltAlone(event) && DIGIT.exec(event.code);
  if (event.isComposing) return null;
  if (key === 'ArrowUp' && withAltAlone(event)) return {leave: true};
  if (digit) return {word: Number(digit[1]) - 1};   // as in the text box
  if (isHelp(event)) return {help: true};
  if (!withoutModifiers(event)) return null;
  if (Object.hasOwn(MOVES, key)) return {move: MOVES[key]};
  if (/^[1-9]$/.test(key)) return {word: Number(key) - 1};
  if (key === 'F2' || key === 'e' || key === 'E') return {edit: true};
  return key === 'Delete' ? {ban: true} : null;
}

/**
 * What a key in the tree does, or null: move to a neighbour, to the first node or to the last one on the right, click, zoom, ban, or
 * lead back to the text.
 * @param {KeyboardEvent} event
 * @returns {{move?: 'left' | 'right' | 'up' | 'down' | 'start' | 'end', click?: boolean, zoom?: 'in' | 'out' | 'fit', ban?: boolean, leave?: boolean} | null}
 */
export function treeKey(event) {
  const {key} = event;
  if (event.isComposing) return null;
  if (key === 'ArrowUp' && withAltAlone(event)) return {leave: true};
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  return Object.hasOwn(TREE_KEYS, key) ? TREE_KEYS[key] : null;
}

/**
 * The index of the tab that a key leads to, round the ends; null for other keys.
 * @param {KeyboardEvent} event
 * @param {number} index of the tab that has the focus
 * @param {number} count of tabs
 * @returns {number | null}
 */
export function tabAfterKey(event, index, count) {
  if (event.isComposing || !withoutModifiers(event)) return null;
  /** @type {Record<string, number>} */
  const found = {ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: count - 1};
  return Object.hasOwn(found, event.key) ? (found[event.key] + count) % count : null;
}

/**
 * Whether a key sends the message in progress.
 * @param {KeyboardEvent} event
 */
export const isSend = event => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.isComposing;

/**
 * Whether a key in a name's field keeps the name as written, or leaves it as it was.
 * @param {KeyboardEvent} event
 * @returns {'keep' | 'leave' | null}
 */
export function nameKey(event) {
  if (event.isComposing) return null;
  return event.key === 'Enter' ? 'keep' : event.key === 'Escape' ? 'leave' : null;
}

/** @param {KeyboardEvent} event */
const composes = event => event.isComposing || event.getModifierState('AltGraph');
