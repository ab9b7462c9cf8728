// Drawings of the Lab: the text of an SVG file, shown on the page, and the note below it.
import {scrollBehavior} from '../../web/ui/elements.js';

/**
 * Show a drawing in an element, in place of the one before. Returns its element.
 * @param {HTMLElement} element
 * @param {string} text of an SVG file
 */
export function showDrawing(element, text) {
  const parsed = new DOMParser().parseFromString(text, 'image/svg+xml');
  const svg = /** @type {SVGSVGElement} */ (/** @type {unknown} */ (document.importNode(parsed.documentElement, true)));
  element.replaceChildren(svg);
  return svg;
}

/**
 * Write the sentence on a token into the note below a drawing, or the one that says how to choose a token.
 * @param {HTMLElement} note
 * @param {string} sentence
 * @param {boolean} pointed whether it is of a token that is pointed at or chosen: then the note stays in sight while the drawing does
 * @param {boolean} [spoken] whether it is announced: the name of a node that has the focus says the same
 */
export function showPointed(note, sentence, pointed, spoken = pointed) {
  // The sentence that says how to choose a token is not announced, each time that another pass is drawn.
  note.setAttribute('aria-live', spoken ? 'polite' : 'off');
  note.textContent = sentence;
  note.classList.toggle('held', pointed);
}

/**
 * Scroll to the note below a drawing after a tap on a token: for a finger the note does not lie over the drawing.
 * @param {HTMLElement} drawing
 * @param {HTMLElement} note
 */
export function scrollToNoteAfterTaps(drawing, note) {
  // Not earlier than the click: the token under the finger would move away.
  drawing.addEventListener('click', () => {
    if (note.classList.contains('held') && matchMedia('(hover: none)').matches) note.scrollIntoView({block: 'nearest', behavior: scrollBehavior()});
  });
}
