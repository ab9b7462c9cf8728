// The keys between a text and its rows, anywhere on the page while their tab is open: Alt with the arrow down leads to the rows, with
// the arrow up to the text.
import {branchKey, textKey} from '../core/shortcuts.js';
import {closestTo} from './events.js';

/**
 * Listen to these keys while the tab of an element is open. They keep the browser's own meaning in dialogs, which have no rows, and in lists
 * of choices, which they open and close; the arrow up also in fields of several lines.
 * @param {HTMLElement} element
 * @param {{toRows: () => void, toText: () => void}} actions
 */
export function listenToKeysBetween(element, {toRows, toText}) {
  const panel = element.closest('[role=tabpanel]');
  if (panel) document.addEventListener('keydown', event => {
    const isDown = textKey(event, false)?.verb === 'rows';
    if (event.defaultPrevented || !panel.checkVisibility() || !(isDown || branchKey(event)?.leave)) return;
    if (closestTo(event, isDown ? 'dialog, select' : 'dialog, select, textarea')) return;
    event.preventDefault();
    if (isDown) toRows();
    else toText();
  });
}
