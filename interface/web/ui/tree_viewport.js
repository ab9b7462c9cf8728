// Pan and zoom of a drawing: it is scrolled by the browser, dragged by a mouse, and zoomed by its size.
/** @import {Size} from '../core/tree_scale.js' */
import {LARGEST, LEAST, LEGIBLE, READABLE, fittingScale} from '../core/tree_scale.js';
import {coverPlaceOf} from './click_cover.js';
import {find} from './elements.js';
import {markCropped} from './cropped.js';
import {wheelDistance} from './events.js';

const MOST = 4;
const STEP = 1.25;       // of a key or a button
const WHEEL = 0.0025;    // of the logarithm of the scale, a pixel of the wheel
const STILL = 5;         // pixels that a pointer may move and still click
const LOWEST = 0.8;      // of the area's height: a point above it is seen while the drawing's top is

export class TreeViewport {
  scale = 1;
  lacksRoom = false;   // whether the drawing was too small for the last `reveal`, and nobody has moved it since
  /** @type {Size | null} */
  #drawing = null;
  /** @type {number | undefined} */
  #height;
  #largest;
  #least;
  #onScale;
  #anchor;
  #readable;
  #chosen = false;    // whether a person has chosen the scale
  #fits = false;      // whether all is to be seen, however small
  /** @type {{x: number, y: number, left: number, top: number, moved: boolean} | null} */
  #drag = null;

