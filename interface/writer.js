// The writer's hand: what stands before the caret is asked about; what is chosen among branches is written there.
// The server never writes into the text box.
const box = () => document.querySelector('#document textarea');
const branches = () => document.getElementById('branches');
const before = () => box().value.slice(0, box().selectionStart);
const selected = () => box().selectionStart !== box().selectionEnd;
const CARET_SETTLES = 150;   // milliseconds

const texts = new Map();     // what stood before the caret, by revision
let revision = 0;
let accepted = [];           // the ids of what was chosen since the last request
let settling = 0;

// Ask for branches of what stands before the caret now, unless that is what was asked for last.
function look({again = false} = {}) {
  if (!box() || selected() || (!again && before() === (texts.get(revision) ?? ''))) return;
  revision += 1;
  texts.set(revision, before());
  for (const older of texts.keys()) if (older < Number(branches().dataset.revision)) texts.delete(older);
  branches().dispatchEvent(new CustomEvent('expect', {detail: {revision}}));
  trigger('note');
  trigger('ask');
}

// Read by the listeners when a request leaves, which may be later than it was made: the newest counts.
window.lookahead = {
  ...window.lookahead,
  revision: () => revision,
  asked: () => {
    const asked = {revision, text: texts.get(revision) ?? '', accepted};
    accepted = [];
    return asked;
  },
  lookAgain: () => look({again: true}),
};

function accept(event) {
  const {revision: seen, text, ids, byKeyboard} = event.detail, focused = document.activeElement;
  if (selected() || texts.get(seen) !== before()) return event.preventDefault();
  accepted = ids;
  write(text);
  if (byKeyboard) focused.focus({preventScroll: true});
}

function write(text) {
  box().focus({preventScroll: true});
  if (document.execCommand('insertText', false, text)) return;
  box().setRangeText(text, box().selectionStart, box().selectionEnd, 'end');
  box().dispatchEvent(new Event('input', {bubbles: true}));
}

document.addEventListener('input', event => { if (event.target === box()) look(); });
document.addEventListener('selectionchange', () => {
  clearTimeout(settling);
  if (document.activeElement === box()) settling = setTimeout(look, CARET_SETTLES);
});
document.addEventListener('accept', event => { if (event.target === branches()) accept(event); });
document.addEventListener('lookahead:ready', () => look({again: revision > 0}));
if (box()) {
  box().dir = 'auto';
  look();
}
