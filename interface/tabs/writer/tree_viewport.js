// Pan and zoom of a drawing: it is scrolled by the browser, dragged by a mouse, and zoomed by its size.
const LEAST = 0.1;
const MOST = 4;
const STEP = 1.25;       // of a key or a button
const WHEEL = 0.0025;    // of the logarithm of the scale, a pixel of the wheel
const READABLE = 0.8;    // the least scale at which a drawing is shown at first
const STILL = 5;         // pixels that a pointer may move and still click
const LINE = 16;         // pixels of a line, for wheels that count lines

export class TreeViewport {
  scale = 1;
  #width = 1;
  #height = 1;
  #chosen = false;    // whether a person has chosen the scale
  /** @type {{x: number, y: number, left: number, top: number, moved: boolean} | null} */
  #drag = null;

  /**
   * @param {HTMLElement} scroll
   * @param {SVGElement} svg
   */
  constructor(scroll, svg) {
    this.scroll = scroll;
    this.svg = svg;
    scroll.addEventListener('wheel', event => this.#onWheel(event), {passive: false});
    scroll.addEventListener('pointerdown', event => this.#onDown(event));
    scroll.addEventListener('pointermove', event => this.#onMove(event));
    for (const name of ['pointerup', 'pointercancel']) scroll.addEventListener(name, () => this.#onUp());
    // A drag ends with a click, which is none.
    scroll.addEventListener('click', event => {
      if (this.#drag?.moved) event.stopPropagation();
      this.#drag = null;
    }, {capture: true});
  }

  /**
   * Take the size of a drawing. Its scale stays as a person has chosen it; else it is as large as all of it fits, within
   * what can be read.
   * @param {number} width
   * @param {number} height
   */
  resize(width, height) {
    [this.#width, this.#height] = [width, height];
    if (!this.#chosen) this.scale = Math.min(1, Math.max(READABLE, this.#fittingScale));
    this.#apply();
  }

  /** Show all of the drawing. */
  fit() {
    this.#chosen = true;
    this.scale = Math.min(1, Math.max(LEAST, this.#fittingScale));
    this.#apply();
  }

  /** @param {'in' | 'out'} direction */
  step(direction) {
    const {clientWidth, clientHeight} = this.scroll;
    this.#zoom(direction === 'in' ? STEP : 1 / STEP, clientWidth / 2, clientHeight / 2);
  }

  /**
   * Scroll so that a point of the drawing is a third from the left and in the middle.
   * @param {number} x
   * @param {number} y
   */
  centre(x, y) {
    const {clientWidth, clientHeight} = this.scroll;
    this.scroll.scrollTo(x * this.scale - clientWidth / 3, y * this.scale - clientHeight / 2);
  }

  get #fittingScale() { return Math.min(this.scroll.clientWidth / this.#width, this.scroll.clientHeight / this.#height); }

  #apply() {
    this.svg.style.width = `${this.#width * this.scale}px`;
    this.svg.style.height = `${this.#height * this.scale}px`;
  }

  /**
   * Zoom around a point of the scrolled area.
   * @param {number} factor
   * @param {number} x
   * @param {number} y
   */
  #zoom(factor, x, y) {
    const scale = Math.min(MOST, Math.max(LEAST, this.scale * factor)), ratio = scale / this.scale;
    const left = (this.scroll.scrollLeft + x) * ratio - x, top = (this.scroll.scrollTop + y) * ratio - y;
    this.#chosen = true;
    this.scale = scale;
    this.#apply();
    this.scroll.scrollTo(left, top);
  }

  /** @param {WheelEvent} event */
  #onWheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const {left, top} = this.scroll.getBoundingClientRect(), delta = event.deltaY * (event.deltaMode ? LINE : 1);
    this.#zoom(Math.exp(-delta * WHEEL), event.clientX - left, event.clientY - top);
  }

  /** @param {PointerEvent} event */
  #onDown({pointerType, button, clientX: x, clientY: y}) {
    // Fingers scroll by the browser's own means.
    if (pointerType === 'touch' || button) return;
    this.#drag = {x, y, left: this.scroll.scrollLeft, top: this.scroll.scrollTop, moved: false};
  }

  /** @param {PointerEvent} event */
  #onMove({pointerId, clientX, clientY, buttons}) {
    const drag = this.#drag;
    if (!drag || !buttons) return;
    const along = clientX - drag.x, down = clientY - drag.y;
    if (!drag.moved && Math.hypot(along, down) <= STILL) return;
    if (!drag.moved) this.scroll.setPointerCapture(pointerId);
    drag.moved = true;
    this.scroll.dataset.dragged = '';
    this.scroll.scrollTo(drag.left - along, drag.top - down);
  }

  #onUp() { delete this.scroll.dataset.dragged; }
}
