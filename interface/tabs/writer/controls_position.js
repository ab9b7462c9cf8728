// Where the controls stand: above the rows, and in a narrow window below them. They are moved in the document, so that the Tab
// key and screen readers go through the page as it is seen.
import {find} from '../../web/ui/elements.js';

export const NARROW = '(max-width: 760px)';   // the windows of the style sheets for phones

/**
 * Keep the controls first in their card, and in a narrow window last; the form of a guess, which hides the rows, is always
 * next to them.
 * @param {HTMLElement} controls
 */
export function placeControls(controls) {
  const card = controls.closest('.card'), block = card && [...card.children].find(child => child.contains(controls));
  if (!block) return;
  const guess = find(controls, '.guess'), narrow = matchMedia(NARROW);
  const place = () => {
    const focused = document.activeElement;
    if (narrow.matches) {
      card.append(block);
      controls.prepend(guess);
    } else {
      card.prepend(block);
      controls.append(guess);
    }
    if (focused instanceof HTMLElement && focused !== document.activeElement) focused.focus({preventScroll: true});
  };
  narrow.addEventListener('change', place);
  place();
}
