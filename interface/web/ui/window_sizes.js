// Media queries of windows and devices, as in the style sheets.

/** Windows in which the text stands beside the rows. */
export const WIDE = '(min-width: 761px)';
/** Windows with few lines, such as those of projectors and of phones on their side. */
export const LOW = '(max-height: 600px)';
/** Devices without a mouse, whose screen keyboard opens where a text field has the focus. */
export const FINGER = '(hover: none)';
