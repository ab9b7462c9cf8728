// Rows of branches as elements. Elements are used again, so that a paint is quick and the focus stays.
/** @import {BranchViewState} from '../web/core/branch_view_state.js' */
/** @import {Fork} from '../web/core/row_forks.js' */
/** @import {DrawnRow, DrawnView, Odds, RowPiece} from '../web/core/types.d.ts' */
/** @import {Overlap} from '../web/core/token_spacing.js' */
import {
  AT_MOST, PINNED_SENTENCE, REST_OF_CHOICE, ROW_CHANGING, SHARE_MEANING, changedPhrase, cutPhrase, cutSentence, endSentence, pieceFigure,
  pinnedPhrase, shareLabel, stopPhrase, stopSentence,
} from '../web/core/branch_sentences.js';
import {
  PARTIAL_TOKEN_SIGN, continuedLetters, formatKnown, formatPercent, isSigns, spokenOdds, spokenText, visibleText,
} from '../web/core/figures_and_labels.js';
import {bracketParts, forkOf, forkSentence, partingPhrase, samePhrase, sameRowAbove, sameSentence} from '../web/core/row_forks.js';
import {isJoined, tokenOverlaps} from '../web/core/token_spacing.js';
import {isPartOfWord, sharedButtons} from '../web/core/row_tokens.js';
import {appendNew, childrenOf, find, findAll, make, setAttribute, setText, trimChildren} from '../web/ui/elements.js';
import {isInert, isPrefetched} from '../web/core/branch_view_state.js';

const KEYS = 9;         // rows that a digit accepts
const LONG_FIGURE = 7;  // characters of a share that the column has room for
const MOST_SIGNS = 3;   // signs for tokens without a whole character
const BRACKET = 'A fork: here, where your text ends, it can go on in more than one way. Each row takes one.';

/** @param {number} number of a row */
const keySentence = number => `Row ${number}: Alt+${number} in the text accepts its next word, and so does ${number} while the focus is on a row.`;

/**
 * Draw the rows, all but their names: see `nameRows`.
 * @param {HTMLElement} container @param {DrawnView<DrawnRow>} drawn @param {string} typed the end of the text before the rows
 */
export function paintRows(container, drawn, typed) {
  const {rows} = drawn;
  // The columns of Compare have letters in place of the numbers of the keys, and no bracket.
  const hasKeys = !container.closest('.columns');
  trimChildren(container, rows.length);
  const elements = childrenOf(container);
  const forks = rows.map((_, index) => forkOf(rows, index));
  const same = rows.map((_, index) => sameAbove(drawn, index));
  const parts = hasKeys ? bracketParts(rows.map((_, index) => forks[index] !== null || same[index] !== null)) : [];
  rows.forEach((row, index) => {
    paintRow(elements[index] ?? makeRow(container, index), row, {index, typed, fork: forks[index], same: same[index], bracket: parts[index] ?? null, hasKeys});
  });
}

/** The index of the row above that has the same tokens, see `sameRowAbove`; null while rows grow. @param {DrawnView<DrawnRow>} drawn @param {number} index */
const sameAbove = ({rows, growing}, index) => (growing ? null : sameRowAbove(rows, index));

/** @param {HTMLElement} container @param {number} index */
function makeRow(container, index) {
  const node = appendNew(container, 'div', 'branch');
  node.dataset.branch = String(index);
  node.setAttribute('role', 'group');
  appendNew(node, 'kbd', 'key').setAttribute('aria-hidden', 'true');
  const share = appendNew(node, 'div', 'share');
  appendNew(share, 'span', 'figure');
  appendNew(appendNew(share, 'span', 'bar'), 'i', 'fill');
  const bracket = makeTipped('', 'bracket', BRACKET);
  bracket.ariaHidden = 'true';   // the names of the rows say where they part
  node.append(bracket);
  Object.assign(appendNew(node, 'div', 'tokens'), {dir: 'auto', tabIndex: -1});
  const onward = make('span', {className: 'onward', ariaHidden: 'true'});
  node.append(onward);
  return node;
}

/**
 * Write a share; a long one, as "< 0.0001 %", is smaller, so that it stays in its column.
 * @param {HTMLElement} element
 * @param {string} figure
 */
export function paintFigure(element, figure) {
  setText(element, figure);
  setAttribute(element, 'data-long', figure.length > LONG_FIGURE);
}

/**
 * The letters of the text's last word that a row continues. A pinned row continues the inserted text: they do not stand before it.
 * @param {DrawnRow} row
 * @param {string} typed the end of the text before the rows
 */
const lettersBefore = (row, typed) => (row.pinned ? '' : continuedLetters(typed, row.pieces[0]?.text));

/** What a row's share is. @param {DrawnRow} row @param {string} letters */
const labelOf = (row, letters) => (row.changing ? ROW_CHANGING : shareLabel(row, letters));

/**
 * Name the rows for screen readers; the name also says that a row can no longer be accepted, and why.
 * @param {HTMLElement} container
 * @param {BranchViewState} state
 */
