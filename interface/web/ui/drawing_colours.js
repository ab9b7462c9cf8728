// The colours of the page as they are now, light or dark: for drawings on the page and in files.

/** @import {DrawingColours} from '../core/types.d.ts' */

/**
 * The colours around an element.
 * @param {Element} element
 * @returns {DrawingColours}
 */
export function drawingColours(element) {
  const style = getComputedStyle(element), colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return {
    paper: colour('--background-fill-primary'), ink: colour('--body-text-color'), soft: colour('--body-text-color-subdued'), faint: colour('--ink-faint'),
    line: colour('--border-color-primary'), accent: colour('--color-accent'), good: colour('--good'),
  };
}
