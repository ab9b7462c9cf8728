// The rows of tabs: their names for screen readers, and the arrow keys, Home and End, which focus a tab and click it, as the
// ARIA pattern of tabs demands.
import {tabAfterKey} from '../core/shortcuts.js';
import {closestTo} from './events.js';
import {findAll} from './elements.js';

/** @param {HTMLElement} page */
export function listenToTabKeys(page) {
  nameTabRows(page);
  // The row inside a tab is drawn when that tab is first opened.
  page.addEventListener('click', event => {
    if (closestTo(event, '[role=tab]')) requestAnimationFrame(() => nameTabRows(page));
  });
  page.addEventListener('keydown', event => {
    const tab = closestTo(event, '[role=tab]'), list = tab?.closest('[role=tablist]');
    if (!tab || !(list instanceof HTMLElement)) return;
    const tabs = findAll(list, '[role=tab]'), next = tabAfterKey(event, tabs.indexOf(tab), tabs.length);
    if (next === null) return;
    event.preventDefault();
    tabs[next].focus();
    tabs[next].click();
  });
}

/** @param {HTMLElement} page */
function nameTabRows(page) {
  for (const list of findAll(page, '.tabs-bar [role=tablist]')) list.ariaLabel = list.closest('.tabs-bar.inner') ? 'Lab' : 'Pages';
}
