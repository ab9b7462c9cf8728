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
