// Which part of a row is outside of its visible width.

const EDGE = 28;   // pixels at a row's end that do not count: the empty room there, or a little less
const LEAST = 1;   // pixels before what is seen that count

/**
 * Where a row goes on beyond what is seen of it: `on` behind its end, `back` before its beginning once the end is seen; null
 * where all of it is seen. The scroll position is negative in rows from right to left.
 * @param {Pick<Element, 'scrollLeft' | 'scrollWidth' | 'clientWidth'>} row
 * @returns {'on' | 'back' | null}
 */
export function hiddenPart({scrollLeft, scrollWidth, clientWidth}) {
  const before = Math.abs(scrollLeft), after = scrollWidth - clientWidth - before;
  return after > EDGE ? 'on' : before >= LEAST ? 'back' : null;
}
