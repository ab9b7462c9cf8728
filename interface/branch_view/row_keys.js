// The keys among the branches: one tab stop, which the arrows move. The focused button is accepted with Enter and banned
// with Delete. The focus belongs to the browser, so these functions ask the browser for it.
import {branchKey} from '../web/core/shortcuts.js';
import {closestTo} from '../web/ui/events.js';
import {findAll, setAttribute} from '../web/ui/elements.js';

/** The button that Tab leads to. The list of other beginnings, which is scrolled by keys, is a stop of its own. */
const STOP = '[tabindex="0"]:not(.others)';
const FOCUSABLE = 'button[data-token], .more, button[data-rest], .tokens > [role=note][tabindex]';
const ROW_PARTS = '.token, [role=note]';

/** @typedef {{line: number, column: number, token: boolean}} FocusPosition `token`: whether it is a piece of a row */

/** Whether the chosen view, see `ViewChoice`, shows something else than the rows. @param {HTMLElement} root */
const hidesRows = root => (root.dataset.view ?? 'rows') !== 'rows';

/**
 * The buttons line by line: the pieces of each row, the button that opens the other beginnings, and, while open, those. A row
 * without pieces has its note, that the text ends there. In a view that hides the rows their pieces are left out.
 * @param {HTMLElement} root
 * @returns {HTMLElement[][]}
 */
function buttonLines(root) {
  const rows = hidesRows(root) ? [] : findAll(root, '.branch .tokens').map(tokens => findAll(tokens, 'button, [role=note][tabindex]'));
  const more = findAll(root, '.rest:not([hidden]) .more:enabled');
  const others = more.length ? findAll(root, '.others:not([hidden]) button') : [];
  return [...rows, more, others].filter(line => line.length);
}

/**
 * The button that has the focus, or null.
 * @param {HTMLElement} root
 */
function focusedButton(root) {
  const node = document.activeElement;
  return node instanceof HTMLElement && node.matches(FOCUSABLE) && root.contains(node) ? node : null;
}

/**
 * The position of the focus among the buttons, so that it can be restored after a paint; null if it is elsewhere.
 * @param {HTMLElement} root
 * @returns {FocusPosition | null}
 */
export function focusPosition(root) {
  const node = focusedButton(root);
  if (!node) return null;
  const all = buttonLines(root), line = all.findIndex(buttons => buttons.includes(node));
  return line < 0 ? null : {line, column: all[line].indexOf(node), token: node.matches(ROW_PARTS)};
}

/**
 * The lines in which a position counts: a position among the rows stays there while there are any.
 * @type {(root: HTMLElement, token: boolean) => HTMLElement[][]}
 */
function linesOf(root, token) {
  const all = buttonLines(root), rows = all.filter(([first]) => first.matches(ROW_PARTS));
  return token && rows.length ? rows : all;
}

/**
 * The button at a position, or the nearest one.
 * @param {HTMLElement} root
 * @param {{line: number, column: number, token?: boolean}} position
 * @returns {HTMLElement | undefined}
 */
function nearestButton(root, {line, column, token = false}) {
  const lines = linesOf(root, token), buttons = lines[Math.max(0, Math.min(line, lines.length - 1))];
  return buttons?.[Math.max(0, Math.min(column, buttons.length - 1))];
}

/**
 * Focus the button at a position, or the nearest one.
 * @param {HTMLElement} root
 * @param {{line: number, column: number, token?: boolean}} position
 */
export function focusAt(root, position) {
  const button = nearestButton(root, position);
  if (button) focusOn(root, button);
}

/**
 * Focus the first button. Returns whether there is one.
 * @param {HTMLElement} root
 */
export function focusFirst(root) {
  focusAt(root, {line: 0, column: 0});
  return focusedButton(root) !== null;
}

/** @param {HTMLElement} root @param {HTMLElement} button */
function focusOn(root, button) {
  moveTabStop(root, button);
  button.focus({preventScroll: true});
  // Not at the very edge of a low window, where the rows after it would not be seen.
  const {top, bottom} = button.getBoundingClientRect(), isSeen = top >= 0 && bottom <= innerHeight;
  button.scrollIntoView({block: isSeen ? 'nearest' : 'center', inline: 'nearest'});
}

/** @param {HTMLElement} root @param {HTMLElement} button */
function moveTabStop(root, button) {
  const list = root.querySelector('.others');
  for (const other of findAll(root, STOP)) other.tabIndex = -1;
  button.tabIndex = 0;
  // By Tab the focus enters the list only from outside of it: see `listenToRowKeys`.
  if (list instanceof HTMLElement) list.tabIndex = list.contains(button) ? -1 : 0;
}

/**
 * Give the tab stop to the first button, if a paint has removed, disabled or hidden the one that had it.
 * @param {HTMLElement} root
 */
export function keepTabStop(root) {
  const stop = root.querySelector(STOP);
  if (!stop || stop.matches(':disabled') || stop.closest('[hidden]') || (hidesRows(root) && stop.matches(ROW_PARTS))) resetTabStop(root);
}