export function nameRows(container, state) {
  const elements = childrenOf(container), typed = state.shown?.before ?? '', {rows} = state.drawn;
  rows.forEach((row, index) => {
    const age = isInert(state, row) ? (state.textChanged ? 'of an older text' : 'from before your change') : '';
    const fork = forkOf(rows, index), parting = fork && partingPhrase(fork, row, typed);
    const label = spokenOdds(labelOf(row, lettersBefore(row, typed)));
    const {same: column} = elements[index].dataset, letter = column && `letter ${column}`;   // of a row in a column
    const above = sameAbove(state.drawn, index), double = above !== null && samePhrase(above);
    const own = [row.pinned && REST_OF_CHOICE, parting, changedPhrase(row, typed), label, cutPhrase(row), stopPhrase(row), double, letter];
    setAttribute(elements[index], 'aria-label', [`Branch ${index + 1}`, age, ...own].filter(Boolean).join(', '));
  });
}

/**
 * @param {HTMLElement} node
 * @param {DrawnRow} row
 * @param {{index: number, typed: string, fork: Fork | null, same: number | null, bracket: string | null, hasKeys: boolean}} context
 */
function paintRow(node, row, {index, typed, fork, same, bracket, hasKeys}) {
  const figure = row.changing ? '…' : formatKnown(row.share);
  const letters = lettersBefore(row, typed), label = labelOf(row, letters);
  setAttribute(node, 'data-share', row.share.p);
  setAttribute(node, 'data-path-probability', row.path.p);
  setAttribute(node, 'data-end', String(row.ended));
  setAttribute(node, 'data-cut', row.cut);
  setAttribute(node, 'data-pinned', row.pinned);
  setAttribute(node, 'data-changing', row.changing);
  setAttribute(node, 'data-bracket', bracket);
  setAttribute(node, 'data-next-word', row.next_word?.text ?? null);
  setAttribute(find(node, '.share'), 'data-tip', row.changing ? label : `${label}. ${SHARE_MEANING}${row.share.bound ? ` ${AT_MOST}` : ''}`);
  setText(find(node, '.key'), index < KEYS ? String(index + 1) : '');
  setAttribute(find(node, '.key'), 'data-tip', hasKeys && index < KEYS ? keySentence(index + 1) : null);
  paintFigure(find(node, '.figure'), figure);
  find(node, '.fill').style.width = `${100 * row.share.p}%`;
  paintTokens(find(node, '.tokens'), row, {letters, fork, same});
}

/** Whether a row begins with all the tokens that are drawn: then it stays scrolled as it is. @type {(tokens: HTMLElement, row: DrawnRow) => boolean} */
const onlyGrows = (tokens, {pieces}) => findAll(tokens, '.token').every((button, index) => button.dataset.ids === pieces[index]?.ids.join(' '));

/**
 * @param {HTMLElement} tokens
 * @param {DrawnRow} row
 * @param {{letters: string, fork: Fork | null, same: number | null}} context `letters`: of the word that the row continues; `same`: see
 *   `sameRowAbove`
 */
function paintTokens(tokens, row, {letters, fork, same}) {
  if (tokens.hasAttribute('data-scrolled') && !onlyGrows(tokens, row)) tokens.scrollLeft = 0;
  for (const sign of findAll(tokens, '.sign, .end, .typed, .stopped, .fork')) sign.remove();
  trimChildren(tokens, row.pieces.length);
  const elements = childrenOf(tokens);
  const shared = sharedButtons(row), overlaps = tokenOverlaps(row.pieces, letters);
  const buttons = row.pieces.map((piece, index) => {
    const button = elements[index] ?? makeToken(tokens, index);
    paintToken(button, piece, index ? '' : letters, pieceFigure(row, piece, !index) + (fork?.piece === index ? `, a fork: here it parts from branch ${fork.row + 1}` : ''));
    setAttribute(button, 'data-shared', index < shared);
    setAttribute(button, 'data-signs', isSigns(piece.text));
    setAttribute(button, 'data-joined', isJoined(row.pieces, index, letters));
    setAttribute(button, 'data-overlaps', overlaps[index].start + overlaps[index].end > 0);
    setAttribute(button, 'style', underline(piece.odds.p) + overlapStyle(overlaps[index]));
    return button;
  });
  if (fork) buttons[fork.piece].before(makeTipped('', 'fork', forkSentence(fork)));
  if (letters) tokens.prepend(makeTyped(letters));
  row.pieces.forEach((piece, index) => { if (piece.unsaid) buttons[index].before(makeSign(piece.unsaid)); });
  if (row.unsaid) tokens.append(makeSign(row.unsaid));
  if (row.end) tokens.append(makeEnd(row.end, !buttons.length));
  if ((row.open && !row.limit && !row.unfollowed) || isPartOfWord(row)) tokens.append(makeOpen());
  if (pinnedPhrase(row)) tokens.append(makeStop(pinnedPhrase(row), PINNED_SENTENCE, 'stopped rest-of-choice'));
  if (cutPhrase(row)) tokens.append(makeStop(cutPhrase(row), cutSentence(row), 'stopped excluded'));
  if (stopPhrase(row)) tokens.append(makeStop(stopPhrase(row), stopSentence(row)));
  if (same !== null) tokens.append(makeStop(samePhrase(same), sameSentence(same)));
  // The arrows reach a row without buttons too.
  if (!buttons.length) findAll(tokens, '[role=note]').slice(0, 1).forEach(note => { note.tabIndex = -1; });
}

