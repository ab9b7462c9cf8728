// Double clicks and double taps on tokens: the second click would insert what the first one has put in the same place.

/** Milliseconds from the first click to the second press, at most: who reads what the first one has put there takes longer. */
const DOUBLE_CLICK = 300;
const DISTANCE = 24;    // pixels between them, at most: a finger does not meet one point twice

export class DoubleClicks {
  /** @type {{x: number, y: number, time: number} | null} */
  #first = null;

  /** Remember a click that has inserted something. @param {MouseEvent} event */
  begin({clientX: x, clientY: y, timeStamp: time}) { this.#first = {x, y, time}; }

  /**
   * Whether a click is the second one of a double click. Browsers count the clicks of a mouse; not all of them count taps.
   * @param {MouseEvent} event
   * @param {number} [pressed] when its press began: a finger may rest before it goes up
   */
  isSecond(event, pressed = event.timeStamp) {
    const {clientX, clientY, detail} = event, first = this.#first;
    const isCounted = /** @type {PointerEvent} */ (event).pointerType === 'mouse';
    if (!first || (isCounted && detail < 2)) return false;
    return pressed - first.time <= DOUBLE_CLICK && Math.hypot(clientX - first.x, clientY - first.y) <= DISTANCE;
  }
}
