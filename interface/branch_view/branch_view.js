// The branch view on its element: it takes events, draws its state, and dispatches what a person chooses. It knows no other
// part of the page and sends no requests.
/**
 * @import {AcceptDetail, BranchViewElement, BranchViewHandle, Choice, ChoiceSource, ComponentArguments, DrawnRow, RowEdit} from '../web/core/types.d.ts'
 */
/** @import {FocusPosition} from './row_keys.js' */
/** @import {BranchViewEvent, BranchViewState, Target} from '../web/core/branch_view_state.js' */
import {
  INITIAL_STATE, choiceAt, describe, isBeforeChange, isCurrent, isInert, isShownViewOld, isStale, leavesOutOthers, noteOf, otherOddsOf, reduce, saysRefusal,
} from '../web/core/branch_view_state.js';
import {Pointing} from './pointing.js';
import {ROWS_HAVE_FOCUS, ROW_CHANGING, ROW_GONE, TAB_LEADS_ON, onlyEndsSentence, refusedRowSentence} from '../web/core/branch_sentences.js';
import {RowEditor} from './row_editor.js';
import {KeptHeight} from './kept_height.js';
import {RowScrolling} from './row_scrolling.js';
import {awaitedIndex, isWhole, rowToAwait} from '../web/core/awaited_row.js';
import {LOW, WIDE} from '../web/ui/window_sizes.js';
import {SLOWEST_PAINT, afterPaint, dispatch, onDetail} from '../web/ui/events.js';
import {coverPlaceOf} from '../web/ui/click_cover.js';
import {announce, announcedIn} from '../web/ui/announce.js';
import {find, findAll, scrollBehavior, setAttribute, setSpokenText, setText} from '../web/ui/elements.js';
import {waysSentence} from '../web/core/row_forks.js';
import {focusAt, focusFirst, focusPosition, keepTabStop, listenToRowKeys} from './row_keys.js';
import {NOTHING_TYPED, editOf, replacementText} from '../web/core/row_edits.js';
import {listenToClicks} from './clicks.js';
import {listenToHolds} from '../web/ui/holds.js';
import {markAwaited, markInert, markPrefetched, nameRows, paintRows} from './paint_rows.js';
import {EXAMPLE_IS_FIXED, nextWordEnd} from '../web/core/choice.js';
import {quotedText, spokenBreaks, spokenSentence} from '../web/core/figures_and_labels.js';
import {paintCover, paintMeter, paintRest} from './coverage_frame.js';
import {CHOICES, targetOf} from './targets.js';

const LINE = 24;                     // pixels of the note that must be seen
const HELD_SPACE = 8;                // pixels between a button that is held and the note
/** The position of the first token of the first row. */
const FIRST_TOKEN = {line: 0, column: 0, token: true};
/** What the place of the note depends on. */
const FLOATS = /** @type {const} */ (['drawn', 'pointed', 'awaited', 'refusal', 'status']);
const ROWS_REST = 500;       // milliseconds after the last change of the settings until rows are announced
const ROWS_LATE = 1500;      // milliseconds that an action waits for its rows, to be announced with them
const ROWS_VERY_LATE = 3500;  // milliseconds after that until it is announced that they are still being computed
const REFUSAL_TIME = 2500;   // milliseconds that a refusal is shown

/**
 * Connect a branch view to its element. Gradio's value is the detail of a `show` event, or null.
 * @param {Pick<ComponentArguments, 'element' | 'props' | 'watch'>} component
 */
