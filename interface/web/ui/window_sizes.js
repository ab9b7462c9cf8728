// Media queries of windows, as in the style sheets.

/** Windows in which the text stands beside the rows. */
export const WIDE = '(min-width: 761px)';
/** Windows with few lines, such as those of projectors and of phones on their side. */
export const LOW = '(max-height: 600px)';
