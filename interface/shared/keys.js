// Keys of the text box that accept branches, and the one that pauses. By physical key; never while an input method
// composes, never with AltGr, which types signs, and never in a tab that is not seen.
const DIGIT = /^Digit([1-9])$/;

// `does` says what to do: word(branch), whole(branch), ghost() and hide() (both tell whether there was any), pause().
export function listenToKeys({box, draft, does}) {
  document.addEventListener('keydown', event => {
    if (event.isComposing || draft.composing || event.getModifierState('AltGraph')) return;
    const pauses = isPause(event) && box.checkVisibility() && !event.target.closest('dialog, .told');
    const done = pauses ? does.pause() : event.target === box && inBox(event, draft, does);
    if (done) event.preventDefault();
  }, {capture: true});
}

const plain = event => !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;

const isPause = ({code, altKey, ctrlKey, metaKey, shiftKey}) => code === 'KeyP' && altKey && !ctrlKey && !metaKey && !shiftKey;

// Whether the key was ours.
function inBox(event, draft, does) {
  const digit = DIGIT.exec(event.code);
  if (digit && event.altKey && !event.ctrlKey && !event.metaKey) {
    (event.shiftKey ? does.whole : does.word)(digit[1] - 1);
    return true;
  }
  if (event.key === 'ArrowRight' && event.ctrlKey && !event.altKey && !event.metaKey && !event.shiftKey)
    return !draft.selected && draft.caret === draft.text.length && does.word(0);
  if (event.key === 'Tab' && plain(event)) return does.ghost();
  return event.key === 'Escape' && plain(event) && does.hide();
}
