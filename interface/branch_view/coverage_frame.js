// What stands around the rows: what they hold together, everything else, and the meter.
import {make, set, trim, write} from './dom.js';
import {costFigures, coverageSubject, likeliestLabels, coverageCaption, formatPercent, continuationLabel} from '../web/core/branch_sentences.js';

export function paintCover(cover, drawn, stored) {
  const own = drawn.rows.filter(row => !row.extra), stack = cover.querySelector('.stack');
  cover.hidden = !drawn.count;
  set(cover, 'data-coverage', drawn.coverage.p);
  set(cover, 'data-stored', stored || null);
  write(cover.querySelector('.count'), coverageSubject(drawn.count));
  write(cover.querySelector('.held'), formatPercent(drawn.coverage));
  write(cover.querySelector('.of'), coverageCaption(drawn));
  trim(stack, own.length);
  own.forEach((row, index) => {
    const slice = stack.children[index] || make('i', '', stack);
    slice.hidden = row.share.p === 0;
    slice.style.width = `${100 * row.share.p}%`;
    slice.style.opacity = 1 - 0.7 * index / own.length;
  });
}

export function paintRest(rest, drawn) {
  const {others} = drawn, more = rest.querySelector('.more');
  rest.hidden = !drawn.count;
  set(rest, 'data-share', drawn.rest.p);
  write(more.querySelector('.figure'), formatPercent(drawn.rest));
  write(more.querySelector('.likely'), likeliestLabels(others));
  more.disabled = !others.length;
  if (!others.length) set(more, 'aria-expanded', 'false');
  const list = rest.querySelector('.others');
  list.hidden = more.getAttribute('aria-expanded') !== 'true';
  if (!list.hidden) paintOthers(list, others);
}

function paintOthers(list, others) {
  trim(list, others.length);
  others.forEach((other, index) => {
    const tag = other.text === null || other.end ? 'SPAN' : 'BUTTON';
    let node = list.children[index];
    if (node?.tagName !== tag) {
      const made = makeOther(tag);
      if (node) node.replaceWith(made);
      else list.append(made);
      node = made;
    }
    paintOther(node, other, index);
  });
}

function makeOther(tag) {
  const node = document.createElement(tag);
  node.className = 'other';
  node.dir = 'auto';
  if (tag === 'BUTTON') Object.assign(node, {type: 'button', tabIndex: -1});
  make('span', 'word', node);
  make('small', 'odds', node);
  return node;
}

function paintOther(node, other, index) {
  const {text, ids, end, odds} = other, choosable = node.tagName === 'BUTTON';
  set(node, 'data-rest', index);
  set(node, 'data-text', choosable ? text : null);
  set(node, 'data-ids', ids.join(' '));
  set(node, 'data-p', odds.p);
  set(node, 'data-cut', odds.p === 0 || null);
  set(node, 'data-end', end || null);
  write(node.firstChild, continuationLabel(other));
  write(node.lastChild, formatPercent(odds));
}

export function paintMeter(meter, view, ahead) {
  meter.hidden = !view?.cost;
  set(meter, 'data-ahead', ahead);
  if (meter.hidden) return;
  for (const name of ['passes', 'tokens', 'seconds']) set(meter, `data-${name}`, view.cost[name]);
  const figures = costFigures(view, ahead);
  trim(meter, figures.length);
  figures.forEach(([figure, what], index) => {
    const item = meter.children[index] || make('span', '', meter);
    if (!item.firstChild) item.append(document.createElement('b'), ' ', make('span', '', item));
    write(item.firstChild, figure);
    write(item.lastChild, what);
  });
}
