// The keys between a text and its rows, anywhere in their tab: Alt with the arrow down leads to the rows, with the arrow up to the text.
import {branchKey, textKey} from '../core/shortcuts.js';
import {closestTo} from './events.js';

/**
 * Listen to these keys in the tab of an element. A dialog has no rows, the arrows open and close a list of choices, and in a field of several lines the
 * arrow up belongs to the browser.
 * @param {HTMLElement} element
 * @param {{toRows: () => void, toText: () => void}} actions
 */
export function listenToKeysBetween(element, {toRows, toText}) {
  element.closest('[role=tabpanel]')?.addEventListener('keydown', found => {
    const event = /** @type {KeyboardEvent} */ (found), isDown = textKey(event, false)?.verb === 'rows';
    if (event.defaultPrevented || !(isDown || branchKey(event)?.leave)) return;
    if (closestTo(event, isDown ? 'dialog, select' : 'dialog, select, textarea')) return;
    event.preventDefault();
    if (isDown) toRows();
    else toText();
  });
}
