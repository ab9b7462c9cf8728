// Announcements: sentences for screen readers in live regions that nobody sees.

const HEARD = 5000;   // milliseconds after which screen readers have taken a sentence up

/**
 * What was announced last, by its region.
 * @type {WeakMap<Element, {sentence: string, timer: ReturnType<typeof setTimeout>}>}
 */
const announcements = new WeakMap();

/** What was announced in a live region last. @param {Element} region */
export const announcedIn = region => announcements.get(region)?.sentence ?? '';

/**
 * Announce a sentence in a live region that is not seen. The same one is not announced again before another one, or ''. After
 * `HEARD` milliseconds the region is emptied, so that a screen reader that reads the whole page does not say the sentence again.
 * @param {Element} region
 * @param {string} sentence
 * @param {{again?: boolean}} [options] `again`: announce it also if it is the same one, as after a second press of a button
 */
export function announce(region, sentence, {again = false} = {}) {
  if (!again && announcedIn(region) === sentence) return;
  clearTimeout(announcements.get(region)?.timer);
  region.textContent = sentence;
  const timer = setTimeout(() => { if (region.textContent === sentence) region.textContent = ''; }, HEARD);
  announcements.set(region, {sentence, timer});
}
