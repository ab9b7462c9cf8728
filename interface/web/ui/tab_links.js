// Addresses of tabs: a fragment such as `#lab-cache` opens the tab whose name its first part is.
import {findAll} from './elements.js';
import {pageElements} from './page_elements.js';

/**
 * The name of the tab in a fragment, in lower case; empty if it names none.
 * @param {string} fragment
 */
export const tabNameOf = fragment => /^#([a-z]+)-[a-z]+(?:[?]|$)/.exec(fragment)?.[1] ?? '';

/**
 * Open the tab that the page's address names, as soon as the tabs are mounted and whenever the address changes. A tab's own
 * script starts when the tab is opened for the first time, and reads the rest of the address.
 */
export async function openLinkedTabs() {
  const open = () => {
    const name = tabNameOf(location.hash);
    if (name) findAll(document.body, '[role=tab]').find(({textContent}) => textContent?.trim().toLowerCase() === name)?.click();
  };
  addEventListener('hashchange', open);
  await pageElements({tab: '[role=tab]'});
  open();
}
