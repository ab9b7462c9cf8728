// The rows of tabs: their names and those of the panels for screen readers, and the arrow keys, Home and End, which focus a tab
// and click it, as the ARIA pattern of tabs demands. Tab reaches only the selected tab of a row.
import {tabAfterKey} from '../core/shortcuts.js';
import {closestTo} from './events.js';
import {findAll} from './elements.js';

/** @param {HTMLElement} page */
export function listenToTabKeys(page) {
  nameWhenDrawn(page);
  new MutationObserver(() => setTabStops(page)).observe(page, {attributeFilter: ['aria-selected'], subtree: true});
  // A panel, and the row inside it, is drawn when its tab is first opened.
  page.addEventListener('click', event => {
    if (closestTo(event, '[role=tab]')) requestAnimationFrame(() => nameWhenDrawn(page));
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

/**
 * Name the rows of tabs and their panels as soon as they are drawn: on a slow computer Gradio draws them late.
 * @param {HTMLElement} page
 */
function nameWhenDrawn(page) {
  const observer = new MutationObserver(() => { if (nameTabs(page)) observer.disconnect(); });
  if (!nameTabs(page)) observer.observe(page, {childList: true, subtree: true});
}

/** Let Tab reach the selected tab of each row alone. @param {HTMLElement} page */
function setTabStops(page) {
  for (const tab of findAll(page, '.tabs-bar [role=tab]')) tab.tabIndex = tab.ariaSelected === 'true' ? 0 : -1;
}

/**
 * Name the rows of tabs, and each panel after its tab. Returns whether all that is shown of them has its name.
 * @param {HTMLElement} page
 */
function nameTabs(page) {
  setTabStops(page);
  for (const list of findAll(page, '.tabs-bar [role=tablist]')) list.ariaLabel = list.closest('.tabs-bar.inner') ? 'Lab' : 'Pages';
  for (const panel of findAll(page, '.tabs-bar > [role=tabpanel]:not([aria-label])')) {
    const tab = panel.parentElement?.querySelector(':scope > .tab-wrapper [role=tab][aria-selected=true]');
    if (tab && panel.checkVisibility()) panel.ariaLabel = tab.textContent;
  }
  const bars = findAll(page, '.tabs-bar').filter(bar => bar.checkVisibility());
  return bars.length > 0 && bars.every(bar => bar.querySelector('[role=tablist][aria-label]')
    && findAll(bar, ':scope > [role=tabpanel][aria-label]').some(panel => panel.checkVisibility()));
}
