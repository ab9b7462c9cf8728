// Presses on the branches by mouse, pen, finger or key. None of them takes the focus or the caret from a text box.
/** @import {BranchView} from './branch_view.js' */
/** @import {Choice} from '../web/core/types.d.ts' */
import {CHOICES, targetOf} from './targets.js';
import {choiceAt} from '../web/core/branch_view_state.js';
import {closestTo, isStill, isSwipe} from '../web/ui/events.js';
import {DoubleClicks} from '../web/ui/double_clicks.js';

/** @typedef {{button: HTMLElement, x: number, y: number, pointer: string, time: number, choice: Choice | null, isSwipe: boolean}} Press */

/** @param {BranchView} view */
export function listenToClicks(view) {
  const {root, rows, rest, note} = view, doubleClicks = new DoubleClicks();
  /** @type {Press | null} */
  let pressed = null;   // the button under the pointer when it went down, and what it meant then
  root.addEventListener('pointerdown', event => {
    const button = closestTo(event, CHOICES), {clientX: x, clientY: y, pointerType: pointer, timeStamp: time} = event;
    pressed = button && {button, x, y, pointer, time, choice: choiceAt(view.state, targetOf(button)), isSwipe: false};
  });
  for (const name of /** @type {const} */ (['pointermove', 'pointerup']))
    root.addEventListener(name, event => { if (pressed && isSwipe(pressed, event)) pressed.isSwipe = true; });
  for (const part of [rows, rest, note]) part.addEventListener('mousedown', event => event.preventDefault());
  root.addEventListener('click', event => {
    const button = closestTo(event, 'button'), sign = signAt(event), press = pressed;
    pressed = null;
    if (event.detail && doubleClicks.isSecond(event, press?.time)) return;
    if (sign) view.scrolling.readOn(sign);
    else if (button?.matches('.more')) view.toggleOthers(event);
    else if (button?.matches('.ban')) view.banPointed();
    else if (button?.matches('.change')) view.edit(view.state.pointed);
    else if (accept(view, button, press, event)) doubleClicks.begin(event);
  });
}

/**
 * The sign of a row that reads on, if a click is within its edges. On a touch screen the click is one of what is below the sign.
 * @param {MouseEvent} event
 */
function signAt(event) {
  const sign = closestTo(event, '.branch')?.querySelector('.onward'), {left, right} = sign?.getBoundingClientRect() ?? {left: 0, right: 0};
  return sign instanceof HTMLElement && event.clientX > left && event.clientX < right ? sign : null;
}

/**
 * Accept what was pressed, even if a paint has put something else there before the pointer went up. Returns whether it was accepted.
 * @type {(view: BranchView, button: HTMLElement | null, pressed: Press | null, event: MouseEvent) => boolean}
 */
function accept(view, button, pressed, event) {
  const byKeyboard = event.detail === 0;
  if (!pressed || byKeyboard) return button !== null && view.accept(choiceAt(view.state, targetOf(button)), {byKeyboard, pointer: null});
  const isMeant = !pressed.isSwipe && (isStill(pressed, event) || button === pressed.button);
  return isMeant && view.accept(pressed.choice, {byKeyboard, pointer: pressed.pointer || null});
}
