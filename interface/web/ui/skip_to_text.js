// The first control of the page: it leads past the header and the tabs to the text of the open tab.
import {findAll} from './elements.js';

/** @param {HTMLElement} button */
export function skipToText(button) {
  button.addEventListener('click', () => {
    const visible = (/** @type {string} */ selector) => findAll(document.body, selector).filter(one => one.checkVisibility());
    const [field] = visible('[role=tabpanel] .leaf textarea'), panel = visible('[role=tabpanel]').at(-1);
    // The lesson of the Lab has no text field: its panel takes the focus, which a panel does only if it has this attribute.
    if (!field && panel) panel.tabIndex = -1;
    (field ?? panel)?.focus();
  });
}
