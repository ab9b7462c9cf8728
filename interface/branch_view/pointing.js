// Which button is pointed at or has the focus. Passing over other rows on the way to somewhere else does not count.
/** @import {Target} from '../web/core/branch_view_state.js' */
import {CHOICES, targetOf} from './targets.js';
import {closestTo} from '../web/ui/events.js';

const PASSING = 160;   // milliseconds on a button of another row before it counts
const LEAVING = 300;   // milliseconds beside all buttons before nothing is pointed at

export class Pointing {
  /** @type {HTMLElement | null} */
  button = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {HTMLElement} root
   * @param {(target: Target | null) => void} onChange called when something else is pointed at, or nothing
   */
  constructor(root, onChange) {
    this.onChange = onChange;
    root.addEventListener('pointerover', event => this.#onOver(event));
    root.addEventListener('pointerleave', event => { if (event.pointerType !== 'touch') this.#aim(null, LEAVING); });
    // A finger that rests points without choosing.
    root.addEventListener('hold', event => this.#aim(closestTo(event, CHOICES), 0));
    root.addEventListener('focusin', event => this.#onFocus(/** @type {HTMLElement} */ (event.target)));
    root.addEventListener('focusout', event => { if (event.target === this.button) this.#aim(null, 0); });
  }

  /** The button, unless a paint has removed or hidden it. */
  get #present() { return this.button?.isConnected && !this.button.closest('[hidden]') ? this.button : null; }

  /** @param {PointerEvent} event */
  #onOver(event) {
    if (event.pointerType === 'touch') return;
    if (closestTo(event, '.note')) {
      clearTimeout(this.#timer);
      return;
    }
    const button = closestTo(event, CHOICES), present = this.#present;
    const near = button && !button.closest('.others') && (!present || button.parentElement === present.parentElement);
    this.#aim(button, near ? 0 : button ? PASSING : LEAVING);
  }

  /** @param {HTMLElement | null} button @param {number} delay */
  #aim(button, delay) {
    clearTimeout(this.#timer);
    if (button === this.button) return;
    if (delay) this.#timer = setTimeout(() => this.#settle(button), delay);
    else this.#settle(button);
  }

  /** @param {HTMLElement | null} button */
  #settle(button) {
    this.button = button;
    this.onChange(targetOf(button));
  }

  /** @param {HTMLElement} target */
  #onFocus(target) {
    if (target.matches(CHOICES) && target.matches(':focus-visible')) this.#aim(target, 0);
  }
}