export function mount({element, props, watch}) {
  const root = find(element, '.branch-view'), view = new BranchView(root, find(element, '.cover'));
  onDetail(root, 'show', detail => view.update({type: 'show', detail}));
  onDetail(root, 'expect', ({revision, textChanged}) => view.update({type: 'expect', revision, textChanged}));
  onDetail(root, 'settings', settings => view.update({type: 'settings', settings}));
  onDetail(root, 'state', ({state, note}) => view.update({type: 'status', state, note}));
  onDetail(root, 'ahead', ({ready, keys, tokens}) => view.update({type: 'ahead', ready, keys, tokens}));
  onDetail(root, 'announceConfirmed', () => view.update({type: 'announceConfirmed'}));
  onDetail(root, 'announceTab', ({text, leadsOn}) => view.update({type: 'announceTab', text, leadsOn}));
  onDetail(root, 'confirm', ({kind, text}) => view.update({type: 'confirm', kind, text}));
  onDetail(root, 'follow', ({edit = null, verb = 'take'}) => view.follow(edit, verb));
  onDetail(root, 'refuse', ({because}) => view.refuse(because));
  onDetail(root, 'veil', ({veiled}) => view.update({type: 'veil', veiled}));
  const showValue = () => { if (props.value) view.update({type: 'show', detail: props.value}); };
  watch('value', showValue);
  showValue();
  dispatch(root, 'mounted', null, {bubbles: true});
}

/** Draws the state of one branch view, and turns a person's actions into events. */
export class BranchView {
  /** @type {BranchViewState} */
  state = INITIAL_STATE;
  /**
   * The text that was last dispatched as pointed at.
   * @type {string | null | undefined}
   */
  #pointedText;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #refusalTimer;
  #refusal = new AbortController();   // aborted when the sentence of a refusal ends: nothing may end a later one early
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #rowsTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #confirmedTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #waitTimer;
  #refusals = 0;   // how many were announced
  #announcedTab = '';   // what Tab inserts as far as it was announced and painted
  /**
   * Where the focus was when a paint removed its button and all others; a later paint restores it.
   * @type {ReturnType<typeof focusPosition>}
   */
  #lostFocus = null;
  /**
   * The event of a growing view that is not drawn yet, see `#lacksFocused`; null if there is none.
   * @type {BranchViewEvent | null}
   */
  #later = null;
  /**
   * Within `drawOnce`, the types of the events that are not drawn yet; null elsewhere, where each event is drawn at once.
   * @type {BranchViewEvent['type'][] | null}
   */
  #undrawn = null;
  #beginsAgain = false;   // whether the focus goes to the first of the next rows: nothing was left of the row that was accepted by key
  /**
   * The position from which the focus follows a row, and the column where it goes; null for what was written or is back.
   * @type {{line: number, column: number, goal: number | null} | null}
   */
  #follows = null;

