// The settings of a tab's branches, as the browser's tab stores them.
import {isPlainObject} from './json_values.js';

const MOST = {k: 20, depth: 40};   // as in ui/controls.html
const LENGTHS = ['tokens', 'word'];

/** @typedef {{k?: number, depth?: number, length?: string}} StoredSettings */

/**
 * The valid ones among stored settings; nothing of what an earlier version did not store.
 * @param {unknown} value
 * @returns {StoredSettings}
 */
export function settingsFrom(value) {
  if (!isPlainObject(value)) return {};
  const {k, depth, length} = /** @type {Record<string, any>} */ (value);
  return {
    ...(isCount(k, MOST.k) && {k}), ...(isCount(depth, MOST.depth) && {depth}), ...(LENGTHS.includes(length) && {length}),
  };
}

/** @type {(value: unknown, most: number) => boolean} */
const isCount = (value, most) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most;
