// Which button is pointed at or has the focus. A button that the mouse only passes on its way to somewhere else does not count: the
// buttons that change or ban a token stand below the rows, or above them in a low window.
/** @import {Target} from '../web/core/branch_view_state.js' */
import {CHOICES, targetOf} from './targets.js';
import {SteepMoves} from '../web/ui/steep_moves.js';
import {atNextClick, closestTo} from '../web/ui/events.js';
import {find, setAttribute} from '../web/ui/elements.js';

const PASSING = 160;   // milliseconds on a button of another row, or on one that is passed on a way down, before it counts
const LEAVING = 300;   // milliseconds beside all buttons before nothing is pointed at

export class Pointing {
  /** @type {HTMLElement | null} */
  button = null;
  isHeld = false;   // whether a finger that rested points at the button
  #mouse = '';      // the last position of the mouse in the window
  #steepMoves = new SteepMoves();
  #restsAt = '';    // its position when the rows were replaced below it, or a key moved the focus; until it moves it points at nothing
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #restart = () => {};   // lets the running timer begin again

  /**
   * @param {HTMLElement} root
   * @param {(target: Target | null) => void} onChange called when something else is pointed at, or nothing
   */
  constructor(root, onChange) {
    this.root = root;
    this.onChange = onChange;
    root.addEventListener('pointerover', event => this.#onOver(event));
    root.addEventListener('pointermove', event => this.#onMove(event));
    root.addEventListener('pointerleave', event => { if (event.pointerType !== 'touch') this.#aim(null, LEAVING); });
    // A long press selects a token without accepting it, until another place is tapped or the row is scrolled.
    root.addEventListener('hold', event => {
      this.#aim(closestTo(event, CHOICES), 0, true);
      atNextClick(() => this.endHold(), '.note');
    });
    root.addEventListener('scroll', event => {
      if (!closestTo(event, '.note')) this.endHold();
    }, {capture: true, passive: true});
    root.addEventListener('focusin', event => this.#onFocus(/** @type {HTMLElement} */ (event.target)));
    root.addEventListener('focusout', event => { if (event.target === this.button) this.#aim(null, 0); });
    for (const name of ['focusin', 'focusout']) root.addEventListener(name, () => this.#markElsewhere());
  }

  /** Tell style sheets whether another button is pointed at than the one with the focus. */
  #markElsewhere() { setAttribute(this.root, 'data-points-elsewhere', this.button !== null && this.button !== document.activeElement); }

  /** The button, unless a paint has removed or hidden it. */
  get #present() { return this.button?.isConnected && !this.button.closest('[hidden]') ? this.button : null; }

  /** A finger that rested points at nothing any more. */
  endHold() { if (this.isHeld) this.#aim(null, 0); }

  /** Other rows were drawn: what is now below the mouse or the finger was not pointed at. */
  rowsReplaced() {
    this.isHeld = false;
    this.#rest(this.#mouse);
    if (this.button && this.button !== document.activeElement) this.#aim(null, 0);
  }

  /** @param {PointerEvent} event */
  #onMove(event) {
    const hasRested = this.#restsAt !== '';
    // On its way to the note, however slow, the mouse passes: a row counts where it rests.
    if (this.#timer !== undefined && this.#isOnItsWay(event)) this.#restart();
    this.#mouse = positionOf(event);
    this.#steepMoves.moved(event);
    if (this.#mouse === this.#restsAt) return;
    this.#rest('');
    if (hasRested) this.#onOver(event);
  }

  /** Whether the mouse may be on its way to the note. @param {PointerEvent} event */
  #isOnItsWay(event) { return this.#steepMoves.includes(event, {isUp: find(this.root, '.note').getBoundingClientRect().bottom < event.clientY}); }

  /** A mouse that rests marks no row: only one is marked. @param {string} position where it rests; empty if it moves */
  #rest(position) {
    this.#restsAt = position;
    setAttribute(this.root, 'data-mouse-rests', position !== '');
  }

  /** @param {PointerEvent} event */
  #onOver(event) {
    if (event.pointerType === 'touch' || positionOf(event) === this.#restsAt) return;
    if (closestTo(event, '.note')) {
      this.#stopTimer();
      return;
    }
    const button = closestTo(event, CHOICES), present = this.#present;
    const near = button && !button.closest('.others') && (!present || button.parentElement === present.parentElement);
    const passes = !near || (present && this.#isOnItsWay(event));
    this.#aim(button, !passes ? 0 : button ? PASSING : LEAVING);
  }

  /** @param {HTMLElement | null} button @param {number} delay @param {boolean} [isHeld] */
  #aim(button, delay, isHeld = false) {
    this.#stopTimer();
    if (button === this.button && isHeld === this.isHeld) return;
    if (!delay) {
      this.#settle(button, isHeld);
      return;
    }
    this.#restart = () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#settle(button, isHeld), delay);
    };
    this.#restart();
  }

  #stopTimer() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** @param {HTMLElement | null} button @param {boolean} isHeld */
  #settle(button, isHeld) {
    this.#timer = undefined;
    this.button?.removeAttribute('data-pointed');
    this.button = button;
    button?.setAttribute('data-pointed', '');
    this.isHeld = isHeld;
    this.#markElsewhere();
    this.onChange(targetOf(button));
  }

  /** @param {HTMLElement} target */
  #onFocus(target) {
    if (!target.matches(CHOICES) || !target.matches(':focus-visible')) return;
    this.#rest(this.#mouse);
    this.#aim(target, 0);
  }
}

/** The position of a mouse in the window; empty for a finger. @param {PointerEvent} event */
const positionOf = ({pointerType, clientX, clientY}) => (pointerType === 'touch' ? '' : `${clientX} ${clientY}`);
