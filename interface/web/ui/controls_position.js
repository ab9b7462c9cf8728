// Where the controls stand: above the rows, and on a phone below them. They are moved in the document, so that the Tab
// key and screen readers go through the page as it is seen.
import {WIDE} from './window_sizes.js';
import {closestTo} from './events.js';
import {setAttribute} from './elements.js';

const PHONE = '(max-width: 760px), (max-height: 440px)';   // upright or sideways; in page.css too
/** What takes the room of the score above the form of a guess: five banned tokens below open settings, or any remark beside closed ones. */
const ABOVE_GUESS = '.more-settings[open] ~ .never button:nth-of-type(5), .more-settings:not([open]) ~ :is(.never:not([hidden]), .settings-remark) :not(:empty)';

/**
 * Keep the controls first in their card, and on a phone last. The form of a guess, if they have one, is always next to the rows,
 * which it hides: on an upright phone above them, so that text, result and rows are seen together.
 * @param {HTMLElement} controls
 */
export function placeControls(controls) {
  const card = controls.closest('.card'), block = card && [...card.children].find(child => child.contains(controls));
  if (!block) return;
  const guess = controls.querySelector('.guess'), aboveRows = card.querySelector('.guess-above-rows'), phone = matchMedia(PHONE), wide = matchMedia(WIDE);
  const place = () => {
    const focused = document.activeElement;
    if (phone.matches) card.append(block);
    else card.prepend(block);
    if (guess && aboveRows && !wide.matches) aboveRows.append(guess);
    else if (guess && phone.matches) controls.prepend(guess);
    else if (guess) controls.append(guess);
    if (focused instanceof HTMLElement && focused !== document.activeElement) focused.focus({preventScroll: true});
  };
  for (const size of [phone, wide]) size.addEventListener('change', place);
  place();
  if (guess) markStates(controls);
  holdSliders(controls, card);
}

/**
 * Set attributes of the tab's desk, for style sheets: `data-settings-open` while "More settings" is open, and `data-guess` while the form
 * of a guess stands in the controls; its value is `score-below` where the score has no room above the form, else `score-beside`. Rules
 * with `:has()` could find out the same, but a browser would check them at every change of the rows.
 * @param {HTMLElement} controls
 */
function markStates(controls) {
  const desk = controls.closest('.desk');
  if (!desk) return;
  const holds = (/** @type {string} */ selector) => controls.querySelector(selector) !== null;
  const mark = () => {
    setAttribute(desk, 'data-settings-open', holds('.more-settings[open]'));
    setAttribute(desk, 'data-guess', holds('.guess:not([hidden])') && (holds(ABOVE_GUESS) ? 'score-below' : 'score-beside'));
  };
  new MutationObserver(mark).observe(controls, {attributeFilter: ['open', 'hidden'], childList: true, subtree: true});
  mark();
}

/**
 * While a slider is dragged, scroll with what grows or shrinks above it, so that it stays under the finger.
 * @param {HTMLElement} controls
 * @param {Element} card that holds the controls and the rows
 */
function holdSliders(controls, card) {
  /** @type {{slider: HTMLElement, top: number} | null} */
  let held = null;
  const topOf = (/** @type {HTMLElement} */ slider) => slider.getBoundingClientRect().top, release = () => { held = null; };
  controls.addEventListener('pointerdown', event => {
    const slider = closestTo(event, 'input[type=range]');
    held = slider && {slider, top: topOf(slider)};
  });
  for (const name of ['pointerup', 'pointercancel']) addEventListener(name, release);
  new ResizeObserver(() => { if (held) scrollBy(0, topOf(held.slider) - held.top); }).observe(card);
}
