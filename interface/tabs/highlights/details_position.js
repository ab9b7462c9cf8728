// Where the details of a word stand: under its lines or above them, so that they never cover the word.
const MARGIN = 8;   // pixels

/**
 * The top of the details and the height that they may have. Where they fit on neither side, the side with more room is theirs.
 * @param {Pick<DOMRect, 'top' | 'bottom'>[]} lines the rectangles of the word
 * @param {number} height of the details
 * @param {number} viewport its height
 */
export function verticalPosition(lines, height, viewport) {
  const first = Math.min(...lines.map(({top}) => top)), last = Math.max(...lines.map(({bottom}) => bottom));
  const below = viewport - last - 2 * MARGIN, above = first - 2 * MARGIN, under = height <= below || below >= above;
  const most = Math.max(0, under ? below : above);
  return {top: under ? last + MARGIN : first - MARGIN - Math.min(height, most), most};
}

/**
 * The left edge of the details: that of the word, unless they would leave the window.
 * @param {number} left of the word
 * @param {number} width of the details
 * @param {number} viewport its width
 */
export const horizontalPosition = (left, width, viewport) => Math.max(MARGIN, Math.min(left, viewport - width - MARGIN));
