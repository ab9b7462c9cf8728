// A picture as a PNG file, which the browser draws from SVG.
import {downloadFile, make} from './elements.js';

const SHARPNESS = 2;           // pixels of the file for one of the page
const MOST_SIDE = 8192;        // pixels: browsers draw no larger ones
const MOST_AREA = 32_000_000;

/**
 * Save a picture as PNG, as sharp as browsers can draw it. Throws an error if the browser cannot.
 * @param {string} svg the text of the picture, with its width and height
 * @param {string} name of the file, with its ending
 */
export async function savePngOf(svg, name) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const {naturalWidth: width, naturalHeight: height} = image, sides = MOST_SIDE / Math.max(width, height), area = Math.sqrt(MOST_AREA / (width * height));
  const scale = Math.min(SHARPNESS, sides, area);
  const canvas = make('canvas', {width: Math.ceil(width * scale), height: Math.ceil(height * scale)});
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise(resolve => { canvas.toBlob(resolve, 'image/png'); });
  if (!blob) throw new Error('The browser could not draw the picture.');
  downloadFile(blob, name, 'image/png');
}
