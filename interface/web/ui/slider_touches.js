// A slider keeps its value if a finger touches it to scroll the page.

/**
 * Put back the value that a slider had when it was touched, if the touch becomes a scroll: the browser has moved the slider to
 * the finger by then, and cancels the pointer.
 * @param {Document} page
 */
export function keepScrolledSliders(page) {
  /** @type {{slider: HTMLInputElement, value: string} | null} */
  let touched = null;
  page.addEventListener('pointerdown', ({target, pointerType}) => {
    const isSlider = target instanceof HTMLInputElement && target.type === 'range';
    touched = pointerType === 'touch' && isSlider ? {slider: target, value: target.value} : null;
  }, {capture: true});
  page.addEventListener('pointerup', () => { touched = null; }, {capture: true});
  page.addEventListener('pointercancel', () => {
    if (touched && touched.slider.value !== touched.value) {
      touched.slider.value = touched.value;
      for (const name of ['input', 'change']) touched.slider.dispatchEvent(new Event(name, {bubbles: true}));
    }
    touched = null;
  }, {capture: true});
}