  /**
   * @param {HTMLElement} root
   * @param {HTMLElement} cover the summary above the rows
   */
  constructor(root, cover) {
    this.root = root;
    this.readOnly = root.matches('[data-read-only]');
    this.state = {...INITIAL_STATE, readOnly: this.readOnly};
    this.cover = cover;
    this.rows = find(root, '.rows');
    this.rest = find(root, '.rest');
    this.note = find(root, '.note');
    this.meter = find(root, '.meter');
    this.announcement = find(root, '.announcement');
    this.tabAnnouncement = find(root, '.tab-announcement');
    this.scrolling = new RowScrolling(this.rows);
    this.keptHeight = new KeptHeight(this.rows);
    this.editor = new RowEditor(root, (row, piece, typed) => this.#change(row, piece, typed));
    this.pointing = new Pointing(root, target => this.update({type: 'point', target}));
    // When the focus has moved, see `#lacksFocused`.
    root.addEventListener('focusout', () => setTimeout(() => { if (this.#later) this.update(this.#later); }));
    listenToHolds(root, CHOICES);
    listenToClicks(this);
    listenToRowKeys(root, {
      takeWord: branch => this.#takeWord(branch),
      ban: button => this.ban(targetOf(button)),
      edit: button => this.edit(targetOf(button)),
      help: () => dispatch(root, 'help', null, {bubbles: true}),
      leave: () => dispatch(root, 'leave', null, {bubbles: true}),
    });
    /** @type {BranchViewElement} */ (root).branchView = this.#handle();
  }

  /** @returns {BranchViewHandle} */
  #handle() {
    return {
      rows: () => this.state.drawn.rows,
      state: () => this.state.status.state,
      isStale: () => isStale(this.state),
      nameRows: () => nameRows(this.rows, this.state),
      awaitsRows: () => this.state.status.state === 'thinking' && (!this.state.shown || isShownViewOld(this.state)),
      drawn: () => this.state.drawn,
      expected: () => this.state.expectedRevision,
      focus: () => this.#focusRows(),
      isVeiled: () => this.state.veiled,
      announcedTab: () => this.#announcedTab,
      nextWord: branch => this.#nextWordEnd(branch),
      choiceOf: (branch, piece) => choiceAt(this.state, {branch, piece}),
      choose: (branch, piece, source) => this.choose(branch, piece, source),
      accept: (choice, source) => this.accept(choice, source),
      point: target => this.update({type: 'point', target}),
      drawOnce: run => this.drawOnce(run),
      progress: () => noteOf(this.state).progress,
      banLabel: () => this.#banLabel(),
      banPointed: () => this.banPointed(),
      choosePointed: () => this.accept(choiceAt(this.state, this.state.pointed), {byKeyboard: true, pointer: null}),
      chooseWhole: branch => this.#chooseWhole(branch),
      acceptAwaited: () => this.#acceptAwaited(),
      giveUp: () => {
        const {awaited} = this.state;
        this.update({type: 'giveUp'});
        return awaited !== null;
      },
    };
  }

  /** Focus the first button, and say so where it has the focus already. Returns whether there is one. */
  #focusRows() {
    const from = document.activeElement;
    // A listener that shows the branches in another way takes the focus and cancels the event.
    const isThere = !dispatch(this.root, 'enter', null, {cancelable: true}) || focusFirst(this.root);
    if (isThere && document.activeElement === from) this.refuse(ROWS_HAVE_FOCUS);
    return isThere;
  }

  /** @param {number} branch */
  #nextWordEnd(branch) { return nextWordEnd(this.state.drawn.rows[branch] || {pieces: []}); }

  /**
   * Change the state, and draw what has changed.
   * @param {BranchViewEvent} event
   */
  update(event) {
    const {state} = this, later = this.#later, next = reduce(state, event), isOther = next.shown !== state.shown;
    if (this.#lacksFocused(next)) {
      this.#later = event;
    } else if (later && !isOther && next.status.state !== 'thinking') {   // no more rows come, as after a stop
      this.#later = null;
      this.#draw(reduce(state, later), [later.type]);
      this.update(event);
    } else {
      if (isOther) this.#later = null;
      this.#draw(next, [event.type]);
    }
  }

  /**
   * Whether a growing view of the same text, as after a ban, lacks the token that has the focus. It is not drawn: the rows before stay, and
   * the focus on them.
   * @param {BranchViewState} next the state with the view
   */
  #lacksFocused({shown, status, drawn}) {
    const {state, root} = this, isGrowing = state.status.state === 'thinking' && status.state === 'thinking';
    const position = isGrowing && shown !== state.shown && !state.textChanged ? focusPosition(root) : null;
    return Boolean(position?.token && !drawn.rows[position.line]?.pieces[position.column]);
  }

  /**
   * Call a function, and draw the changes of all events that it dispatches once, after it.
   * @param {() => void} run
   */
  drawOnce(run) {
    const before = this.state, types = this.#undrawn = /** @type {BranchViewEvent['type'][]} */ ([]);
    try {
      run();
    } finally {
      const now = this.state;
      this.#undrawn = null;
      this.state = before;
      this.#draw(now, types);
    }
  }

  /**
   * Draw what has changed.
   * @param {BranchViewState} now
   * @param {BranchViewEvent['type'][]} types of the events
   */
  #draw(now, types) {
    const before = this.state;
    this.state = now;
    this.#undrawn?.push(...types);
    if (now === before || this.#undrawn) return;
    if (now.unannounced && (types.includes('settings') || types.includes('veil'))) this.#announceAtRest();
    if (now.confirmed !== before.confirmed) this.#announceIfRowsAreLate();
    if (now.status.state !== 'thinking' || now.expectedRevision !== before.expectedRevision) clearTimeout(this.#waitTimer);
    if (now.rowsRevision !== before.rowsRevision) {
      for (const tokens of findAll(this.rows, '.tokens')) tokens.scrollLeft = 0;
      find(this.rest, '.others').scrollTop = 0;
      this.pointing.rowsReplaced();
    }
    this.keptHeight.keepWhile(now.status.state === 'thinking' && !now.veiled);
    if (now.drawn !== before.drawn) this.#paintRows(before);
    else if (now.othersOpen !== before.othersOpen) this.#paintOthers();
    this.#paintMarks(before);
    this.#paintStatus();
    if (FLOATS.some(name => now[name] !== before[name])) this.#floatNote(now.pointed !== before.pointed);
    const changed = now.drawn !== before.drawn || now.expectedRevision !== before.expectedRevision || now.status.state !== before.status.state;
    if (changed) dispatch(this.root, 'drawn');
  }

  /** Settings that are changed by a slider may come many times a second. */
  #announceAtRest() {
    clearTimeout(this.#rowsTimer);
    this.#rowsTimer = setTimeout(() => this.update({type: 'announceRows'}), ROWS_REST);
  }

  /** The first of several actions that are not announced yet decides how long they wait. */
  #announceIfRowsAreLate() {
    const waits = this.state.confirmed.length > 0;
    if (!waits) clearTimeout(this.#confirmedTimer);
    if (!waits) this.#confirmedTimer = undefined;
    else this.#confirmedTimer ??= setTimeout(() => this.#announceLateRows(), ROWS_LATE);
  }

  /** How many of the drawn rows the bracket joins. */
  get #ways() { return findAll(this.rows, '[data-bracket]:not([data-bracket=passes])').length; }

  #announceLateRows() {
    this.update({type: 'announceConfirmed'});
    clearTimeout(this.#waitTimer);
    this.#waitTimer = setTimeout(() => this.update({type: 'announceWait'}), ROWS_VERY_LATE);
  }

  /**
   * Scroll as little as needed to show the list that was just opened, with the button that closes it if both have room. Returns
   * whether it was out of the window.
   */
  #scrollToOthers() {
    const {top, bottom, height} = this.rest.getBoundingClientRect();
    if (top >= 0 && bottom <= innerHeight) return false;
    this.rest.scrollIntoView({block: height > innerHeight ? 'start' : 'nearest', behavior: scrollBehavior()});
    return true;
  }

  /**
   * Open the list of other beginnings, or close it. If the page scrolls to it, a second click in the same place inserts nothing.
   * @param {MouseEvent} click
   */
  toggleOthers(click) {
    this.update({type: 'toggleOthers'});
    if (this.state.othersOpen && this.#scrollToOthers() && click.detail) coverPlaceOf(click);
  }

  /** Close the list of other beginnings after a tap in it, and scroll to the rows: on a phone they and the text are above the list. */
  #leaveOthers() {
    if (this.state.othersOpen) this.update({type: 'toggleOthers'});
    this.rows.firstElementChild?.scrollIntoView({block: 'center', behavior: scrollBehavior()});
  }

  /** @param {BranchViewState} before */
  #paintRows(before) {
    const {root, state} = this, begins = this.#beginsAgain && state.drawn.rows.length > 0 && !isShownViewOld(state);
    const kept = this.#focusToKeep(), position = begins && kept ? FIRST_TOKEN : kept, stored = Boolean(state.shown?.stored);
    paintRows(this.rows, state.drawn, state.shown?.before ?? '');
    if (root.hasAttribute('data-stored') !== stored) find(root, '.terms').toggleAttribute('open', stored);
    setAttribute(root, 'data-stored', stored);
    paintCover(this.cover, state.drawn, {ways: this.#ways, stored, leavesOutOthers: leavesOutOthers(state)});
    paintRest(this.rest, state.drawn, state.othersOpen, state.shown?.before ?? '');
    this.scrolling.mark();
    this.#markReadOnly();
    if (begins) this.#beginsAgain = false;
    if (position && (begins || !focusPosition(root))) focusAt(root, position);
    if (position) this.#followChange(position, before);
    this.#lostFocus = focusPosition(root) ? null : position;
    keepTabStop(root);
  }

  /** The position that the focus is to have after a paint: where it is, or was before a paint removed its button; null if elsewhere. */
  #focusToKeep() {
    return focusPosition(this.root) ?? (document.activeElement === document.body ? this.#lostFocus : null);
  }

  /**
   * Let the focus follow a row to where it stands now, if it was on it, or on the token where `follow` was called.
   * @param {NonNullable<ReturnType<typeof focusPosition>>} position of the focus before the paint
   * @param {BranchViewState} before
   */
  #followChange(position, {followedAt: from, followed: earlier}) {
    const {followedAt: to, followed} = this.state, {line, column, token} = position;
    const isSame = earlier?.edit === followed?.edit && earlier?.undone === followed?.undone;
    if (token && from?.line === line && isSame) this.#follows = {line, column, goal: column};
    const follows = this.#follows;
    if (!to) return;
    this.#follows = null;
    if (follows?.line === line && follows.column === column) focusAt(this.root, {line: to.line, column: follows.goal ?? to.column, token: true});
  }

  /**
   * Follow the row of a change, which may stand elsewhere in the next view. If the focus is on a token of any row, it goes there: to
   * what was written, or to the token that is back.
   * @param {RowEdit | null} edit null where no row is to be followed any more
   * @param {'take' | 'undo' | 'redo'} [verb] whether the change was made, undone or redone
   */
  follow(edit, verb = 'take') {
    const position = focusPosition(this.root);
    this.#follows = edit && position?.token ? {...position, goal: null} : null;
    this.update({type: 'follow', edit, undone: verb === 'undo', redone: verb === 'redo'});
  }

  /** Branches that are only to be read say that nothing can be done with them. */
  #markReadOnly() {
    if (this.readOnly) for (const button of findAll(this.root, CHOICES)) setAttribute(button, 'aria-disabled', true);
  }

  #paintOthers() {
    paintRest(this.rest, this.state.drawn, this.state.othersOpen, this.state.shown?.before ?? '');
    this.#markReadOnly();
    keepTabStop(this.root);
  }

