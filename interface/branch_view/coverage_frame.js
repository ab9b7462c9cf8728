// What surrounds the rows: what they hold together, the other beginnings, and the meter.
/** @import {DrawnOther, DrawnRow, DrawnView, View} from '../web/core/types.d.ts' */
import {bannedCaption, bannedSentence, costFigures, coverageCaption, coverageSubject, elseTip, nothingElse} from '../web/core/branch_sentences.js';
import {
  formatKnown, formatNumber, formatPercent, likeliestLabels, otherLabel, spokenLabel, spokenOdds, spokenOther, spokenSentence, unlistedSentence,
} from '../web/core/figures_and_labels.js';
import {appendNew, childrenOf, find, make, setAttribute, setSpokenText, setText, trimChildren} from '../web/ui/elements.js';
import {paintFigure} from './paint_rows.js';
import {isChoosable} from '../web/core/branch_view_state.js';
import {areAdded} from '../web/core/shares.js';
import {STEERING_MEANING, steeringSentence} from '../web/core/word_odds.js';

/**
 * @param {HTMLElement} cover
 * @param {DrawnView<DrawnRow>} drawn
 * @param {{ways: number, stored: boolean, leavesOutOthers: boolean}} about how many rows the bracket joins, whether the view is the
 *   stored example, and whether its rows may leave out other tokens than those that are awaited
 */
export function paintCover(cover, drawn, {ways, stored, leavesOutOthers}) {
  const own = drawn.rows.filter(row => !row.extra), stack = find(cover, '.stack'), ofTokens = drawn.wordError === null;   // words exclude each other
  cover.hidden = !drawn.count;
  setAttribute(cover, 'data-coverage', drawn.coverage.p);
  setAttribute(cover, 'data-stored', stored);
  setText(find(cover, '.count'), coverageSubject(drawn.count, drawn.rows));
  setText(find(cover, '.held'), formatKnown(drawn.coverage));
  setText(find(cover, '.of'), coverageCaption(drawn));
  setText(find(cover, '.ways'), `${formatNumber(ways)} ways`);
  const without = find(cover, '.without'), caption = bannedCaption(drawn);
  setSpokenText(without, caption, spokenSentence(caption));
  setAttribute(without, 'data-tip', bannedSentence(drawn) || null);   // also what is cut off at its end
  without.hidden = !caption;
  without.style.visibility = leavesOutOthers ? 'hidden' : '';   // it keeps its line: in a column the rows below would move
  const odds = find(cover, '.word-odds'), steering = steeringSentence(drawn);
  setText(odds, steering);
  setAttribute(odds, 'data-tip', `${steering}\n${STEERING_MEANING}`);   // also what is cut off at its end
  setAttribute(odds, 'aria-description', STEERING_MEANING);
  odds.hidden = !steering;
  setAttribute(cover, 'data-said', [caption && 'ban', steering && 'odds'].filter(Boolean).join(' ') || null);
  trimChildren(stack, own.length);
  const slices = childrenOf(stack), added = areAdded(own);
  own.forEach((row, index) => {
    const slice = slices[index] ?? appendNew(stack, 'i');
    slice.hidden = row.share.p === 0 || (ofTokens && !added[index]);
    slice.style.width = `${100 * row.share.p}%`;
    slice.style.opacity = String(1 - 0.7 * index / own.length);
  });
}

/**
 * @param {HTMLElement} rest
 * @param {DrawnView<DrawnRow>} drawn
 * @param {boolean} open whether the list is open
 * @param {string} typed the end of the text before the rows
 */
