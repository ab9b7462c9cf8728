// What keys mean, and what a text box says that was done to it. Where an input method composes, keys are its own; where AltGr
// is held, they type signs. Digits go by the physical key, for with Shift or Alt they write something else.
const DIGIT = /^Digit([1-9])$/;
const INPUTS = [
  [/^insertFrom(Paste|Drop|Yank)/, 'paste'],
  [/^deleteBy(Cut|Drag)/, 'cut'],
  [/^delete/, 'delete'],
  [/Composition/, 'composition'],
  [/^insert(Text|LineBreak|Paragraph)/, 'type'],
];
const MOVES = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity]};

const plain = event => !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;

// The letter of a key, also where the keyboard writes another script.
const letter = ({key, code}) => (/^[a-z]$/i.test(key) ? key.toLowerCase() : (/^Key([A-Z])$/.exec(code)?.[1] ?? '').toLowerCase());

// The kind of a step of the history, by the type of the input.
export const kindOfInput = type => INPUTS.find(([pattern]) => pattern.test(type ?? ''))?.[1] ?? 'replace';

// `undo`, `redo` or null.
export function historyKey(event) {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.isComposing) return null;
  if (letter(event) === 'z') return event.shiftKey ? 'redo' : 'undo';
  return letter(event) === 'y' && event.ctrlKey && !event.shiftKey ? 'redo' : null;
}

// Anywhere on the page: whether a key pauses.
export const isPause = event => !composes(event) && event.code === 'KeyP' && event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;

// In the text box: {verb, branch, ours} or null. `atEnd`: the caret stands at the end and nothing is selected. `ours`: the key
// does nothing else, though there may be no such branch.
export function textKey(event, atEnd) {
  if (composes(event)) return null;
  const {key, code, altKey, ctrlKey, metaKey, shiftKey} = event, digit = DIGIT.exec(code);
  if (digit && altKey && !ctrlKey && !metaKey) return {verb: shiftKey ? 'whole' : 'word', branch: digit[1] - 1, ours: true};
  if (key === 'ArrowRight' && ctrlKey && !altKey && !metaKey && !shiftKey) return atEnd ? {verb: 'word', branch: 0} : null;
  if (key === 'Tab' && plain(event)) return {verb: 'ghost'};
  return key === 'Escape' && plain(event) ? {verb: 'hide'} : null;
}

// Among the branches: {move: [lines down, choices along]}, {word: branch}, {ban: true} or null.
export function branchKey(event) {
  if (!plain(event) || event.isComposing) return null;
  if (Object.hasOwn(MOVES, event.key)) return {move: MOVES[event.key]};
  if (/^[1-9]$/.test(event.key)) return {word: Number(event.key) - 1};
  return event.key === 'Delete' ? {ban: true} : null;
}

// In a message: whether a key sends it.
export const isSend = event => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.isComposing;

// In the field of a name: `keep` what is written, `leave` it as it was, or null.
export const nameKey = event => (event.isComposing ? null : {Enter: 'keep', Escape: 'leave'}[event.key] ?? null);

const composes = event => event.isComposing || event.getModifierState('AltGraph');
