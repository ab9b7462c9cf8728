// Fingers that rest on a button. Not every browser opens a context menu then, so the time is measured too.
import {CHOICES} from './targets.js';
import {closestTo, dispatch, isStill} from '../web/ui/events.js';

const HOLD = 500;   // milliseconds

/**
 * Dispatch `hold` on a button on which a finger rests.
 * @param {HTMLElement} root
 */
export function listenToHolds(root) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let start = {x: 0, y: 0, time: 0};
  /** @type {HTMLElement | null} */
  let waiting = null;   // the button under a finger that does not rest long enough yet
  const end = () => {
    clearTimeout(timer);
    waiting = null;
  };
  /** @param {HTMLElement} button */
  const hold = button => {
    end();
    if (button.isConnected) dispatch(button, 'hold', null, {bubbles: true});
  };
  root.addEventListener('pointerdown', event => {
    end();
    start = {x: event.clientX, y: event.clientY, time: event.timeStamp};
    const button = waiting = event.pointerType === 'touch' ? closestTo(event, CHOICES) : null;
    if (button) timer = setTimeout(() => hold(button), HOLD);
  });
  root.addEventListener('pointermove', event => { if (!isStill(start, event)) end(); });
  root.addEventListener('pointercancel', end);
  root.addEventListener('pointerup', event => {
    // On a busy page the timer is late.
    if (waiting && event.timeStamp - start.time >= HOLD) hold(waiting);
    end();
  });
  root.addEventListener('contextmenu', event => {
    const button = /** @type {PointerEvent} */ (event).pointerType === 'touch' ? closestTo(event, CHOICES) : null;
    if (!button) return;
    event.preventDefault();
    hold(button);
  });
}
