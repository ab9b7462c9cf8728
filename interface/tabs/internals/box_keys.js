// The keys among the token boxes: one tab stop, which the arrows move. Enter is a click on a button.
import {closestTo} from '../../web/ui/events.js';
import {findAll} from '../../web/ui/elements.js';

/** @type {Record<string, number>} */
const MOVES = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity};
/** @type {Record<string, number>} */
const LINE_MOVES = {ArrowUp: -1, ArrowDown: 1};
const MARGIN = 16;   // pixels around a box that stay visible: at the edges boxes fade out, see tokens.css

/** @param {HTMLElement} element that holds the boxes */
export function listenToBoxKeys(element) {
  element.addEventListener('keydown', event => {
    const box = closestTo(event, '.box');
    if (!box || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const all = findAll(element, '.box'), along = MOVES[event.key], down = LINE_MOVES[event.key];
    const next = along ? boxBeside(all, box, along) : down && boxInNextLine(all, box, down);
    if (!next) return;
    event.preventDefault();
    moveTabStop(element, next);
    next.focus({preventScroll: true});
    next.scrollIntoView({block: 'nearest'});
  });
}

/**
 * One box is where the Tab key leads.
 * @param {HTMLElement} element
 * @param {HTMLElement} box
 */
export function moveTabStop(element, box) {
  for (const other of findAll(element, '[tabindex="0"]')) other.tabIndex = -1;
  box.tabIndex = 0;
}

/**
 * Scroll the list so that all of a box is seen in it. The page itself does not move.
 * @param {HTMLElement} list
 * @param {HTMLElement} box
 */
export function scrollWholeInto(list, box) {
  const outer = list.getBoundingClientRect(), inner = box.getBoundingClientRect();
  const below = inner.bottom + MARGIN - outer.bottom, above = inner.top - MARGIN - outer.top;
  if (below > 0) list.scrollTop += Math.min(below, above);
  else if (above < 0) list.scrollTop += above;
}

/** @type {(all: HTMLElement[], box: HTMLElement, by: number) => HTMLElement} */
const boxBeside = (all, box, by) => all[Math.max(0, Math.min(all.length - 1, all.indexOf(box) + by))];

/**
 * The nearest box in the next line of boxes; the same box if there is none.
 * @type {(all: HTMLElement[], box: HTMLElement, by: number) => HTMLElement}
 */
function boxInNextLine(all, box, by) {
  const {left, right, top, bottom} = box.getBoundingClientRect(), middle = (left + right) / 2;
  const found = all.map(other => ({other, rect: other.getBoundingClientRect()}))
    .filter(({rect}) => (by > 0 ? rect.top >= bottom - 1 : rect.bottom <= top + 1));
  const edge = by > 0 ? Math.min(...found.map(({rect}) => rect.top)) : Math.max(...found.map(({rect}) => rect.bottom));
  const inLine = found.filter(({rect}) => Math.abs((by > 0 ? rect.top : rect.bottom) - edge) < 2);
  /** @param {{rect: DOMRect}} one */
  const distance = ({rect}) => Math.abs((rect.left + rect.right) / 2 - middle);
  return inLine.sort((one, other) => distance(one) - distance(other))[0]?.other ?? box;
}