/** @param {HTMLElement} tokens @param {number} index */
function makeToken(tokens, index) {
  const button = make('button', {className: 'token', tabIndex: -1});
  button.dataset.token = String(index);
  tokens.append(button);
  return button;
}

/** @param {HTMLElement} button @param {RowPiece} piece @param {string} letters of the word that it continues @param {string} figure */
function paintToken(button, {text, ids, odds, isWord, isEdited, isChanging}, letters, figure) {
  setAttribute(button, 'data-text', text);
  setAttribute(button, 'data-ids', ids.join(' '));
  setAttribute(button, 'data-p', odds.p);
  setAttribute(button, 'data-cut', odds.p === 0 && !isChanging);
  setAttribute(button, 'data-word', isWord);
  setAttribute(button, 'data-edited', isEdited);
  setText(button, visibleText(text));
  const before = letters ? `${letters}, continued by ` : '';
  const marks = `${isWord ? ', the word you look for' : ''}${isEdited ? ', changed by you' : ''}`;
  setAttribute(button, 'aria-label', `${before}${spokenText(text)}${isChanging ? '' : `, ${spokenOdds(figure)}`}${marks}`);
}

/**
 * A likelier token has a heavier and more colourful underline, which is visible without colour too.
 * @param {number} p
 */
const underline = p => `--odds: ${Math.round(18 + 82 * Math.sqrt(p))}%; --weight: ${(1 + 4 * Math.sqrt(p)).toFixed(1)}px`;

/** @param {Overlap} overlap @returns {string} */
const overlapStyle = ({start, end}) => (start + end > 0 ? `; --over-start: ${start.toFixed(2)}rem; --over-end: ${end.toFixed(2)}rem` : '');

/**
 * A sign that is no button, with the sentence that explains it.
 * @type {(text: string, className: string, tip: string) => HTMLElement}
 */
function makeTipped(text, className, tip) {
  const made = make('span', {className, text});
  made.dataset.tip = tip;
  return made;
}

/** @param {string} letters that stand in the text already */
const makeTyped = letters => makeTipped(`${letters}·`, 'typed', 'This stands in your text already: the row continues the word.');

/** The sign of a row that has not reached the end that is asked for, or is one word that may be longer. */
const makeOpen = () => makeTipped('…', 'sign', 'It goes on: its end is not known.');

/** @type {(phrase: string, sentence: string, className?: string) => HTMLElement} a note at the end of a row, which the sentence explains */
function makeStop(phrase, sentence, className = 'stopped') {
  const chip = makeTipped(phrase, className, sentence);
  chip.setAttribute('role', 'note');
  chip.setAttribute('aria-label', sentence);
  return chip;
}

/** @param {number} count of tokens without a whole character */
const makeSign = count =>
  makeTipped(PARTIAL_TOKEN_SIGN.repeat(Math.min(count, MOST_SIGNS)), 'sign', 'The model’s token here holds no whole character: there is nothing to insert.');

/** @param {Odds} odds of the end token @param {boolean} isAlone whether the row has no token */
function makeEnd(odds, isAlone) {
  const chip = makeTipped(`end ${formatPercent(odds)}${isAlone ? ': the text ends here' : ''}`, 'end', endSentence(odds, isAlone));
  setAttribute(chip, 'data-alone', isAlone);
  chip.setAttribute('role', 'note');
  chip.setAttribute('aria-label', endSentence(odds, isAlone));
  return chip;
}

/**
 * Mark the rows that can no longer be accepted.
 * @param {HTMLElement} container
 * @param {BranchViewState} state
 */
export function markInert(container, state) {
  const elements = childrenOf(container);
  state.drawn.rows.forEach((row, index) => setAttribute(elements[index], 'data-inert', isInert(state, row)));
}

/**
 * Put a dot on each token whose view is known already.
 * @param {HTMLElement} container
 * @param {BranchViewState} state
 */
export function markPrefetched(container, state) {
  const elements = childrenOf(container);
  state.drawn.rows.forEach((row, index) => {
    const buttons = findAll(elements[index], '.token');
    row.pieces.forEach((piece, token) => setAttribute(buttons[token], 'data-ahead', isPrefetched(state, row, piece)));
  });
}

/**
 * Mark the row that is accepted once it is complete.
 * @param {HTMLElement} container
 * @param {number} awaited its index; -1 for none
 */
export function markAwaited(container, awaited) {
  childrenOf(container).forEach((element, index) => setAttribute(element, 'data-awaited', index === awaited));
}
