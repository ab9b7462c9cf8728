// Fingers that rest on an element. Not every browser opens a context menu then, so the time is measured too.
import {closestTo, dispatch, isStill} from './events.js';

const HOLD = 500;   // milliseconds

/**
 * Dispatch `hold` on an element on which a finger rests. The click with which some browsers end that is none.
 * @param {GlobalEventHandlers} root
 * @param {string} selector of the elements inside it that can be held
 */
export function listenToHolds(root, selector) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let start = {x: 0, y: 0, time: 0};
  /** @type {Element | null} */
  let waiting = null;   // the element under a finger that does not rest long enough yet
  let hasHeld = false;  // whether the last press was a hold
  const end = () => {
    clearTimeout(timer);
    waiting = null;
  };
  /** @param {Element} element */
  const hold = element => {
    end();
    hasHeld = true;
    if (element.isConnected) dispatch(element, 'hold', null, {bubbles: true});
  };
  /** @param {PointerEvent} event */
  const heldBy = event => (event.pointerType === 'touch' ? closestTo(event, selector) : null);
  root.addEventListener('pointerdown', event => {
    end();
    hasHeld = false;
    start = {x: event.clientX, y: event.clientY, time: event.timeStamp};
    const element = waiting = heldBy(event);
    if (element) timer = setTimeout(() => hold(element), HOLD);
  });
  root.addEventListener('pointermove', event => { if (!isStill(start, event)) end(); });
  root.addEventListener('pointercancel', end);
  root.addEventListener('pointerup', event => {
    // On a busy page the timer is late.
    if (waiting && event.timeStamp - start.time >= HOLD) hold(waiting);
    end();
  });
  // By keyboard `detail` is 0.
  root.addEventListener('click', event => { if (hasHeld && event.detail) event.stopPropagation(); }, {capture: true});
  root.addEventListener('contextmenu', event => {
    const element = heldBy(/** @type {PointerEvent} */ (event));
    if (!element) return;
    event.preventDefault();
    hold(element);
  });
}