export function paintRest(rest, drawn, open, typed) {
  const {others} = drawn, more = find(rest, '.more', HTMLButtonElement), list = find(rest, '.others');
  rest.hidden = !drawn.count;
  setAttribute(rest, 'data-share', drawn.rest.p);
  paintFigure(find(more, '.figure'), formatKnown(drawn.rest));
  const likeliest = others.length ? likeliestLabels(others, typed) : {labels: [nothingElse(drawn)], more: '', spoken: nothingElse(drawn)};
  paintLabels(find(more, '.likely'), likeliest.labels);
  setText(find(more, '.and-more'), likeliest.more);
  setAttribute(more, 'aria-label', `${spokenOdds(formatKnown(drawn.rest))} everything else: ${likeliest.spoken}`);
  for (const name of ['data-tip', 'aria-description']) setAttribute(more, name, elseTip(others.length > 0));
  more.disabled = !others.length;
  setAttribute(more, 'aria-expanded', String(open));
  list.hidden = !open;
  if (open || !others.length) paintOthers(list, others, typed);
  const unlisted = find(rest, '.unlisted');
  setText(unlisted, unlistedSentence(drawn.rest, others));
  unlisted.hidden = !open || !unlisted.textContent;
}

/** Write each label into an element of its own, so that a line breaks between them. @param {HTMLElement} line @param {string[]} labels */
function paintLabels(line, labels) {
  trimChildren(line, labels.length);
  const elements = childrenOf(line);
  labels.forEach((label, index) => setText(elements[index] ?? appendNew(line, 'span'), label));
}

/** @param {HTMLElement} list @param {DrawnOther[]} others @param {string} typed */
function paintOthers(list, others, typed) {
  trimChildren(list, others.length);
  const elements = childrenOf(list), count = others.filter(isChoosable).length;
  let number = 0;   // of the button
  others.forEach((other, index) => {
    const tag = isChoosable(other) ? 'button' : 'span', present = elements[index];
    if (tag === 'button') number += 1;
    const position = `${formatNumber(number)} of ${formatNumber(count)}`;
    if (present?.localName === tag) {
      paintOther(present, other, {index, typed, position});
      return;
    }
    const made = makeOther(tag);
    if (present) present.replaceWith(made);
    else list.append(made);
    paintOther(made, other, {index, typed, position});
  });
}

/** @param {'button' | 'span'} tag */
function makeOther(tag) {
  const properties = {className: 'other', dir: 'auto', ...(tag === 'button' ? {tabIndex: -1} : {})};
  return make(tag, properties, make('span', {className: 'word'}), make('small', {className: 'odds'}));
}

/**
 * @param {HTMLElement} node
 * @param {DrawnOther} other
 * @param {{index: number, typed: string, position: string}} context `position`: among the buttons, as lists say it
 */
function paintOther(node, other, {index, typed, position}) {
  const {text, ids, end, odds} = other;
  setAttribute(node, 'data-rest', index);
  setAttribute(node, 'data-text', isChoosable(other) ? text : null);
  setAttribute(node, 'data-ids', ids.join(' '));
  setAttribute(node, 'data-p', odds.p);
  setAttribute(node, 'data-cut', odds.p === 0);
  setAttribute(node, 'data-end', end);
  setText(find(node, '.word'), otherLabel(other, typed));
  setText(find(node, '.odds'), formatPercent(odds));
  setAttribute(node, 'aria-label', isChoosable(other) ? `${spokenOther(other, typed)}, ${formatPercent(odds)}, ${position}` : null);
  setAttribute(node, 'data-tip', isChoosable(other) ? null : `${spokenLabel(other)}: it cannot be inserted`);
}

/**
 * @param {HTMLElement} meter
 * @param {View | undefined} view
 * @param {number} ahead tokens that were prefetched
 */
export function paintMeter(meter, view, ahead) {
  meter.hidden = !view?.cost;
  setAttribute(meter, 'data-ahead', ahead);
  if (!view?.cost) return;
  const {alone, cost} = view, {passes, tokens, seconds} = cost;
  for (const [name, value] of Object.entries({passes, tokens, seconds})) setAttribute(meter, `data-${name}`, value);
  const figures = costFigures({cost, alone}, ahead);
  trimChildren(meter, figures.length);
  const items = childrenOf(meter);
  figures.forEach(([figure, explanation], index) => {
    const item = items[index] ?? appendNew(meter, 'span');
    if (!item.firstChild) item.append(make('b'), ' ', make('span'));
    setText(find(item, 'b'), figure);
    setText(find(item, 'span'), explanation);
  });
}
