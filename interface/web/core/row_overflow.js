// Which part of a row is outside of its visible width.

const EDGE = 28;   // pixels that do not count: the empty room at a row's end, or a little less

/**
 * Where a row goes on beyond what is seen of it: `on` behind its end, `back` before its beginning once the end is seen; null
 * where all of it is seen. The scroll position is negative in rows from right to left.
 * @param {Pick<Element, 'scrollLeft' | 'scrollWidth' | 'clientWidth'>} row
 * @returns {'on' | 'back' | null}
 */
export function hiddenPart({scrollLeft, scrollWidth, clientWidth}) {
  const before = Math.abs(scrollLeft), after = scrollWidth - clientWidth - before;
  return after > EDGE ? 'on' : before > EDGE ? 'back' : null;
}
