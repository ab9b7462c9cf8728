// Presses on the branches, by mouse, pen, finger or key. None of them takes focus or the caret from a text box.
const CHOICES = 'button[data-token], button[data-rest]';
const STILL = 8;   // pixels that a pointer may move while it is down

export function listenToPresses(branches) {
  const {root, rows, rest, note} = branches;
  let pressed = null;   // what lay under the pointer when it went down, and what it meant then
  root.addEventListener('pointerdown', event => {
    const button = event.target.closest(CHOICES), {clientX: x, clientY: y, pointerType: pointer} = event;
    pressed = button && {button, x, y, pointer, choice: branches.meaningOf(button)};
  });
  // A finger that rests asks about a token, and does not choose it.
  root.addEventListener('contextmenu', event => { if (pressed && event.pointerType === 'touch') pressed.choice = null; });
  for (const part of [rows, rest, note]) part.addEventListener('mousedown', event => event.preventDefault());
  root.addEventListener('click', event => {
    const button = event.target.closest('button');
    if (button?.matches('.more')) branches.toggleRest();
    else if (button?.matches('.ban')) branches.ban(branches.pointing.current);
    else choose(branches, button, pressed, event);
    pressed = null;
  });
}

// What was pressed is chosen, even if a paint has put something else there before the pointer went up.
function choose(branches, button, pressed, event) {
  const byKeyboard = event.detail === 0;
  if (pressed && !byKeyboard) {
    const still = Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) <= STILL;
    if (still || button === pressed.button) branches.accept(pressed.choice, {byKeyboard, pointer: pressed.pointer || null});
  } else if (button) {
    branches.accept(branches.meaningOf(button), {byKeyboard, pointer: null});
  }
}