/** Give the tab stop to the first button that is shown: of the rows, or else what opens the others. @param {HTMLElement} root */
export function resetTabStop(root) {
  const first = buttonLines(root)[0]?.[0];
  if (first) moveTabStop(root, first);
}

/**
 * Handle the keys pressed in the rows. The button by which the focus enters the rows is described by what the keys do, and no
 * other: screen readers often leave out the description of a group. On a note, Enter and Space do what a click does, or else say
 * that its row only ends the text.
 * @param {HTMLElement} root
 * @param {object} actions
 * @param {(branch: number) => void} actions.takeWord for the digits
 * @param {(button: HTMLElement) => void} actions.ban for Delete
 * @param {(button: HTMLElement) => void} actions.edit for F2 and E
 * @param {() => void} actions.help for ?
 * @param {() => void} actions.leave for the keys that lead back to the text
 */
export function listenToRowKeys(root, actions) {
  let lastOther = '';   // the token ids of the other beginning that had the focus last
  // The list of other beginnings can be reached by Tab, since it scrolls; the focus goes on to that button, or else to the first one.
  root.addEventListener('focusin', ({target}) => {
    const list = /** @type {Element} */ (target), buttons = list.matches('.others:focus-visible') ? findAll(list, 'button') : [];
    const entered = buttons.find(({dataset}) => dataset.ids === lastOther) ?? buttons[0];
    if (entered) focusOn(root, entered);
  });
  root.addEventListener('keydown', event => {
    const node = focusedButton(root);
    if (!node) return;
    node.removeAttribute('aria-describedby');   // also where the focus stays, on a button that a paint uses again
    if (event.key === 'Escape' && closeOthers(root, node)) {
      event.preventDefault();
      return;
    }
    if (node.matches('[role=note]') && isPlainPress(event)) {
      event.preventDefault();
      const isUntaken = node.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}));
      if (isUntaken) actions.takeWord(Number(node.closest('.branch')?.getAttribute('data-branch')));
      return;
    }
    const found = branchKey(event);
    if (!found) return;
    if (found.leave) actions.leave();
    else if (found.help) actions.help();
    else if (found.move) moveFocus(root, node, event.key, found.move);
    else if (found.ban) actions.ban(node);
    else if (found.edit) actions.edit(node);
    else if (found.word !== undefined) actions.takeWord(found.word);
    event.preventDefault();
  });
  root.addEventListener('focusin', event => {
    const button = closestTo(event, FOCUSABLE);
    if (button) moveTabStop(root, button);
    if (button?.closest('.others')) lastOther = button.dataset.ids ?? '';
    if (!button?.closest('.rows') || isInRows(event.relatedTarget)) return;
    const said = findAll(root, '.before-keys, .keys').filter(({textContent}) => textContent);
    setAttribute(button, 'aria-describedby', said.reverse().map(({id}) => id).join(' '));
  });
  root.addEventListener('focusout', event => {
    closestTo(event, FOCUSABLE)?.removeAttribute('aria-describedby');
    // Tab leads from outside to the rows first, also after the list of the others.
    const list = closestTo(event, '.others');
    if (list && !(event.relatedTarget instanceof Node && list.contains(event.relatedTarget))) resetTabStop(root);
  });
}

/** Whether a key alone presses what has the focus. @param {KeyboardEvent} event */
const isPlainPress = ({key, ctrlKey, metaKey, altKey, isComposing}) => ['Enter', ' '].includes(key) && !(ctrlKey || metaKey || altKey || isComposing);

/** Whether an element is in the rows of a branch view: a move between two of them leaves the keys as they were said. @param {EventTarget | null} target */
const isInRows = target => target instanceof Element && target.closest('.rows') !== null;

/**
 * Close the list of other beginnings if the focused button is in it or opens it, and focus the button that opens it. Returns
 * whether it was open.
 * @param {HTMLElement} root
 * @param {HTMLElement} node
 */
function closeOthers(root, node) {
  const more = findAll(root, '.more[aria-expanded=true]')[0];
  if (!more || (node !== more && !node.closest('.others'))) return false;
  more.click();
  focusOn(root, more);
  return true;
}

/** @type {(root: HTMLElement, node: HTMLElement, key: string, move: [down: number, along: number]) => void} */
function moveFocus(root, node, key, [down, along]) {
  const position = focusPosition(root), container = node.parentElement;
  if (!position || !container) return;
  const {line, column} = position, isListed = Boolean(node.closest('.others')), turned = /^Arrow/.test(key) && getComputedStyle(container).direction === 'rtl';
  // The list of other beginnings is one line, through which the arrows up and down go entry by entry.
  if (isListed && down && column + down >= 0) {
    focusAt(root, {line, column: column + down});
    return;
  }
  if (line + down < 0 || (!down && along === -1 && !turned && column === 0)) return;
  focusAt(root, {line: line + down, column: column + (turned ? -along : along)});
}
