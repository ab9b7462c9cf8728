// How large a drawing of a tree is shown: as large as all of it fits, within what can be read.

/** @typedef {{width: number, height: number}} Size in pixels */

export const LEAST = 0.1;       // the smallest scale
export const READABLE = 0.8;   // the least scale of branches: a larger drawing is scrolled
export const OVERVIEW = 0.5;   // the least scale of a whole session, of which all is to be seen
const LARGEST = 1.6;           // letters as large as a class can read from the back row

/**
 * The scale at which all of a drawing is seen.
 * @param {Size} drawing
 * @param {Size} area in which it is shown
 * @param {number} [least] the smallest scale: what does not fit is scrolled
 */
export const fittingScale = (drawing, area, least = LEAST) =>
  Math.min(LARGEST, Math.max(least, Math.min(area.width / drawing.width, area.height / drawing.height)));
