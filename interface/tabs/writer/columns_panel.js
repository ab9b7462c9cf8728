// The Compare view: two to four columns, in which the one text goes on under several instructions or temperatures. A click
// in any column is a click among the branches of the page.
/** @import {BranchRemainder, BranchViewElement, Column, ColumnViews, RowSettings, ShowDetail} from '../../web/core/types.d.ts' */
import {EXAMPLE, FEWEST, MOST, columnsFrom, columnsOfRequest, firstsElsewhere, settingsOfColumn, sharedFirsts} from '../../web/core/compared_columns.js';
import {announce, announcedIn} from '../../web/ui/announce.js';
import {find, setAttribute} from '../../web/ui/elements.js';
import {spokenBeginning} from '../../web/core/branch_sentences.js';
import {continuedLetters} from '../../web/core/figures_and_labels.js';
import {textKey} from '../../web/core/shortcuts.js';
import {idsKey, viewToBeginWith} from '../../web/core/known_views.js';
import {dispatch, onDetail} from '../../web/ui/events.js';
import {ColumnView} from './column_view.js';

const HINT = 'Choose any token to write up to it.';
const NO_EDITS = 'Rows can be changed in the view Rows, not in columns.';

/**
 * Shows columns while it is `active`. It mirrors what the page's branch view is sent, and dispatches on that one what a
 * person chooses. Events: `writing` while an instruction is written, `change` when the columns are others, `choosing` right before
 * something in a column is accepted, with the rows of that column.
 */
export class ColumnsPanel extends EventTarget {
  active = false;
  /** @type {ColumnView[]} */
  #views = [];
  /** @type {Column[] | null} */
  #stored = null;     // columns that have not been shown yet
  /** @type {RowSettings} */
  #drawn = {};
  #before = '';       // the end of the text before the rows
  #veiled = false;    // whether the rows are hidden until the next word is guessed
  #clicked = -1;      // the column whose row was accepted last
  #keyed = 0;         // the column that was used last
  /** @type {{revision: number, views: Map<string, ColumnViews>}} */
  #ahead = {revision: -1, views: new Map()};   // what follows clicks on the rows of a revision

