// Writing into a text box by script.
const LONG = 5000;   // characters: beyond that the browser's own way is slow

const focused = box => box.getRootNode().activeElement === box;

function asTyped(box, {start, removed, inserted}) {
  box.setSelectionRange(start, start + removed.length);
  return inserted ? document.execCommand('insertText', false, inserted) : document.execCommand('delete');
}

// Replace one stretch. In a box that has the focus it is done as if it were typed, so that the browser's own menu keeps
// offering to undo; a box without it stays without it, so that no keyboard comes up.
export function replaceInTextBox(box, change) {
  const {start, removed, inserted} = change;
  if (!removed && !inserted) return;
  if (focused(box) && removed.length + inserted.length <= LONG && asTyped(box, change)) return;
  box.setRangeText(inserted, start, start + removed.length, 'end');
}
