// Drawings of the Lab: the text of an SVG file, shown on the page.
import {READABLE, fittingScale} from '../../web/core/tree_scale.js';

/**
 * Show a drawing in an element, in place of the one before.
 * @param {HTMLElement} element
 * @param {string} text of an SVG file
 * @param {number} [height] pixels that it is made smaller for, unless its letters become too small; its own size without it
 */
export function showDrawing(element, text, height) {
  const parsed = new DOMParser().parseFromString(text, 'image/svg+xml');
  const svg = /** @type {SVGSVGElement} */ (/** @type {unknown} */ (document.importNode(parsed.documentElement, true)));
  if (height !== undefined) {
    const size = {width: Number(svg.getAttribute('width')), height: Number(svg.getAttribute('height'))};
    const scale = Math.min(1, fittingScale(size, {width: element.clientWidth, height}, READABLE));
    svg.setAttribute('width', String(size.width * scale));
    svg.setAttribute('height', String(size.height * scale));
  }
  element.replaceChildren(svg);
}

/**
 * Write the sentence on a token into the note below a drawing, or the one that says how to choose a token.
 * @param {HTMLElement} note
 * @param {string} sentence
 * @param {boolean} pointed whether it is of a token that is pointed at or chosen: then the note stays in sight while the drawing does
 */
export function showPointed(note, sentence, pointed) {
  note.textContent = sentence;
  note.classList.toggle('held', pointed);
}