  /**
   * @param {HTMLElement} scroll
   * @param {SVGElement} svg the drawing; another one may take its place
   * @param {{
   *   onResize?: () => void, onScale?: (scale: number) => void, height?: number, largest?: number, least?: number,
   *   readable?: () => number, anchor?: () => {x: number, y: number} | null,
   * }} [options]
   *   `onResize`: called when the area has another size; `onScale`: called when the drawing is shown, with its scale;
   *   `height`: pixels that a drawing is fitted into where the area is as high as the drawing; `largest`: the largest scale of
   *   a drawing that is fitted; `least`: the smallest at *Fit*; `readable`: the smallest until it is pressed; `anchor`: a point of
   *   the drawing that the buttons zoom around while it is seen; null if there is none
   */
  constructor(scroll, svg, {
    onResize = () => {}, onScale = () => {}, height, largest = LARGEST, least = LEAST, readable = () => READABLE, anchor = () => null,
  } = {}) {
    this.scroll = scroll;
    this.svg = svg;
    this.#onScale = onScale;
    this.#height = height;
    this.#largest = largest;
    this.#least = least;
    this.#readable = readable;
    this.#anchor = anchor;
    scroll.addEventListener('wheel', event => this.#onWheel(event), {passive: false});
    scroll.addEventListener('pointerdown', event => this.#onDown(event));
    scroll.addEventListener('pointermove', event => this.#onMove(event));
    for (const name of ['pointerdown', 'wheel', 'keydown']) scroll.addEventListener(name, () => { this.lacksRoom = false; }, {passive: true});
    for (const name of ['pointerup', 'pointercancel']) scroll.addEventListener(name, () => this.#onUp());
    new ResizeObserver(() => requestAnimationFrame(() => {
      this.#follow();
      markCropped(this.scroll);
      onResize();
    })).observe(scroll);
    // A drag ends with a click, which is none.
    scroll.addEventListener('click', event => {
      if (this.#drag?.moved) event.stopPropagation();
      this.#drag = null;
    }, {capture: true});
  }

  /** The size of the area. @returns {Size} */
  get area() { return {width: this.scroll.clientWidth, height: this.#height ?? this.scroll.clientHeight}; }

  /** Whether the drawing is too small for words: boxes are drawn instead. */
  get isTooSmall() { return this.scale < LEGIBLE; }

  /** Zoom by the buttons of a group. @param {HTMLElement} zooms */
  connect(zooms) {
    find(zooms, '.zoom-in').addEventListener('click', () => this.step('in'));
    find(zooms, '.zoom-out').addEventListener('click', () => this.step('out'));
    const button = find(zooms, '.fit'), placeOfButton = () => button.getBoundingClientRect().top;
    button.addEventListener('click', event => {
      const before = placeOfButton();
      this.fit();
      if (event.detail && placeOfButton() !== before) coverPlaceOf(event);
    });
  }

  /**
   * Take the size of a drawing. Its scale stays as a person has chosen it; else it is as large as all of it fits, but readable.
   * @param {Size} drawing
   */
  resize(drawing) {
    if (drawing.width !== this.#drawing?.width || drawing.height !== this.#drawing.height) this.scroll.style.minHeight = '';
    this.#drawing = drawing;
    this.#follow();
    this.#apply();
  }

  /** Show all of the drawing, as far as the least scale allows, also of what it becomes; scroll the page so that it is in the window. */
  fit() {
    this.#keepHeight();
    this.#fits = true;
    this.#chosen = false;
    this.#follow();
    this.svg.scrollIntoView({block: 'nearest'});
  }

  /** An area that is as high as its drawing stays at least as high at another scale: what stands below it is not moved up. */
  #keepHeight() { if (this.#height) this.scroll.style.minHeight = `${this.scroll.getBoundingClientRect().height}px`; }

  /** The drawing shows other things: a scale that was chosen for the one before counts no longer. *Fit* still does. */
  release() { this.#chosen = false; }

  /** The drawing is that of another text: it begins readable again. */
  reset() {
    this.#chosen = false;
    this.#fits = false;
  }

  /**
   * From a drawing that is too small for words, one step in leads to letters that can be read. The anchor stays where it is, if it is seen;
   * else the middle of what is seen of the drawing, or its beginning if that is seen.
   * @param {'in' | 'out'} direction
   */
  step(direction) {
    const {clientWidth, clientHeight, scrollLeft, scrollTop} = this.scroll, larger = this.isTooSmall ? READABLE / this.scale : STEP;
    const height = (this.#drawing?.height ?? 0) * this.scale, anchor = this.#anchor(), factor = direction === 'in' ? larger : 1 / STEP;
    const x = anchor ? anchor.x * this.scale - scrollLeft : -1, y = anchor ? anchor.y * this.scale - scrollTop : -1;
    if (x >= 0 && x < clientWidth && y >= 0 && y < clientHeight) this.#zoom(factor, x, y);
    else this.#zoom(factor, scrollLeft ? clientWidth / 2 : 0, Math.min(clientHeight, height - scrollTop) / 2);
  }

  /**
   * Scroll so that a point of the drawing is a third from the left, and at the top of the drawing if the point is seen there;
   * otherwise in the middle.
   * @param {number} x
   * @param {number} y
   */
  reveal(x, y) {
    const {clientWidth, clientHeight} = this.scroll, down = y * this.scale, left = x * this.scale - clientWidth / 3;
    this.scroll.scrollTo(left, down < LOWEST * clientHeight ? 0 : down - clientHeight / 2);
    this.lacksRoom = this.scroll.scrollLeft < Math.floor(left);
  }

  /** Fit the drawing into its area, unless a person has chosen a scale. */
  #follow() {
    const {area} = this;
    if (this.#chosen || !this.#drawing || !area.width) return;
    this.scale = fittingScale(this.#drawing, area, this.#fits ? this.#least : this.#readable(), this.#largest);
    this.#apply();
  }

  #apply() {
    const {width, height} = this.#drawing ?? {width: 1, height: 1};
    this.svg.style.width = `${width * this.scale}px`;
    this.svg.style.height = `${height * this.scale}px`;
    this.svg.style.setProperty('--scale', String(this.scale));
    this.scroll.classList.toggle('small', this.isTooSmall);
    this.scroll.classList.toggle('smallest', this.scale <= this.#least);
    this.#onScale(this.scale);
    markCropped(this.scroll);
  }

  /**
   * Zoom around a point of the scrolled area.
   * @param {number} factor
   * @param {number} x
   * @param {number} y
   */
  #zoom(factor, x, y) {
    const scale = Math.min(MOST, Math.max(LEAST, this.scale * factor)), ratio = scale / this.scale;
    this.#keepHeight();
    const left = (this.scroll.scrollLeft + x) * ratio - x, top = (this.scroll.scrollTop + y) * ratio - y;
    this.#chosen = true;
    this.#fits = false;
    this.scale = scale;
    this.#apply();
    this.scroll.scrollTo(left, top);
  }

  /** @param {WheelEvent} event */
  #onWheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const {left, top} = this.scroll.getBoundingClientRect(), delta = wheelDistance(event);
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
