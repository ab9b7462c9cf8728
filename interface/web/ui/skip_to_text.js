// The first control of the page: it leads past the header and the tabs to the text of the open tab, and is named after that.
import {closestTo} from './events.js';
import {findAll, setText} from './elements.js';

/** @param {HTMLElement} button */
export function skipToText(button) {
  const name = () => setText(button, `Skip to the ${nameOf(goal())}`);
  button.addEventListener('focus', name);
  document.addEventListener('click', event => { if (closestTo(event, '[role=tab]')) requestAnimationFrame(name); });
  button.addEventListener('click', () => {
    const {field, panel} = goal();
    // Without a text field, as in the lesson of the Lab or below the branches of Highlights, the panel takes the focus: it does so only
    // with this attribute.
    if (!field && panel) panel.tabIndex = -1;
    (field ?? panel)?.focus();
  });
}

/** The text field of the open tab, if it has one, and the panel of the open tab. */
function goal() {
  const visible = (/** @type {string} */ selector) => findAll(document.body, selector).filter(one => one.checkVisibility({visibilityProperty: true}));
  return {field: visible('[role=tabpanel] .leaf textarea').at(0), panel: visible('[role=tabpanel]').at(-1)};
}

/** @param {{field?: HTMLElement, panel?: HTMLElement}} goal */
const nameOf = ({field, panel}) => (field?.matches('[id$=-prompt]') ? 'prompt' : field ? 'text' : panel?.ariaLabel?.toLowerCase() ?? 'page');
