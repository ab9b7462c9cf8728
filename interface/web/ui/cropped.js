// Drawings that are larger than the area in which they are scrolled.

/**
 * Give an area the class `cropped` while what it holds is wider or higher than it: a sentence after it then says how to see the
 * rest.
 * @param {Element} area
 */
export function markCropped(area) {
  const {scrollWidth, clientWidth, scrollHeight, clientHeight} = area;
  area.classList.toggle('cropped', scrollWidth > clientWidth || scrollHeight > clientHeight);
}
