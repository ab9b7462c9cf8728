// Where the details of a word stand: beside its lines or beside the text, so that they never cover the word, nor the highlights
// after it where there is room elsewhere.
import {meet} from '../../web/core/tip_position.js';
/** @import {Box} from '../../web/core/tip_position.js' */

const MARGIN = 8;     // pixels
const LEAST_ROOM = 96;   // pixels: a card with less height could not be read

/**
 * The top of the details and the height that they may have. Where they fit on neither side, the side with more room is theirs.
 * @param {Pick<DOMRect, 'top' | 'bottom'>[]} lines the rectangles of the word
 * @param {number} height of the details
 * @param {number} viewport its height
 */
export function verticalPosition(lines, height, viewport) {
  const first = Math.min(...lines.map(({top}) => top)), last = Math.max(...lines.map(({bottom}) => bottom));
  const below = viewport - last - 2 * MARGIN, above = first - 2 * MARGIN, under = height <= below || below >= above;
  const most = Math.max(0, under ? below : above);
  return {top: under ? last + MARGIN : first - MARGIN - Math.min(height, most), most};
}

/**
 * The left edge of the details: that of the word, unless they would leave the window.
 * @param {number} left of the word
 * @param {number} width of the details
 * @param {number} viewport its width
 */
export const horizontalPosition = (left, width, viewport) => Math.max(MARGIN, Math.min(left, viewport - width - MARGIN));

/**
 * The left upper corner of the details, and the height that they may have: under the word, under the text, above the word, or
 * left or right of the text; the first of these that is in the window and covers the fewest of the boxes to keep free, and
 * then of the highlights after the word. Where they would be outside of the window or cover what is to be kept free, they are
 * cut: under the word, above it, or beside the text, where there is most height.
 * @param {object} boxes
 * @param {Box[]} boxes.lines the rectangles of the word
 * @param {Box} boxes.text the visible part of the text
 * @param {Box[]} boxes.after the rectangles of the highlights after the word
 * @param {Box[]} [boxes.keep] what is to be kept free before the highlights
 * @param {{width: number, height: number}} boxes.size of the details
 * @param {{width: number, height: number}} boxes.page size of the window
 * @returns {{left: number, top: number, most: number}}
 */
export function detailsPosition({lines, text, after, keep = [], size: {width, height}, page}) {
  /** @type {(all: Box[], box: Box) => number} */
  const covered = (all, box) => all.filter(one => meet(one, box)).length;
  const first = Math.min(...lines.map(({top}) => top)), last = Math.max(...lines.map(({bottom}) => bottom));
  const left = horizontalPosition(lines[lines.length - 1].left, width, page.width);
  const level = Math.max(MARGIN, Math.min(first, page.height - MARGIN - height));
  const corners = [
    {left, top: last + MARGIN}, {left, top: text.bottom + MARGIN}, {left, top: first - MARGIN - height},
    {left: Math.max(text.left - MARGIN - width, Math.min(MARGIN, text.left - width)), top: level}, {left: text.right + MARGIN, top: level},
  ];
  const boxes = corners.map(corner => ({...corner, right: corner.left + width, bottom: corner.top + height}));
  const possible = boxes.filter(box => isInside(box, page) && !lines.some(line => meet(line, box)))
    .map(box => ({box, cost: covered(after, box) + (after.length + 1) * covered(keep, box)}));
  const best = possible.length ? possible.reduce((one, other) => (other.cost < one.cost ? other : one)).box : null;
  if (best && !covered(keep, best)) return {left: best.left, top: best.top, most: height};
  const above = keep.filter(one => one.top < first && one.left < left + width && left < one.right), lowest = page.height - MARGIN;
  const cut = [
    {left, top: last + MARGIN, bottom: lowest}, {left, top: Math.max(0, ...above.map(({bottom}) => bottom)) + MARGIN, bottom: first - MARGIN},
    ...corners.slice(3).map(corner => ({left: corner.left, top: MARGIN, bottom: lowest})),
  ].map(box => ({...box, right: box.left + width}))
    .filter(box => box.bottom - box.top >= LEAST_ROOM && isInside(box, page) && ![...lines, ...keep].some(one => meet(one, box)));
  if (!cut.length) return best ? {left: best.left, top: best.top, most: height} : {left, ...verticalPosition(lines, height, page.height)};
  const {left: edge, top, bottom} = cut.reduce((one, other) => (other.bottom - other.top > one.bottom - one.top ? other : one)), most = bottom - top;
  return {left: edge, top: bottom < first ? Math.max(top, bottom - height) : top, most};
}

/** @type {(box: Box, page: {width: number, height: number}) => boolean} */
const isInside = ({left, top, right, bottom}, {width, height}) =>
  left >= MARGIN && top >= MARGIN && right <= width - MARGIN && bottom <= height - MARGIN;
