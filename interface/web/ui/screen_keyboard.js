// Rows above the screen keyboard of a phone, which leaves little of the window.
import {FINGER} from './window_sizes.js';

const ROWS = 2;   // that are brought into sight

/**
 * When the screen keyboard opens for a text box, scroll the page until two rows are in sight, but no further than to the first line
 * of the box.
 * @param {HTMLElement} box
 * @param {Element} branches whose rows are below the box
 */
export function showRowsAboveKeyboard(box, branches) {
  visualViewport?.addEventListener('resize', () => {
    const row = [...branches.querySelectorAll('.branch')].slice(0, ROWS).at(-1), {height = 0, offsetTop = 0} = visualViewport ?? {};
    if (!row || document.activeElement !== box || !matchMedia(FINGER).matches) return;
    const below = row.getBoundingClientRect().bottom - offsetTop - height;
    const room = box.getBoundingClientRect().top + parseFloat(getComputedStyle(box).paddingTop) - offsetTop;
    scrollBy({top: Math.max(0, Math.min(below, room)), behavior: 'instant'});
  });
}
