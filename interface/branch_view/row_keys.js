// Keys among the branches: one tab stop, arrows move it, and what they lead to is chosen with Enter or banned with Delete.
import {branchKey} from '../web/core/shortcuts.js';

const CHOICES = 'button[data-token], .more, button[data-rest]';

// The choices line by line: each row's tokens, what opens everything else, and, where it is open, that.
function lines(root) {
  const rows = [...root.querySelectorAll('.branch .tokens')].map(tokens => [...tokens.querySelectorAll('button')]);
  const more = root.querySelector('.rest:not([hidden]) .more:enabled');
  const others = more ? [...root.querySelectorAll('.others:not([hidden]) button')] : [];
  return [...rows, more ? [more] : [], others].filter(line => line.length);
}

export const focused = root => (document.activeElement?.matches(CHOICES) && root.contains(document.activeElement) ? document.activeElement : null);

// Where focus is among the choices, so that it can be there again after a paint.
export function placeOf(root) {
  const node = focused(root);
  if (!node) return null;
  const all = lines(root), line = all.findIndex(buttons => buttons.includes(node));
  return line < 0 ? null : {line, column: all[line].indexOf(node), token: node.matches('.token')};
}

// The choice at a place or the nearest one; a place among the rows stays there while there are any.
export function focusAt(root, {line, column, token = false}) {
  const all = lines(root), rows = all.filter(([first]) => first.matches('.token'));
  const found = token && rows.length ? rows : all, buttons = found[Math.max(0, Math.min(line, found.length - 1))];
  if (buttons) focusOn(root, buttons[Math.max(0, Math.min(column, buttons.length - 1))]);
}

function focusOn(root, button) {
  moveTabStop(root, button);
  button.focus({preventScroll: true});
  button.scrollIntoView({block: 'nearest', inline: 'nearest'});
}

function moveTabStop(root, button) {
  for (const other of root.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  button.tabIndex = 0;
}

export function keepTabStop(root) {
  const stop = root.querySelector('[tabindex="0"]');
  if (stop && !stop.disabled && !stop.closest('[hidden]')) return;
  const first = lines(root)[0]?.[0];
  if (first) moveTabStop(root, first);
}

// `actions`: takeWord(branch) and ban(button), for the digits and for Delete.
export function listenToRowKeys(root, actions) {
  root.addEventListener('keydown', event => {
    const node = focused(root), found = node && branchKey(event);
    if (!found) return;
    if (found.move) move(root, node, event.key, found.move);
    else if (found.ban) actions.ban(node);
    else actions.takeWord(found.word);
    event.preventDefault();
  });
  root.addEventListener('focusin', event => { if (event.target.matches(CHOICES)) moveTabStop(root, event.target); });
}

function move(root, node, key, [down, along]) {
  const {line, column} = placeOf(root);
  const turned = /^Arrow/.test(key) && getComputedStyle(node.parentElement).direction === 'rtl';
  if (line + down < 0 || (!down && along === -1 && !turned && column === 0)) return;
  focusAt(root, {line: line + down, column: column + (turned ? -along : along)});
}
