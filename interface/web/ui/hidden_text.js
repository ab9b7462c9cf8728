// Where the text of a box goes on beyond what is seen: its frame says so, and the box fades out at its lower edge.

/**
 * Give the frame around a text box `data-goes-on` while its text goes on below it.
 * @param {HTMLTextAreaElement} box
 * @param {number} beyond pixels below the box that do not count
 */
export function markGoesOn({scrollTop, scrollHeight, clientHeight, parentElement}, beyond) {
  parentElement?.toggleAttribute('data-goes-on', scrollHeight - clientHeight - scrollTop > beyond);
}

/** Keep that right for a box without a mirror. @param {HTMLTextAreaElement} box */
export function followHiddenText(box) {
  const mark = () => {
    const {paddingBottom, lineHeight, fontSize} = getComputedStyle(box);
    // Where browsers scroll to the caret, they leave the room below the letters of its line out of sight.
    markGoesOn(box, parseFloat(paddingBottom) + (parseFloat(lineHeight) - parseFloat(fontSize)) / 2);
  };
  for (const name of ['input', 'scroll']) box.addEventListener(name, mark, {passive: true});
  new ResizeObserver(mark).observe(box);
}

/** Let a box that has been scrolled show its first line whole. At its end it stays as it is. @param {HTMLTextAreaElement} box */
export function showWholeLines(box) {
  box.addEventListener('scrollend', () => {
    const {scrollTop, scrollHeight, clientHeight} = box, line = parseFloat(getComputedStyle(box).lineHeight), whole = line * Math.round(scrollTop / line);
    if (Math.abs(whole - scrollTop) > 1 && scrollTop < scrollHeight - clientHeight - 1) box.scrollTop = whole;
  });
}
