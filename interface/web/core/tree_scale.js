// How large a drawing of a tree is shown: as large as all of it fits, within what can be read.

/** @typedef {{width: number, height: number}} Size in pixels */

export const LEAST = 0.01;      // the smallest scale: all of a long session is seen
export const READABLE = 0.924; // the least scale before *Fit* is pressed: odds have 12 pixels; a larger drawing is scrolled
/** That of the tree of the Write tab in a low window, and the least at *Fit* in Decoding: letters keep 12 pixels in both. */
export const READABLE_LOW = 0.75;
export const LEGIBLE = 0.6;    // below it, letters, which keep 12 pixels, have no room: boxes are drawn instead
export const LARGEST = 2;      // letters as large as a class can read from the back row
const MOST_SPREAD = 2.5;       // times the distances that the labels need

/**
 * The scale at which all of a drawing is seen.
 * @param {Size} drawing
 * @param {Size} area in which it is shown
 * @param {number} [least] the smallest scale: what does not fit is scrolled
 * @param {number} [largest] the largest scale
 */
export const fittingScale = (drawing, area, least = LEAST, largest = LARGEST) =>
  Math.min(largest, Math.max(least, Math.min(area.width / drawing.width, area.height / drawing.height)));

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