  /**
   * @param {HTMLElement} element
   * @param {BranchViewElement} branches the branch view of the page, which has no rows yet
   */
  constructor(element, branches) {
    super();
    this.element = element;
    this.branches = branches;
    this.container = find(element, '.columns');
    this.announcement = find(element, ':scope > .announcement');
    this.addButton = find(element, '.add', HTMLButtonElement);
    this.parts = [coverOf(branches), branches].map(part => /** @type {HTMLElement} */ (part.cloneNode(true)));
    this.addButton.addEventListener('click', () => this.#add());
    // Rows under other settings are announced also if they begin as those before.
    this.addEventListener('change', () => announce(this.announcement, ''));
    this.#mirror();
    this.container.addEventListener('edit', event => {
      /** @type {CustomEvent} */ (event).detail.because = NO_EDITS;
      event.preventDefault();
    });
    this.container.addEventListener('point', event => this.#point(/** @type {CustomEvent} */ (event)));
    this.container.addEventListener('focusin', event => this.#use(this.#views.findIndex(({element: own}) => own.contains(/** @type {Node} */ (event.target)))), {capture: true});
    element.addEventListener('keydown', event => this.#goToRows(event));
    for (const name of ['accept', 'ban', 'help', 'leave']) this.container.addEventListener(name, event => this.#forward(name, event));
  }

  /** The columns, as they are stored; null before there were any. */
  get columns() { return this.#views.length ? this.#views.map(({column}) => column) : this.#stored; }

  /** The columns of a request. */
  request() { return columnsOfRequest(this.columns ?? []); }

  /**
   * Take the columns of a document, a file or a link; the first ones, if it has none.
   * @param {unknown} value unchecked
   */
  set(value) {
    this.#stored = columnsFrom(value);
    this.#clear();
    this.show(this.active, null);
  }

  /**
   * Show or hide the columns.
   * @param {boolean} active
   * @param {string | null} instruction of the document: that of the first column, if there are no columns yet
   */
  show(active, instruction) {
    this.active = active;
    this.element.hidden = !active;
    this.#markDesk();
    if (!active) return;
    this.#stored ??= [{instruction: instruction ?? '', temperature: null}, {instruction: EXAMPLE, temperature: null}];
    if (!this.#views.length) this.#make();
  }

  /**
   * Show the views of a response.
   * @param {ColumnViews} answer
   * @param {ShowDetail & {revision: number}} detail of all columns
   */
  take({views, columns}, {pinned, note, ...detail}) {
    if (columns.length !== this.#views.length) return;
    this.#views.forEach((column, index) => {
      const view = views[columns[index]];
      column.view = view;
      if (view) column.send('show', {...detail, view, note: note ?? hintIn(detail.state, view.branches.length), pinned: index === this.#clicked ? pinned : null});
      else if (detail.state === 'settled') column.send('show', {...detail, state: 'empty', view: null});
    });
    this.#compare();
    this.#before = detail.before ?? '';
    if (detail.state === 'settled' && !this.#veiled) this.#announce({focused: true});
  }

  /**
   * Keep views that were prefetched.
   * @param {Record<string, ColumnViews>} ahead by the ids of the tokens that a click accepts
   * @param {{revision: number, tokens: number}} detail
   */
  keepAhead(ahead, {revision, tokens}) {
    if (revision !== this.#ahead.revision) this.#ahead = {revision, views: new Map()};
    for (const [key, views] of Object.entries(ahead)) this.#ahead.views.set(key, views);
    this.#showAhead(tokens);
  }

  /**
   * The views after accepting tokens of a revision, or null. Their rows may be shorter than asked for.
   * @param {number[]} ids
   * @param {number} revision
   */
  after(ids, revision) {
    const found = this.active && revision === this.#ahead.revision ? this.#ahead.views.get(idsKey(ids)) : undefined;
    return found && this.#canBegin(found) ? found : null;
  }

  /** @param {ColumnViews} found */
  #canBegin({views, columns}) {
    return columns.length === this.#views.length
      && this.#views.every(({column}, index) => viewToBeginWith(views[columns[index]] ?? undefined, settingsOfColumn(this.#drawn, column)));
  }

  /** @param {number} tokens that were prefetched */
  #showAhead(tokens) {
    const keys = [...this.#ahead.views].filter(([, views]) => this.#canBegin(views)).map(([key]) => key), known = new Set(keys);
    for (const view of this.#views) {
      const ready = view.rows.filter(({extra, pieces, ids}) => !extra && (!pieces.length || known.has(idsKey(ids.slice(0, pieces[0].tokens)))));
      view.send('ahead', {ready: ready.length, keys, tokens});
    }
  }

  /** The branch view of the column whose rows the keys of the text accept: the one that was used last. */
  get keyedColumn() { return this.active ? this.#views[this.#keyed]?.root ?? null : null; }

  /** The first column: what a guess is scored by. */
  get first() { return this.active ? this.#views[0] ?? null : null; }

  /** Whether a column shows rows of the present text. */
  get hasRows() { return this.active && this.#views.some(({root, rows}) => rows.length > 0 && !root.branchView.isStale()); }

  /** Give the focus to the column that was used last, or else to the first that has rows; false if none has. */
  focus() { return Boolean(this.keyedColumn?.branchView.focus()) || this.#views.some(({root}) => root.branchView.focus()); }

  /** The key that leads from the text to the rows leads from a column's fields to its own. @param {KeyboardEvent} event */
  #goToRows(event) {
    const from = /** @type {Node} */ (event.target), own = this.#views.find(({element, root}) => element.contains(from) && !root.contains(from));
    if (textKey(event, false)?.verb === 'rows' && own?.root.branchView.focus()) event.preventDefault();
  }

  /** @param {number} column that is used from now on */
  #use(column) {
    if (column < 0 || column === this.#keyed) return;
    this.keyedColumn?.branchView.giveUp();
    this.#keyed = column;
    this.#markKeyed();
    dispatch(this.branches, 'point', {text: null});   // the grey text is another one
  }

  #markKeyed() { this.#views.forEach((view, index) => view.mark(index === this.#keyed)); }

  /** The grey text shows what is pointed at in any column. @param {CustomEvent} event */
  #point({detail, target}) { dispatch(this.branches, 'point', {...detail, source: target}); }

  #mirror() {
    const {branches} = this;
    onDetail(branches, 'settings', settings => {
      this.#drawn = settings;
      for (const view of this.#views) view.draw(settings);
      this.#compare();
      // Another order may put other rows first. A new column has no rows yet: `take` announces it when it has.
      if (announcedIn(this.announcement) && this.#views.every(({rows}) => rows.length)) this.#announce();
    });
    onDetail(branches, 'veil', detail => {
      this.#veiled = Boolean(detail.veiled);
      for (const view of this.#views) view.veil(this.#veiled);
      if (this.#veiled) announce(this.announcement, '');
      this.#compare();
    });
    onDetail(branches, 'expect', detail => this.#send('expect', detail));
    onDetail(branches, 'state', detail => this.#send('state', detail));
    onDetail(branches, 'show', detail => this.#mirrorShown(detail));
  }

  /**
   * A view of the page is none of a column; the rest of an accepted branch belongs to the column of the click.
   * @param {ShowDetail} detail
   */
  #mirrorShown({view, pinned, note, ...detail}) {
    if (view) return;
    this.#views.forEach((column, index) => {
      const rest = /** @type {BranchRemainder | null} */ (index === this.#clicked ? pinned ?? null : null);
      const state = detail.state === 'settled' && !column.view ? 'empty' : detail.state;
      if (this.active) column.send('show', {...detail, state, view: null, note: note ?? hintIn(state), pinned: rest});
    });
    this.#compare();
  }

  /** @param {string} name @param {unknown} detail */
  #send(name, detail) {
    if (!this.active) return;
    for (const view of this.#views) view.send(name, detail);
    this.#compare();
  }

  /** @param {string} name @param {Event} event */
  #forward(name, event) {
    const {detail, target} = /** @type {CustomEvent} */ (event), column = this.#views.findIndex(({root}) => root === target);
    if (name === 'accept') {
      this.#clicked = column;
      this.#use(column);
      dispatch(this, 'choosing', this.#views[column].root.branchView.drawn());
    }
    const own = name === 'accept' ? {...detail, instruction: this.#views[column].column.instruction} : detail;
    if (!dispatch(this.branches, name, own, {bubbles: true, cancelable: true})) event.preventDefault();
  }

  #compare() {
    if (!this.active) return;
    const letters = sharedFirsts(this.#views.map(({rows}) => rows));
    const views = this.#views.map(({view, column, isComplete}) => ({view: isComplete ? view : null, settings: settingsOfColumn(this.#drawn, column)}));
    const firsts = firstsElsewhere(views);
    const whole = (/** @type {string} */ text) => continuedLetters(this.#before, text) + text;
    this.#views.forEach((view, index) =>
      view.compare(letters[index], this.#veiled ? [] : firsts[index].map(first => ({...first, text: first.text === null ? null : whole(first.text)}))));
  }

  /**
   * Announce how the columns begin, and with `focused` also the row that has the focus: its tokens may be others now.
   * @param {{focused?: boolean}} [options]
   */
  #announce({focused = false} = {}) {
    if (!this.active) return;
    dispatch(this.branches, 'announceConfirmed');   // what was done comes before its rows
    const counts = this.#views.map(({rows}, index) => `column ${index + 1}: ${rows[0] ? spokenBeginning(rows[0], this.#before, 1) || 'end' : 'no branches'}`);
    const sentence = `The likeliest beginnings, ${counts.join('; ')}.`;
    if (focused || !announcedIn(this.announcement).startsWith(sentence)) announce(this.announcement, `${sentence}${focused ? this.#focusedRow() : ''}`);
  }

  /** The row that has the focus as a sentence; empty if none has it. */
  #focusedRow() {
    const view = this.#views.find(({root}) => root.contains(document.activeElement));
    const element = document.activeElement?.closest('.branch'), row = element instanceof HTMLElement && view?.rows[Number(element.dataset.branch)];
    return row ? ` The row with the focus: ${spokenBeginning(row, this.#before) || 'end'}.` : '';
  }

  #add() {
    if (this.#views.length >= MOST) return;
    const view = this.#append({instruction: '', temperature: null});
    this.#renumber();
    view.field.focus();
    dispatch(this, 'change');
  }

  /** @param {ColumnView} view */
  #remove(view) {
    if (this.#views.length <= FEWEST) return;
    const index = this.#views.indexOf(view);
    view.stop();
    view.element.remove();
    this.#views.splice(index, 1);
    this.#clicked = -1;
    this.#keyed = 0;
    this.#renumber();
    this.#views[Math.min(index, this.#views.length - 1)].field.focus();
    dispatch(this, 'change');
  }

  #make() {
    for (const column of this.#stored ?? []) this.#append(column);
    this.#renumber();
  }

  #clear() {
    for (const view of this.#views) view.stop();
    this.#views = [];
    this.#clicked = -1;
    this.#keyed = 0;
    this.container.replaceChildren();
  }

  /** @param {Column} column */
  #append(column) {
    const view = new ColumnView(column, this.parts);
    this.#views.push(view);
    this.container.append(view.element);
    view.veil(this.#veiled);
    view.draw(this.#drawn);
    view.addEventListener('writing', () => dispatch(this, 'writing'));
    view.addEventListener('change', () => {
      view.draw(this.#drawn);
      dispatch(this, 'change');
    });
    view.addEventListener('remove', () => this.#remove(view));
    return view;
  }

  #renumber() {
    this.#views.forEach((view, index) => view.number(index, this.#views.length > FEWEST));
    this.#markKeyed();
    this.addButton.disabled = this.#views.length >= MOST;
    this.#markDesk();
  }

  /** Tell the style sheet of the page how many columns are shown. */
  #markDesk() {
    const desk = this.element.closest('.desk');
    if (desk) setAttribute(desk, 'data-columns', this.active && this.#views.length);
  }
}

/**
 * The sentence under a column's rows, also while these grow. What a share is stands once, under all columns.
 * @param {string | undefined} state
 * @param {number} [rows]
 */
const hintIn = (state, rows = 0) => (state === 'settled' || (state === 'thinking' && rows > 0) ? HINT : null);

/**
 * The summary above the rows of a branch view: the first one in its nearest ancestor that has any.
 * @param {HTMLElement} branches
 */
function coverOf(branches) {
  let around = branches.parentElement;
  while (around && !around.querySelector('.cover')) around = around.parentElement;
  return find(around ?? branches, '.cover');
}
