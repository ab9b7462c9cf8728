// A guard against a second click after the page has scrolled: something else is under the resting pointer then.

/** @param {Event} event */
export const isTouch = event => /** @type {PointerEvent} */ (event).pointerType === 'touch';

/**
 * Cover the place of a click until the pointer is elsewhere or a wheel is turned: a second click there, such as that of a double
 * click, does nothing. After a tap the cover takes one more tap only.
 * @param {MouseEvent} click
 */
export function coverPlaceOf(click) {
  const cover = document.createElement('div');
  cover.className = 'click-cover';
  cover.style.left = `${click.clientX}px`;
  cover.style.top = `${click.clientY}px`;
  const remove = () => {
    cover.remove();
    document.removeEventListener('pointerover', onOver);
    document.removeEventListener('wheel', remove);
  };
  // After a tap browsers may move a mouse, which nobody has moved.
  const onOver = (/** @type {PointerEvent} */ event) => { if (event.target !== cover && isTouch(event) === isTouch(click)) remove(); };
  document.addEventListener('pointerover', onOver);
  document.addEventListener('wheel', remove, {passive: true});
  cover.addEventListener('click', event => { if (isTouch(event)) remove(); });
  document.body.append(cover);
}
