// Addresses of tabs: a fragment such as `#lab-cache` opens the tab *Lab*, and in it the tab *Cache* if there is one.
import {findAll} from './elements.js';

/**
 * The names of the tab in a fragment and of the one in it, in lower case; empty if it names none.
 * @param {string} fragment
 * @returns {string[]}
 */
export const tabNamesOf = fragment => /^#([a-z]+)-([a-z]+)(?:[?]|$)/.exec(fragment)?.slice(1) ?? [];

/**
 * The fragment after a click on a tab; empty for none, null if it stays.
 * @param {string} fragment of the address
 * @param {string} clicked the tab's name in lower case; empty if no tab was clicked
 * @param {boolean} isInner whether it is a tab within a tab
 */
export function addressAfterClick(fragment, clicked, isInner) {
  const [outer, inner] = tabNamesOf(fragment);
  if (!outer || !clicked || clicked === outer || clicked === inner) return null;
  return isInner ? `#${outer}-${clicked}` : '';
}

const PATIENCE = 60_000;   // milliseconds until a tab is mounted, on a slow computer
const TURN = 20;           // milliseconds between two looks for it

/**
 * Open the tab that the page's address names, as soon as the tabs are mounted and whenever the address changes. A tab's own
 * script starts when the tab is opened for the first time, and reads the rest of the address.
 */
export async function openLinkedTabs() {
  addEventListener('hashchange', openTabs);
  document.addEventListener('click', event => { if (event.isTrusted) nameTabInAddress(/** @type {Element} */ (event.target)); });
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

/**
 * Where the address names a tab, and a person opens another one by a click: let the address name that one, so that a reload
 * does not lead back. An address that names none stays as it is.
 * @param {Element} target of the click
 */
function nameTabInAddress(target) {
  const tab = target.closest('[role=tab]'), address = addressAfterClick(location.hash, tab ? nameOf(tab) : '', Boolean(tab?.closest('.inner')));
  if (address !== null) history.replaceState(history.state, '', address || location.pathname + location.search);
}

/** The tab of this name in lower case. @param {string} name */
const tabNamed = name => findAll(document.body, '[role=tab]').find(tab => nameOf(tab) === name);

/** The name of a tab in lower case. @param {Element} tab */
const nameOf = tab => tab.textContent?.trim().toLowerCase() ?? '';
