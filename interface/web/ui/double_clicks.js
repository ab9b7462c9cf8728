// Double clicks and double taps on tokens: the second click would insert what the first one has put in the same place.

const TIME = 500;       // milliseconds from the first tap to the second one, at most
const DISTANCE = 24;    // pixels between them, at most: a finger does not meet one point twice

export class DoubleClicks {
  /** @type {{x: number, y: number, time: number} | null} */
  #first = null;

  /** Remember a click that has inserted something. @param {MouseEvent} event */
  begin({clientX: x, clientY: y, timeStamp: time}) { this.#first = {x, y, time}; }

  /**
   * Whether a click is the second one of a double click. Browsers count the clicks of a mouse, with the time that the person has
   * chosen; not all of them count taps.
   * @param {MouseEvent} event
   */
  isSecond(event) {
    const {clientX, clientY, timeStamp, detail} = event, first = this.#first;
    if (!first || Math.hypot(clientX - first.x, clientY - first.y) > DISTANCE) return false;
    const isMouse = /** @type {PointerEvent} */ (event).pointerType === 'mouse';
    return detail > 1 || (!isMouse && timeStamp - first.time <= TIME);
  }
}
