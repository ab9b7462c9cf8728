// The widths of the labels of the Lab's drawings as this browser draws them.
/** @import {WidthOf} from '../core/label_width.js' */
import {FIGURE_SIZE} from '../core/tree_layout.js';
import {labelWidth} from '../core/label_width.js';

/** @type {CanvasRenderingContext2D | null} */
let context = null;

/** Measure a label, or what stands below it, which is smaller and without serifs. @type {WidthOf} */
export function measuredWidth(text, size) {
  context ??= document.createElement('canvas').getContext('2d');
  if (!context) return labelWidth(text, size);
  context.font = `${size}px ${size === FIGURE_SIZE ? 'system-ui, sans-serif' : 'Georgia, serif'}`;
  return Math.ceil(context.measureText(text).width);
}
