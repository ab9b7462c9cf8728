// Whether a mouse moves steeply down or up: it may be on its way to buttons below or above rows or a drawing, past others that it does
// not mean.
const STEEP = 3;   // pixels that a steep move may go to the side for each pixel down or up

export class SteepMoves {
  #last = {x: 0, y: 0};   // position of the mouse in the window at its last move, in pixels

  /**
   * Whether the mouse has moved down since its last move, or up, and not by far more to the side.
   * @param {MouseEvent} event
   * @param {{isUp?: boolean}} [options]
   */
  includes({clientX, clientY}, {isUp = false} = {}) {
    const distance = (clientY - this.#last.y) * (isUp ? -1 : 1);
    return distance > 0 && Math.abs(clientX - this.#last.x) <= STEEP * distance;
  }

  /** Take the position of a move, after `includes` was asked. @param {MouseEvent} event */
  moved({clientX, clientY}) { this.#last = {x: clientX, y: clientY}; }
}
