// The drawing of a tree as a file: SVG text, and PNG that the browser draws from it.
/** @import {TreeColours, TreeLayout} from '../../web/core/types.d.ts' */
import {downloadFile, make} from '../../web/ui/elements.js';
import {treeSvg} from '../../web/core/tree_svg.js';

const SHARPNESS = 2;           // pixels of the file for one of the page
const MOST_SIDE = 8192;        // pixels: browsers draw no larger ones
const MOST_AREA = 32_000_000;

/**
 * The colours of the page around an element.
 * @param {Element} element
 * @returns {TreeColours}
 */
export function coloursOf(element) {
  const style = getComputedStyle(element), colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return {
    paper: colour('--background-fill-primary'), ink: colour('--body-text-color'), soft: colour('--body-text-color-subdued'),
    quiet: colour('--border-color-primary'), accent: colour('--color-accent'), chosen: colour('--good'),
  };
}

/** @typedef {{colours: TreeColours, title: string, name: string}} FileOptions `name`: of the file, with its ending */

/** @param {TreeLayout} layout @param {FileOptions} options */
export const saveSvg = (layout, {name, ...options}) => downloadFile(treeSvg(layout, options), name, 'image/svg+xml');

/**
 * Save a drawing as PNG, as sharp as browsers can draw it. Throws an error if the browser cannot.
 * @param {TreeLayout} layout
 * @param {FileOptions} options
 */
export async function savePng(layout, {name, ...options}) {
  const {width, height} = layout, sides = MOST_SIDE / Math.max(width, height), area = Math.sqrt(MOST_AREA / (width * height));
  const scale = Math.min(SHARPNESS, sides, area);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(treeSvg(layout, options))}`;
  await image.decode();
  const canvas = make('canvas', {width: Math.ceil(width * scale), height: Math.ceil(height * scale)});
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise(resolve => { canvas.toBlob(resolve, 'image/png'); });
  if (!blob) throw new Error('The browser could not draw the picture.');
  downloadFile(blob, name, 'image/png');
}
