// Addresses of tabs: a fragment such as `#lab-cache` opens the tab *Lab*, and in it the tab *Cache* if there is one.
import {findAll} from './elements.js';
import {orNull} from '../net/tab_storage.js';
import {afterPaint} from './events.js';

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

const STORED = 'lookahead:kept:tab';   // the open tab, in the browser's tab: a reload opens it again
/** The name of the tab that a reload opens again, in lower case; null if there is none, or the address names something. */
export const tabOfReload = () => (location.hash ? null : orNull(() => sessionStorage.getItem(STORED)));
const PATIENCE = 60_000;   // milliseconds until a tab is mounted, on a slow computer
const TURN = 20;           // milliseconds between two looks for it

/**
 * Open the tab that the page's address names, as soon as the tabs are mounted and whenever the address changes. Where it names
 * none, a reload opens the tab that was open before. A tab's own script starts when the tab is opened for the first time, and
 * reads the rest of the address.
 */
export async function openLinkedTabs() {
  addEventListener('hashchange', openTabs);
  document.addEventListener('click', event => { if (event.isTrusted) nameTabInAddress(/** @type {Element} */ (event.target)); });
  // Gradio opens a tab by its keys without a click.
  document.addEventListener('keyup', event => { if (event.isTrusted && event.key !== 'Tab') afterPaint(nameFocusedTab); });
  document.addEventListener('click', followWithinPage);
  const kept = tabOfReload();
  addEventListener('pagehide', keepTab);
  await (kept ? openTab(kept, () => !location.hash) : openTabs());
}

/**
 * Follow a link to a fragment. By itself it would lead to the page's base address, which has no query: where the page's own address
 * has one, the browser would load the page again.
 * @param {MouseEvent} event
 */
function followWithinPage(event) {
  const link = /** @type {Element} */ (event.target).closest('a[href^="#"]');
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  location.hash = link.getAttribute('href') ?? '';
}

/**
 * Give the page's address another fragment, and keep the rest of it. Nothing is loaded, and no tab is opened; the event
 * `lookahead:address` on the document says it, since there is no `hashchange`.
 * @param {string} fragment empty for none
 */
export function replaceFragment(fragment) {
  history.replaceState(history.state, '', location.pathname + location.search + fragment);
  document.dispatchEvent(new Event('lookahead:address'));
}

/** Open the tab of the address, and the one in it, which is mounted when its own tab is open for the first time. */
async function openTabs() {
  const {hash} = location;
  for (const name of tabNamesOf(hash)) {
    await openTab(name, () => location.hash === hash);
  }
}

/**
 * Open a tab as soon as it is mounted.
 * @param {string} name in lower case
 * @param {() => boolean} isWanted whether it still is to be opened
 */
async function openTab(name, isWanted) {
  const since = performance.now();
  let tab = tabNamed(name);
  while (!tab && performance.now() - since < PATIENCE && isWanted()) {
    await new Promise(resolve => { setTimeout(resolve, TURN); });
    tab = tabNamed(name);
  }
  tab?.click();
}

/** Store which tab is open, for a reload. */
function keepTab() {
  const open = findAll(document.body, '[role=tab][aria-selected=true]').find(tab => !tab.closest('.inner'));
  orNull(() => (open ? sessionStorage.setItem(STORED, nameOf(open)) : sessionStorage.removeItem(STORED)));
}

/**
 * Where the address names a tab, and a person opens another one by a click: let the address name that one, so that a reload
 * does not lead back. An address that names none stays as it is.
 * @param {Element} target of the click
 */
function nameTabInAddress(target) {
  const tab = target.closest('[role=tab]'), address = addressAfterClick(location.hash, tab ? nameOf(tab) : '', Boolean(tab?.closest('.inner')));
  if (address !== null) replaceFragment(address);
}

/** Let the address name the tab that has the focus and is open, as after an arrow key in the row of tabs. */
function nameFocusedTab() {
  if (document.activeElement?.matches('[role=tab][aria-selected=true]')) nameTabInAddress(document.activeElement);
}

/** The tab of this name in lower case. @param {string} name */
const tabNamed = name => findAll(document.body, '[role=tab]').find(tab => nameOf(tab) === name);

/** The name of a tab in lower case. @param {Element} tab */
const nameOf = tab => tab.textContent?.trim().toLowerCase() ?? '';
