// Where the sentence of a control or a figure is shown: beside its toolbar, its rows or its summary, so that it covers neither
// the control nor its neighbours.

/** @typedef {{left: number, top: number, right: number, bottom: number}} Box in pixels of the window */

const GAP = 4;      // pixels between a toolbar and the sentence
const EDGE = 12;    // pixels to the window's edges that stay free
const MANY = 1000;  // more others than a sentence covers
const NEAR = 160;   // pixels between a figure of the rows and its sentence, at most

/** @type {(one: Box, other: Box) => boolean} */
export const meet = (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

/**
 * The left upper corner of a sentence. With `beside`, to the left of its toolbar, as high as its control or as near to that as
 * it covers no control there, if it is in the window. Else below its toolbar, above it, below one that follows, or above one that precedes; the
 * first of these that covers nothing and is in the window. Where each covers something, to the left of its toolbar, if it covers
 * nothing there, or else the one that covers the fewest controls, and of those the fewest others. Where none is in the
 * window, because the toolbar is larger than that: below its control, or above it. With `beside`, no place is far from the
 * control.
 * @param {object} boxes
 * @param {Box} boxes.control
 * @param {Box} boxes.toolbar of the control
 * @param {Box[]} boxes.toolbars others
 * @param {boolean} [boxes.beside] whether it may stand to the left
 * @param {Box[]} boxes.controls all that must not be covered
 * @param {Box[]} [boxes.others] what is covered rather than a control
 * @param {{width: number, height: number}} boxes.size of the sentence
 * @param {{width: number, height: number}} boxes.page size of the window
 * @returns {{left: number, top: number}}
 */
export function tipPosition({control, toolbar, toolbars, beside = false, controls, others = [], size, page}) {
  const leftward = beside ? placeBeside({control, toolbar, controls, size, page}) : undefined;
  if (leftward) return leftward;
  const left = Math.max(EDGE, Math.min(control.left, toolbar.right - size.width, page.width - EDGE - size.width));
  const below = toolbars.filter(({top}) => top >= toolbar.bottom - 1).map(({bottom}) => bottom).sort((one, other) => one - other);
  const above = toolbars.filter(({bottom}) => bottom <= toolbar.top + 1).map(({top}) => top).sort((one, other) => other - one);
  const over = [toolbar.top, ...above].map(top => top - GAP - size.height);
  const tops = [toolbar.bottom + GAP, over[0], ...below.map(bottom => bottom + GAP), ...over.slice(1)];
  const seen = (/** @type {number[]} */ all) => all.filter(top => top >= 0 && top + size.height <= page.height);
  const near = [control.bottom + GAP, control.top - GAP - size.height];
  const nearby = seen([...tops.filter(top => top + size.height >= control.top - NEAR && top <= control.bottom + NEAR), ...near]);
  const found = [beside ? nearby : [], seen(tops), seen(near), tops].find(all => all.length) ?? tops;
  const rated = found.map(top => {
    const own = {left, top, right: left + size.width, bottom: top + size.height};
    const [covered, less] = [controls, others].map(boxes => boxes.filter(one => meet(one, own)).length);
    return {left, top, cost: MANY * covered + less};
  });
  const {top, cost} = rated.reduce((best, one) => (one.cost < best.cost ? one : best));
  return (cost && !beside && placeBeside({control, toolbar, controls: [...controls, ...others], size, page})) || {left, top};
}

/**
 * The left upper corner to the left of the toolbar: at the upper or the lower edge of the control, or else above or below a
 * control that is there, as near to its own as it can be. Undefined if there is no room near it.
 * @param {{control: Box, toolbar: Box, controls: Box[], size: {width: number, height: number}, page: {height: number}}} boxes
 */
function placeBeside({control, toolbar, controls, size, page}) {
  const right = toolbar.left - GAP, left = right - size.width;
  if (left < EDGE) return undefined;
  const distance = (/** @type {number} */ top) => Math.max(top - control.bottom, control.top - top - size.height, 0);
  const around = controls.flatMap(one => [one.bottom + GAP, one.top - GAP - size.height])
    .filter(top => top >= 0 && top + size.height <= page.height && distance(top) <= NEAR).sort((one, other) => distance(one) - distance(other));
  const own = [control.top, control.bottom - size.height].map(top => Math.max(0, Math.min(top, page.height - size.height)));
  const top = [...own, ...around].find(level => !controls.some(one => meet(one, {left, top: level, right, bottom: level + size.height})));
  return top === undefined ? undefined : {left, top};
}
