// The keys between a text and its rows, anywhere in their open tab and on the row of tabs above it: Alt with the arrow down leads to
// the rows, with the arrow up to the text.
import {branchKey, textKey} from '../core/shortcuts.js';
import {closestTo} from './events.js';

/**
 * Listen to these keys in the tab of an element. They keep the browser's own meaning in dialogs, which have no rows, and in lists
 * of choices, which they open and close; the arrow up also in fields of several lines.
 * @param {HTMLElement} element
 * @param {{toRows: () => void, toText: () => void}} actions
 */
export function listenToKeysBetween(element, {toRows, toText}) {
  const panel = element.closest('[role=tabpanel]');
  panel?.parentElement?.addEventListener('keydown', event => {
    const isDown = textKey(event, false)?.verb === 'rows';
    if (event.defaultPrevented || !panel.checkVisibility() || !(isDown || branchKey(event)?.leave)) return;
    if (closestTo(event, isDown ? 'dialog, select' : 'dialog, select, textarea')) return;
    event.preventDefault();
    if (isDown) toRows();
    else toText();
  });
}