  /** @param {BranchViewState} before */
  #paintMarks(before) {
    const {state} = this, redrawn = state.drawn !== before.drawn, prefetchChanged = state.ahead !== before.ahead;
    if (redrawn || prefetchChanged) paintMeter(this.meter, state.shown?.view, state.ahead.tokens);
    if (redrawn || prefetchChanged || state.expectedRevision !== before.expectedRevision) {
      markInert(this.rows, state);
      markPrefetched(this.rows, state);
    }
    if (redrawn || state.expectedRevision !== before.expectedRevision) nameRows(this.rows, state);
    if (redrawn || state.awaited !== before.awaited) markAwaited(this.rows, awaitedIndex(state));
  }

  #paintStatus() {
    const {root, state} = this, old = isShownViewOld(state), note = noteOf(state);
    this.#keepNoteHeight();
    setAttribute(root, 'data-revision', state.rowsRevision);
    setAttribute(root, 'data-ahead-ready', state.ahead.ready);
    setAttribute(root, 'data-state', state.status.state);
    setAttribute(root, 'data-veiled', state.veiled);
    setAttribute(root, 'data-stale', String(isStale(state)));
    setAttribute(root, 'data-awaits', state.awaited !== null);
    setAttribute(root, 'data-refused', state.refusal !== null && state.refusals);
    setAttribute(this.rest, 'data-inert', old);
    const earlier = old || (state.status.state === 'thinking' && isBeforeChange(state));
    for (const part of [this.cover, root]) setAttribute(part, 'data-earlier', earlier);
    const odds = otherOddsOf(state), since = state.textChanged ? 'For the text before' : odds ? `Odds of ${odds}` : 'Before the change';
    if (earlier) setText(find(this.cover, '.earlier'), since);
    setText(find(root, '.before-keys'), earlier ? `${since}${state.status.state === 'thinking' ? ': new rows are being computed' : ''}.` : waysSentence(this.#ways));
    setSpokenText(find(this.note, '.words'), note.sentence, spokenBreaks(note.sentence));
    const progress = find(this.note, '.progress'), hasProgressed = progress.textContent !== note.progress;
    setText(progress, note.progress);
    if (hasProgressed) dispatch(root, 'progress');
    setAttribute(this.note, 'data-of-rows', note.ofRows);
    setAttribute(this.note, 'data-of-token', note.own !== undefined);
    const ban = find(this.note, '.ban'), label = this.#banLabel();
    ban.hidden = !label;
    setText(ban, label);
    setAttribute(ban, 'aria-label', spokenSentence(label));
    find(this.note, '.change').hidden = !note.editable || !this.#isEditable;
    // A column of Compare says only what concerns it alone: the panel announces the rows, the page's branch view all else.
    const isSaid = !this.root.closest('.columns') || state.awaited !== null || saysRefusal(state);
    const again = saysRefusal(state) && state.refusals !== this.#refusals;   // each key that is refused again says why
    this.#refusals = state.refusals;
    announce(this.announcement, isSaid ? state.announcement : '', {again});
    this.#paintTabAnnouncement();
    this.#dispatchPointed();
  }

  /** What is announced of Tab counts as told once it is painted: a key that came before was pressed without it. */
  #paintTabAnnouncement() {
    const {tabAnnouncement: sentence, tabText} = this.state, insertsNothing = ['', TAB_LEADS_ON].includes(sentence);
    if (insertsNothing) this.#announcedTab = '';
    if (announcedIn(this.tabAnnouncement) === sentence) return;
    announce(this.tabAnnouncement, sentence);
    if (!insertsNothing) afterPaint(() => { if (this.state.tabAnnouncement === sentence) this.#announcedTab = tabText ?? ''; }, SLOWEST_PAINT);
  }

  /** While the mouse or the focus points at something, the note is no lower than it was before: its sentence may be shorter. */
  #keepNoteHeight() {
    const {note, state: {pointed}, pointing} = this, isKept = note.style.minHeight !== '', keeps = Boolean(pointed) && !pointing.isHeld;
    if (keeps !== isKept) note.style.minHeight = keeps ? `${note.getBoundingClientRect().height}px` : '';
  }

  /**
   * Draw the note at the lower edge of the window if its own place is below the window and it describes a button, a refusal,
   * an error or a row that is waited for. A note that describes a button is not drawn over that button. In a narrow window it
   * is drawn there only for a button that a finger holds, and the page makes room for it. In a low window, and for such a button, it is
   * drawn above the rows if there is room in the window: there it covers none.
   * @param {boolean} isPointedNew whether another button is pointed at than before
   */
  #floatNote(isPointedNew) {
    const {root, note, state: {pointed, refusal, awaited, status}, pointing} = this;
    setAttribute(root, 'data-floats', false);
    const button = pointed && pointing.button?.checkVisibility() ? pointing.button : null, isHeld = Boolean(button) && pointing.isHeld;
    if (!(button || refusal !== null || awaited || status.state === 'error') || !(isHeld || matchMedia(WIDE).matches)) return;
    const {top, bottom} = note.getBoundingClientRect(), {top: start, bottom: end} = (button ?? root).getBoundingClientRect();
    const isLow = matchMedia(LOW).matches, goesAbove = (isHeld && !root.closest('.columns')) || (isLow && matchMedia(WIDE).matches);
    if (goesAbove && bottom > innerHeight && this.#hasRoomAbove()) {
      setAttribute(root, 'data-floats', 'above');
      return;
    }
    let floats = isHeld || isLow ? bottom > innerHeight : top > innerHeight - LINE;
    setAttribute(root, 'data-floats', floats);
    note.style.bottom = '';
    // The floating note never covers the button that it is about. In a low window it stands above it.
    if (floats && button && !isHeld && refusal === null && end >= innerHeight - note.getBoundingClientRect().height) {
      floats = isLow;
      if (isLow) note.style.bottom = `${innerHeight - start + HELD_SPACE}px`;
      else setAttribute(root, 'data-floats', false);
    }
    // The note stands at the lower edge once the page is scrolled; before, it may be lower, since it never stands above the view.
    if (floats && isHeld && isPointedNew) scrollBy(0, Math.max(0, end + HELD_SPACE - (innerHeight - note.getBoundingClientRect().height)));
    // By keyboard nobody can see the rest of the note while the focus is on the button.
    const getsFocus = isPointedNew && button && button === document.activeElement && this.rows.contains(button);
    if (!floats && getsFocus) this.#scrollToNote(button.getBoundingClientRect().top, bottom);
  }

  /** Whether the note has room in the window above the rows, over the lower part of the summary. */
  #hasRoomAbove() {
    const {root, cover, note} = this, {top} = root.getBoundingClientRect();
    return !cover.hidden && root.dataset.view !== 'tree' && top >= note.offsetHeight && top < innerHeight;
  }

  /** Scroll until the whole note is seen, as far as the button stays in the window. @param {number} top of the button @param {number} bottom of the note */
  #scrollToNote(top, bottom) { scrollBy(0, Math.max(0, Math.min(bottom - innerHeight, top - HELD_SPACE))); }

  #dispatchPointed() {
    const text = describe(this.state, this.state.pointed)?.text ?? null;
    if (text === this.#pointedText) return;
    this.#pointedText = text;
    dispatch(this.root, 'point', {text}, {bubbles: true});
  }

  /**
   * Accept a row up to a piece. Returns whether it was accepted.
   * @param {number} branch
   * @param {number} piece
   * @param {Partial<ChoiceSource>} [source]
   */
  choose(branch, piece, {byKeyboard = false, pointer = null} = {}) {
    return this.accept(choiceAt(this.state, {branch, piece}), {byKeyboard, pointer});
  }

  /** Accept a row's next word by a digit; a row that is missing or only ends the text is refused with a sentence. @param {number} branch */
  #takeWord(branch) {
    const because = refusedRowSentence(this.state.drawn.rows, branch);
    if (because) this.refuse(because);
    else this.choose(branch, this.#nextWordEnd(branch), {byKeyboard: true});
  }

  /** @param {number} branch */
  #chooseWhole(branch) {
    const row = this.state.drawn.rows[branch];
    if (!row && !rowToAwait(this.state, branch)) return false;
    this.update({type: 'await', branch});
    if (!this.state.awaited) this.#chooseAllOf(row, branch);
    return true;
  }

  #acceptAwaited() {
    const {state} = this, branch = awaitedIndex(state), row = state.drawn.rows[branch];
    if (!state.awaited || (row && !isWhole(state, row))) return;
    if (!row && state.status.state === 'thinking') return;
    this.update({type: 'giveUp'});
    if (row) this.#chooseAllOf(row, branch);
    else this.refuse(ROW_GONE);
  }

  /**
   * Accept a complete row up to its last piece, by keyboard. A row of the end token alone is refused with a sentence.
   * @param {DrawnRow} row
   * @param {number} branch the row's index
   */
  #chooseAllOf(row, branch) {
    const because = onlyEndsSentence(row, branch);
    if (because) this.refuse(because);
    else this.choose(branch, row.pieces.length - 1, {byKeyboard: true});
  }

  /**
   * Dispatch a choice. A choice for an older text is refused; so is one that a listener cancels. Returns whether it was
   * accepted.
   * @param {Choice | null} choice
   * @param {ChoiceSource} source
   */
  accept(choice, {byKeyboard, pointer}) {
    if (!choice) return false;
    /** @type {AcceptDetail} */
    const detail = {...choice, byKeyboard, pointer};
    const isAmongRows = focusPosition(this.root) !== null;
    if (isCurrent(this.state, choice) && dispatch(this.root, 'accept', detail, {bubbles: true, cancelable: true})) {
      if (byKeyboard && isAmongRows && !this.#focusRest()) this.#beginsAgain = true;
      if (pointer === 'touch' && choice.branch === null) this.#leaveOthers();
      return true;
    }
    this.refuse(detail.because ?? (this.#isChanging(choice) ? ROW_CHANGING : undefined));
    return false;
  }

  /** @param {Choice} choice */
  #isChanging({branch}) { return branch !== null && Boolean(this.state.drawn.rows[branch]?.changing); }

  /** After a key the focus is on what is left of the row that was accepted. Returns whether there is anything left. */
  #focusRest() {
    const {drawn: {rows}, expectedRevision} = this.state, line = rows.findIndex(row => row.pinned && row.revision === expectedRevision);
    if (line >= 0) focusAt(this.root, {line, column: 0, token: true});
    return line >= 0;
  }

  /** @param {Target | null} target */
  ban(target) {
    const found = describe(this.state, target);
    if (!found || this.readOnly) return;
    if (found.bannable) dispatch(this.root, 'ban', {id: found.id, text: found.own}, {bubbles: true});
    else if (found.unbannable) this.refuse(found.unbannable);
  }

  /** The label of a button that bans what is pointed at; empty if that cannot be banned. */
  #banLabel() {
    const {bannable, isPart, own} = noteOf(this.state);
    return bannable && !this.readOnly ? `Never ${isPart ? 'the part ' : ''}${quotedText(own ?? '')}` : '';
  }

  /** Ban what is pointed at, and then point at nothing: the token that takes its place is not what a second press means. */
  banPointed() {
    this.ban(this.state.pointed);
    this.update({type: 'point', target: null});
  }

  /** Whether a listener takes changes of rows: it says so by an attribute. */
  get #isEditable() { return this.root.dataset.editable !== undefined; }

  /**
   * Open a text field over a token to change it. Where rows cannot be changed, as in Compare, show the reason that a listener of
   * the `edit` event gives.
   * @param {Target | null} target
   */
  edit(target) {
    if (!target || 'other' in target) return;
    const found = describe(this.state, target);
    if (found && this.state.shown?.stored) this.refuse(EXAMPLE_IS_FIXED);
    if (!found?.editable) return;
    if (!this.#isEditable) {
      const detail = {because: ''};
      if (!dispatch(this.root, 'edit', detail, {bubbles: true, cancelable: true})) this.refuse(detail.because);
      return;
    }
    const button = findAll(this.rows, `.branch[data-branch="${target.branch}"] .token`)[target.piece];
    if (button) this.editor.open(button, this.state.drawn.rows[target.branch], target.piece);
  }

  /**
   * Dispatch a change of a row. One of an older text is refused; so is one that a listener cancels.
   * @param {DrawnRow} row
   * @param {number} piece
   * @param {string} typed
   */
  #change(row, piece, typed) {
    const text = replacementText(row.pieces[piece].text, typed);
    if (!typed) this.refuse(NOTHING_TYPED, {stays: true});
    if (text === null) return;
    const detail = editOf(row, piece, text);
    if (!isInert(this.state, row) && dispatch(this.root, 'edit', detail, {bubbles: true, cancelable: true})) {
      this.pointing.endHold();
      this.follow(detail.edit);
      return;
    }
    this.refuse(detail.because, {stays: true});
  }

  /**
   * Say for a while that nothing was done.
   * @param {string} [because]
   * @param {{stays?: boolean}} [options] `stays`: until the next key or press of a button, or until the pointer moves on in the rows after
   *   that while
   */
  refuse(because, {stays = false} = {}) {
    clearTimeout(this.#refusalTimer);
    this.#refusal.abort();
    const {signal} = this.#refusal = new AbortController();
    const end = () => {
      this.#refusal.abort();
      this.update({type: 'endRefusal'});
    };
    if (stays) for (const type of ['keydown', 'pointerdown']) document.addEventListener(type, end, {capture: true, signal});
    this.#refusalTimer = setTimeout(stays ? () => this.rows.addEventListener('pointerover', end, {signal}) : end, REFUSAL_TIME);
    this.update({type: 'refuse', because});
  }
}
