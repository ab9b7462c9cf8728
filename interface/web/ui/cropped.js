// Drawings that are larger than the area in which they are scrolled.

const MARGIN = 16;   // pixels at the edges of a drawing in which nothing can be read

/**
 * Give an area the class `cropped` while a part of its drawing is out of sight: a sentence after it then says how to see the
 * rest.
 * @param {Element} area
 */
export function markCropped(area) {
  const {scrollWidth, clientWidth, scrollHeight, clientHeight} = area;
  area.classList.toggle('cropped', scrollWidth - MARGIN > clientWidth || scrollHeight - MARGIN > clientHeight);
}
