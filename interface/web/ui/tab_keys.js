// The arrow keys, Home and End in the row of tabs: they focus a tab and click it, as the ARIA pattern of tabs demands.
import {tabAfterKey} from '../core/shortcuts.js';
import {closestTo} from './events.js';
import {findAll} from './elements.js';

/** @param {HTMLElement} page */
export function listenToTabKeys(page) {
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
