// Keys of the text box that accept branches, and the one that pauses: never in a tab that is not seen.
import {isPause, textKey} from '../core/shortcuts.js';

// `does` says what to do: word(branch), whole(branch), ghost() and hide() (both tell whether there was any), pause().
export function listenToTextKeys({box, draft, does}) {
  document.addEventListener('keydown', event => {
    if (draft.composing) return;
    const pauses = isPause(event) && box.checkVisibility() && !event.target.closest('dialog, .told');
    const done = pauses ? does.pause() : event.target === box && inBox(event, draft, does);
    if (done) event.preventDefault();
  }, {capture: true});
}

// Whether the key was ours.
function inBox(event, draft, does) {
  const found = textKey(event, !draft.selected && draft.caret === draft.text.length);
  if (!found) return false;
  const done = does[found.verb](found.branch);
  return found.ours || done;
}
