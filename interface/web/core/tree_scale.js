// How large a drawing of a tree is shown: as large as all of it fits, within what can be read.

/** @typedef {{width: number, height: number}} Size in pixels */

export const LEAST = 0.1;       // the smallest scale
export const READABLE = 0.8;   // the least scale of branches: a larger drawing is scrolled
export const OVERVIEW = 0.5;   // the least scale of a whole session, of which all is to be seen
const NEARLY = 0.8;            // of the least scale: a drawing that fits at this is seen whole
const LARGEST = 2;             // letters as large as a class can read from the back row
const LABEL_HEIGHT = 34;       // pixels of a label and its odds
const MOST_SPREAD = 2.5;       // times the distances that the labels need

/**
 * The scale at which all of a drawing is seen. One that would be much smaller than `least` is shown at `least`, and scrolled.
 * @param {Size} drawing
 * @param {Size} area in which it is shown
 * @param {number} [least]
 */
export function fittingScale(drawing, area, least = LEAST) {
  const whole = Math.min(LARGEST, area.width / drawing.width, area.height / drawing.height);
  return whole >= NEARLY * least ? whole : least;
}

/**
 * Where a drawing is scrolled to, in its own pixels, so that the end of the text is a third from the left, and in the middle or,
 * where its likeliest branch would be out of sight there, so far from the middle that both are seen. Where they do not fit,
 * the end of the text is.
 * @param {{x: number, y: number, height: number}} here the end of the text
 * @param {{y: number, height: number}} likeliest
 * @param {Size} area in the drawing's pixels
 */
export function scrollStart(here, likeliest, {width, height}) {
  const reach = (/** @type {{y: number, height: number}} */ node) => [node.y + node.height / 2 - height, node.y - node.height / 2];
  const nearest = (/** @type {number} */ top, /** @type {number[]} */ [least, most]) => Math.min(most, Math.max(least, top));
  return {left: here.x - width / 3, top: nearest(nearest(here.y - height / 2, reach(likeliest)), reach({...here, height: LABEL_HEIGHT}))};
}

/**
 * How many times farther apart the nodes of a drawing stand so that it fills the height of its area, at the scale that its
 * width allows; 1 where it has no height to spare.
 * @param {Size & {span: number}} drawing `span`: from its highest node to its lowest
 * @param {Size} area
 * @param {number} least the smallest scale
 */
export function fillingSpread(drawing, area, least) {
  const free = area.height / fittingScale(drawing, area, least) - 1 - drawing.height;
  return drawing.span && free > 0 ? Math.min(MOST_SPREAD, 1 + free / drawing.span) : 1;
}
