// Whether a mouse is on its way down: to buttons below rows or a drawing, past others that it does not mean.
const STEEP = 3;   // pixels that a way down may go to the side for each pixel down

export class WayDown {
  #last = {x: 0, y: 0};   // the last position of the mouse in the window

  /** Whether the mouse has moved down since its last move, and not by far more to the side. @param {MouseEvent} event */
  includes({clientX, clientY}) {
    const down = clientY - this.#last.y;
    return down > 0 && Math.abs(clientX - this.#last.x) <= STEEP * down;
  }

  /** Take the position of a move, after `includes` was asked. @param {MouseEvent} event */
  moved({clientX, clientY}) { this.#last = {x: clientX, y: clientY}; }
}
