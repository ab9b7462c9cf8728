// The drawing of a tree as a file: SVG text, and PNG that the browser draws from it.
/** @import {DrawingColours, TreeLayout} from '../../web/core/types.d.ts' */
import {downloadFile} from '../../web/ui/elements.js';
import {savePngOf} from '../../web/ui/png_file.js';
import {treeSvg} from '../../web/core/tree_svg.js';

/** @typedef {{colours: DrawingColours, title: string, name: string}} FileOptions `name`: of the file, with its ending */

/** @param {TreeLayout} layout @param {FileOptions} options */
export const saveSvg = (layout, {name, ...options}) => downloadFile(treeSvg(layout, options), name, 'image/svg+xml');

/** Save a drawing as PNG. Throws an error if the browser cannot. @param {TreeLayout} layout @param {FileOptions} options */
export const savePng = (layout, {name, ...options}) => savePngOf(treeSvg(layout, options), name);
