// Keys among the boxes: one tab stop, and arrows that move it. Enter is a click on a button.
const MOVES = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity};
const LINES = {ArrowUp: -1, ArrowDown: 1};

export function listenToBoxKeys(element) {
  element.addEventListener('keydown', event => {
    const box = event.target.closest('.box');
    if (!box || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const all = [...element.querySelectorAll('.box')];
    const next = MOVES[event.key] ? beside(all, box, MOVES[event.key]) : LINES[event.key] && above(all, box, LINES[event.key]);
    if (!next) return;
    event.preventDefault();
    moveTabStop(element, next);
    next.focus({preventScroll: true});
    next.scrollIntoView({block: 'nearest'});
  });
}

// One box is where Tab leads.
export function moveTabStop(element, box) {
  for (const other of element.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  box.tabIndex = 0;
}

const beside = (all, box, by) => all[Math.max(0, Math.min(all.length - 1, all.indexOf(box) + by))];

// The nearest box in the next row of boxes up or down; the same where there is none.
function above(all, box, by) {
  const {left, right, top, bottom} = box.getBoundingClientRect(), middle = (left + right) / 2;
  const found = all.map(other => ({other, at: other.getBoundingClientRect()}))
    .filter(({at}) => (by > 0 ? at.top >= bottom - 1 : at.bottom <= top + 1));
  const row = by > 0 ? Math.min(...found.map(({at}) => at.top)) : Math.max(...found.map(({at}) => at.bottom));
  const inRow = found.filter(({at}) => Math.abs((by > 0 ? at.top : at.bottom) - row) < 2);
  const distance = ({at}) => Math.abs((at.left + at.right) / 2 - middle);
  return inRow.sort((one, other) => distance(one) - distance(other))[0]?.other ?? box;
}
