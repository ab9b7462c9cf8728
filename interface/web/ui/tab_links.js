// Addresses of tabs: a fragment such as `#lab-cache` opens the tab *Lab*, and in it the tab *Cache* if there is one.
import {findAll} from './elements.js';

/**
 * The names of the tab in a fragment and of the one in it, in lower case; empty if it names none.
 * @param {string} fragment
 * @returns {string[]}
 */
export const tabNamesOf = fragment => /^#([a-z]+)-([a-z]+)(?:[?]|$)/.exec(fragment)?.slice(1) ?? [];

const PATIENCE = 60_000;   // milliseconds until a tab is mounted, on a slow computer
const TURN = 20;           // milliseconds between two looks for it

/**
 * Open the tab that the page's address names, as soon as the tabs are mounted and whenever the address changes. A tab's own
 * script starts when the tab is opened for the first time, and reads the rest of the address.
 */
export async function openLinkedTabs() {
  addEventListener('hashchange', openTabs);
  await openTabs();
}

/** Open the tab of the address, and the one in it, which is mounted when its own tab is open for the first time. */
async function openTabs() {
  const {hash} = location;
  for (const name of tabNamesOf(hash)) {
    const since = performance.now();
    let tab = tabNamed(name);
    while (!tab && performance.now() - since < PATIENCE && location.hash === hash) {
      await new Promise(resolve => { setTimeout(resolve, TURN); });
      tab = tabNamed(name);
    }
    tab?.click();
  }
}

/** The tab of this name in lower case. @param {string} name */
const tabNamed = name => findAll(document.body, '[role=tab]').find(({textContent}) => textContent?.trim().toLowerCase() === name);
