// Custom events, and where events come from.

/**
 * Call a listener with the detail of each custom event of this name.
 * @param {EventTarget} target
 * @param {string} name
 * @param {(detail: any) => void} listener
 */
export const onDetail = (target, name, listener) =>
  target.addEventListener(name, event => listener(/** @type {CustomEvent} */ (event).detail ?? {}));

/**
 * Dispatch a custom event. Returns false if a listener cancelled it.
 * @param {EventTarget} target
 * @param {string} name
 * @param {unknown} [detail]
 * @param {EventInit} [options]
 */
export const dispatch = (target, name, detail, options = {}) => target.dispatchEvent(new CustomEvent(name, {detail, ...options}));

/**
 * The element that an event came from, or its nearest ancestor that matches a selector; null if there is none.
 * @param {Event} event
 * @param {string} selector
 * @returns {HTMLElement | null}
 */
export const closestTo = (event, selector) => /** @type {Element} */ (event.target).closest(selector);

const STILL = 8;   // pixels that a pointer may move while it is down
const TOUCH_SLOP = 8;   // pixels that a finger may move in a tap

/**
 * Whether a pointer has hardly moved since it went down: it meant what was there then, whatever a paint has put there since.
 * @param {{x: number, y: number}} pressed where it went down
 * @param {MouseEvent} event
 */
export const isStill = (pressed, event) => distance(pressed, event) <= STILL;

/**
 * Whether a finger has moved too far for a tap. A click cannot tell: browsers report the place where the finger went down, and call
 * up to 15 pixels a tap.
 * @param {{x: number, y: number}} pressed where it went down
 * @param {PointerEvent} event
 */
export const isSwipe = (pressed, event) => event.pointerType === 'touch' && distance(pressed, event) > TOUCH_SLOP;

/** @type {(pressed: {x: number, y: number}, event: MouseEvent) => number} */
const distance = (pressed, event) => Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y);

/**
 * Call a function once, at the next click anywhere on the page except inside certain elements.
 * @param {() => void} run
 * @param {string} [selector] clicks inside elements that match this CSS selector are ignored; by default none are
 */
export function atNextClick(run, selector = ':not(*)') {
  const onClick = (/** @type {MouseEvent} */ event) => {
    if (closestTo(event, selector)) return;
    document.removeEventListener('click', onClick);
    run();
  };
  document.addEventListener('click', onClick);
}

const LINE = 16;   // pixels of a line, for wheels that count lines

/** How far a wheel scrolls down, in pixels. @param {WheelEvent} event */
export const wheelDistance = ({deltaY, deltaMode}) => deltaY * (deltaMode ? LINE : 1);

/** Milliseconds within which also a busy computer paints. */
export const SLOWEST_PAINT = 2000;

/**
 * Call a function once what was changed is painted, or after `latest` milliseconds: a page in the background paints nothing.
 * @param {() => void} run
 * @param {number} [latest]
 */
export function afterPaint(run, latest = 100) {
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    run();
  };
  requestAnimationFrame(() => setTimeout(once, 0));
  setTimeout(once, latest);
}
