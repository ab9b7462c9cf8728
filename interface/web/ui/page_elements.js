// The elements of the page that a tab consists of.
/** @import {BranchViewElement} from '../core/types.d.ts' */

/**
 * Wait until all of a tab's elements are mounted, and the branch view among them is ready.
 * @template {Record<string, string>} T
 * @param {T} selectors by name; `branches` is the branch view's
 * @returns {Promise<{[name in keyof T]: name extends 'branches' ? BranchViewElement : HTMLElement}>}
 */
export async function pageElements(selectors) {
  for (;;) {
    /** @type {any} */
    const found = Object.fromEntries(Object.entries(selectors).map(([name, selector]) => [name, document.querySelector(selector)]));
    if (Object.values(found).every(Boolean) && (!found.branches || found.branches.branchView)) return found;
    await new Promise(resolve => { setTimeout(resolve, 10); });
  }
}
