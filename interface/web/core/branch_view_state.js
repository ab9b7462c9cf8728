// The state of a branch view: one object, changed by one pure function. What is drawn follows from the state alone.
/**
 * @import {BranchRemainder, Choice, DrawnOther, DrawnRow, DrawnView, RowEdit, RowPiece, RowSettings, ShowDetail, View} from './types.d.ts'
 */
/** @import {AwaitedRow} from './awaited_row.js' */
/** @import {Confirmation} from './confirmations.js' */
import {
  GHOST_IS_COMING, GUESS_FIRST, NEW_ROWS_COMING, REFUSAL, ROWS_STILL_COMING, announcementSentence, awaitSentence, describeOther, describePiece,
  progressSentence, TAB_LEADS_ON, spokenBeginning, summarySentence, tabAlsoSentence, tabSentence,
} from './branch_sentences.js';
import {endsWait, rowToAwait, withFirstTokens} from './awaited_row.js';
import {continuedLetters} from './figures_and_labels.js';
import {editedPosition, restoredPosition, withChange} from './row_edits.js';
import {wordOfPiece} from './row_tokens.js';
import {choiceOf, choiceOfOther, textUpTo, tokenToBan} from './choice.js';
import {otherOdds, shapePinnedRow, shapeRows} from './branch_rows.js';
import {NOT_YET} from './shares.js';
import {viewToBeginWith} from './known_views.js';
import {beforeRows, withConfirmation, withRows, withSentence} from './confirmations.js';

/**
 * @typedef {{view: View, before: string, pinned: BranchRemainder | null, revision: number, stored: boolean, growing: boolean, edits: RowEdit[]}} ShownView
 *   `before` is the end of the text before the branches, as far as it is known; `edits` are the changes that a growing view lacks
 */
/** @typedef {{pinned: BranchRemainder, revision: number}} PinnedSince */
/** @typedef {{branch: number, piece: number} | {other: number}} Target a button: a piece of a row, or another beginning */

/**
 * @typedef {object} BranchViewState
 * @property {RowSettings} settings
 * @property {number} expectedRevision the revision of the text whose branches are wanted
 * @property {boolean} textChanged whether the text has changed since the shown view; false where only a ban or the prompt has
 * @property {number} rowsRevision the revision of the drawn rows; -1 before there are any
 * @property {ShownView | null} shown the newest view, with what was pinned with it
 * @property {PinnedSince | null} pinnedSince a row that was pinned after that view: it is drawn above the view's rows, without the last of them
 * @property {{state: string, note?: string | null, reading?: [number, number] | null}} status `state` is empty, thinking,
 *   settled, paused or error
 * @property {{ready: number, keys: ReadonlySet<string>, tokens: number}} ahead how many rows have a view after their first
 *   piece, the tokens after which a view is known, and how many tokens were prefetched
 * @property {boolean} othersOpen whether the list of other beginnings is open
 * @property {Target | null} pointed the button that is pointed at or has the focus
 * @property {AwaitedRow | null} awaited the row that is accepted once it is complete
 * @property {{edit: RowEdit, undone: boolean, redone: boolean, seen: boolean} | null} followed the change of a row that was made, undone
 *   or redone last; `seen`: whether a view with the changed row has been shown
 * @property {{line: number, column: number} | null} followedAt where that row stands among the drawn ones
 * @property {string | null} refusal why a choice was refused, as long as this is shown
 * @property {number} refusals how many choices were refused
 * @property {string} announcement what a screen reader says
 * @property {string} announcedRows the sentence that was announced of the drawn rows; '' while none was
 * @property {boolean} unannounced whether settings or the veil have changed the rows since they were announced
 * @property {boolean} pauseAnnounced whether it was announced that the person has paused branching; false when branching goes on
 * @property {Confirmation[]} confirmed what a person has done and no announcement has said yet
 * @property {string} tabAnnouncement what it says of the Tab key
 * @property {string | null} tabText the text that it said so of last; empty where Tab inserts nothing, null before the first
 * @property {boolean} readOnly whether the branches are only to be read
 * @property {boolean} veiled whether nothing is drawn before the next word is guessed
 * @property {DrawnView<DrawnRow>} drawn the rows that follow from the view, the settings and the pinned rows
 */

/**
 * @typedef {{type: 'show', detail: ShowDetail} | {type: 'expect', revision: number, textChanged?: boolean}
 *   | {type: 'settings', settings: RowSettings} | {type: 'status', state: string, note?: string | null}
 *   | {type: 'ahead', ready: number, keys: string[], tokens?: number} | {type: 'toggleOthers'} | {type: 'veil', veiled: boolean}
 *   | {type: 'follow', edit: RowEdit | null, undone?: boolean, redone?: boolean} | ({type: 'confirm'} & Confirmation)
 *   | {type: 'await', branch: number} | {type: 'giveUp'} | {type: 'announceRows'} | {type: 'announceConfirmed'} | {type: 'announceWait'}
 *   | {type: 'announceTab', text: string | null, leadsOn?: boolean} | {type: 'point', target: Target | null}
 *   | {type: 'refuse', because?: string} | {type: 'endRefusal'}} BranchViewEvent
 */

const PAUSED = 'Branching is paused. “Go on”, or Alt+P, continues it.';
const UNFINISHED = ['thinking', 'error'];               // in which rows are not announced
const WITHOUT_GREY_TEXT = ['error', 'empty'];           // in which Tab inserts nothing
const STATES_OF_NOTES = ['error', 'paused', 'empty'];   // whose notes are shown also before a guess

/** @type {DrawnView<DrawnRow>} */
const NOTHING = {rows: [], others: [], count: 0, coverage: {p: 0}, rest: {p: 1}, wanted: {}, without: [], given: '', firsts: true, wordError: null};

/** @type {BranchViewState} */
export const INITIAL_STATE = {
  settings: {}, expectedRevision: 0, textChanged: false, rowsRevision: -1, shown: null, pinnedSince: null, status: {state: 'empty'},
  ahead: {ready: 0, keys: new Set(), tokens: 0}, othersOpen: false, pointed: null, awaited: null,
  followed: null, followedAt: null, refusal: null, refusals: 0, announcement: '', announcedRows: '', unannounced: false, pauseAnnounced: false, confirmed: [], tabAnnouncement: '', tabText: null,
  readOnly: false, veiled: false, drawn: NOTHING,
};

/**
 * The state after an event.
 * @param {BranchViewState} state
 * @param {BranchViewEvent} event
 * @returns {BranchViewState}
 */
export function reduce(state, event) {
  const changed = withoutOldRows(state, change(state, event)), awaited = withFirstTokens(changed);
  const next = awaited === changed.awaited ? changed : {...changed, awaited};
  return endsWait(next, event) ? {...next, awaited: null, announcement: next.announcement === state.announcement ? '' : next.announcement} : next;
}

/** @type {(state: BranchViewState, event: BranchViewEvent) => BranchViewState} */
function change(state, event) {
  switch (event.type) {
    case 'show': return show(state, event.detail);
    case 'expect': return expect(state, event);
    case 'settings': return takeSettings(state, event.settings);
    case 'status': return enter(state, event);
    case 'ahead': return {...state, ahead: {ready: event.ready, keys: new Set(event.keys), tokens: event.tokens ?? state.ahead.tokens}};
    case 'veil': return veil(state, event.veiled);
    case 'toggleOthers': return {...state, othersOpen: !state.othersOpen && state.drawn.others.length > 0};
    case 'announceRows': return announceChangedRows(state);
    case 'announceConfirmed': return announceBeforeRows(state);
    case 'announceWait': return state.status.state === 'thinking' ? {...state, announcement: ROWS_STILL_COMING} : state;
    case 'announceTab': return announceTab(state, event);
    case 'await': return waitFor(state, event.branch);
    case 'giveUp': return state;
    case 'confirm': return confirm(state, event);
    case 'follow': return redraw({...state, followed: event.edit && {edit: event.edit, undone: Boolean(event.undone), redone: Boolean(event.redone), seen: false}});
    case 'point': return {...state, pointed: event.target};
    case 'refuse': {
      const refusal = event.because ?? REFUSAL;
      return {...state, refusal, refusals: state.refusals + 1, announcement: withSentence(state.confirmed, refusal), confirmed: []};
    }
    // The announcement is cleared, so that the same refusal is announced again.
    case 'endRefusal': return {...state, refusal: null, announcement: saysRefusal(state) ? '' : state.announcement};
  }
}

/** Whether the refusal is what was announced last, with or without actions before it. @param {BranchViewState} state */
export const saysRefusal = ({announcement, refusal}) => refusal !== null && announcement.endsWith(refusal);

/**
 * A view of an older revision than the expected one is ignored: it was overtaken on its way. A growing view that has
 * neither rows nor odds of a word to steer by is not drawn: the older rows stay, and with them the focus.
 * @type {(state: BranchViewState, detail: ShowDetail) => BranchViewState}
 */
function show(state, {revision = state.expectedRevision, view: given, state: status = given ? 'settled' : 'thinking', note, reading, pinned, before, stored, edits = []}) {
  if (revision < state.expectedRevision) return state;
  const view = status === 'thinking' && !given?.branches.length && !given?.word ? null : given;
  // The grey text comes with the rows: a refusal that says it is not there yet has become untrue.
  const refusal = view && state.refusal === GHOST_IS_COMING ? null : state.refusal;
  // What Tab inserts stays announced while the rows of the same text grow.
  const tabAnnouncement = revision > state.expectedRevision || WITHOUT_GREY_TEXT.includes(status) ? '' : state.tabAnnouncement;
  /** @type {BranchViewState} */
  let next = {
    ...state, expectedRevision: revision, textChanged: !view && (state.textChanged || revision > state.expectedRevision), refusal,
    tabAnnouncement, status: {state: status, note, reading},
  };
  if (status === 'empty' && !view) {
    next = withoutRows(next);
  } else if (view) {
    const shown = {
      view, before: before ?? view.given ?? '', pinned: pinned ?? null, revision, stored: Boolean(stored), growing: status === 'thinking',
      edits: status === 'thinking' ? edits : [],
    };
    next = {...next, shown, pinnedSince: null};
  } else if (pinned && revision !== state.shown?.revision) {
    next = {...next, pinnedSince: {pinned, revision}};
  }
  if (revision > state.rowsRevision && (view || pinned)) next = {...withoutAhead(next), rowsRevision: revision};
  next = redraw(next);
  if (status === 'thinking') return next;
  if (status !== 'settled' || !view || next.veiled) return announceConfirmed(next);
  const found = findFollowed(next);
  return found.unannounced ? found : announceRows(found);
}

/** @param {BranchViewState} state */
const rowsSentence = ({drawn, shown}) => announcementSentence(drawn, shown?.before);

/**
 * Announce the rows, and before them what was not announced yet. The same rows are not announced again with nothing before
 * them: a view of them may come twice.
 * @type {(state: BranchViewState) => BranchViewState}
 */
function announceRows(state) {
  const {confirmed} = state, sentence = rowsSentence(state);
  if (!confirmed.length && state.announcedRows === sentence) return state;
  return {...state, announcement: withRows(confirmed, sentence), announcedRows: sentence, confirmed: []};
}

/**
 * What is announced of the rows ends when other rows are drawn: it always says what is seen.
 * @type {(before: BranchViewState, next: BranchViewState) => BranchViewState}
 */
function withoutOldRows(before, next) {
  const {announcement, announcedRows, drawn} = next;
  if (drawn === before.drawn || announcedRows !== before.announcedRows) return next;
  const sentence = rowsSentence(before);
  if (sentence === rowsSentence(next)) return next;
  const isOld = announcement === before.announcement && announcement.endsWith(sentence);
  return {...next, announcement: isOld ? '' : announcement, announcedRows: ''};
}

/**
 * A slider sends settings with every step: the rows are announced by `announceRows`, which follows when the settings rest. Those
 * of the recorded example are announced only if they have changed: no others are computed.
 * @type {(state: BranchViewState, settings: RowSettings) => BranchViewState}
 */
function takeSettings(state, settings) {
  const next = redraw({...state, settings}), isOther = JSON.stringify(settings) !== JSON.stringify(state.settings);
  const changes = isOther && (!state.shown?.stored || rowsSentence(next) !== rowsSentence(state));
  return changes && state.shown && !state.veiled ? {...next, announcement: '', announcedRows: '', unannounced: true} : next;
}

/**
 * Announce the rows that settings or the veil have changed, after what was announced meanwhile. Those of a view that is not
 * complete are announced when it is.
 * @type {(state: BranchViewState) => BranchViewState}
 */
function announceChangedRows(state) {
  const {status, shown, veiled, announcement, confirmed} = state, next = {...state, unannounced: false};
  if (!state.unannounced || !shown || veiled || UNFINISHED.includes(status.state) || isShownViewOld(state)) return next;
  const announcedRows = rowsSentence(state), sentence = withRows(confirmed, announcedRows);
  return {...next, announcement: [announcement, sentence].filter(Boolean).join(' '), announcedRows, confirmed: []};
}

/**
 * Confirm the row that was changed last: its new place among the rows when it is shown first, and that it is gone, or left out beside
 * rows that lead to a word.
 * @type {(state: BranchViewState) => BranchViewState}
 */
function findFollowed(state) {
  const {followed, followedAt, drawn} = state;
  // Before its first view an older one may still come.
  if (!followed || followed.undone || Boolean(followedAt) === followed.seen) return state;
  if (!followedAt) return {...state, followed: null, confirmed: withConfirmation(state.confirmed, {kind: drawn.wanted.towards ? 'leftOut' : 'lost'})};
  const {line} = followedAt, now = spokenBeginning(drawn.rows[line], state.shown?.before ?? '');
  return {...state, followed: {...followed, seen: true}, confirmed: withConfirmation(state.confirmed, {kind: followed.redone ? 'changedAgain' : 'changed', text: `row ${line + 1}`, now})};
}

/**
 * Announce what was not announced yet, where no rows follow, and with it the reason if there is one.
 * @type {(state: BranchViewState, because?: string) => BranchViewState}
 */
const announceConfirmed = (state, because) =>
  (state.confirmed.length ? {...state, announcement: withSentence(state.confirmed, because), confirmed: []} : state);

/**
 * Announce what was not announced yet, and later the rows that follow, also if they are the same as before.
 * @type {(state: BranchViewState) => BranchViewState}
 */
const announceBeforeRows = state => (state.confirmed.length ? {...announceConfirmed({...state, confirmed: beforeRows(state.confirmed)}), announcedRows: ''} : state);

/**
 * What a person has done is announced with the rows that follow it, or alone where they are late. Grey text that is hidden has no rows of its own, and after
 * a pause nothing may still say that there is one.
 * @type {(state: BranchViewState, added: Confirmation) => BranchViewState}
 */
function confirm(state, {kind, text}) {
  const confirmed = withConfirmation(state.confirmed, {kind, text});
  // A screen reader says an announcement when its text changes: before the same text it is emptied.
  const announcement = state.announcement === withSentence(confirmed) ? '' : state.announcement;
  const next = {...state, confirmed, announcement};
  if (kind === 'hidden') return announceConfirmed(next);
  if (kind === 'inserted') return {...next, refusal: null};   // what could not be inserted before is shown no more
  return kind === 'resumed' ? {...next, announcement: '', pauseAnnounced: false} : next;
}

/**
 * Without the veil everything that came meanwhile is drawn at once. It is announced by `announceRows`, so that the result of a
 * guess can be announced first.
 * @type {(state: BranchViewState, veiled: boolean) => BranchViewState}
 */
function veil(state, veiled) {
  if (veiled === state.veiled) return state;
  const next = redraw({...state, veiled, awaited: null, announcement: '', announcedRows: '', tabAnnouncement: ''});
  return {...next, unannounced: !veiled};
}

/** @type {(state: BranchViewState, event: {revision: number, textChanged?: boolean}) => BranchViewState} */
function expect(state, {revision, textChanged = true}) {
  const changed = {expectedRevision: revision, textChanged: state.textChanged || textChanged, announcedRows: '', tabAnnouncement: ''};
  const next = revision > state.expectedRevision ? {...withoutAhead(state), ...changed} : state;
  return {...next, status: {state: 'thinking'}};
}

/**
 * The same grey text is announced once, however often its view is shown; another one in its place is announced again, and so is
 * the same one after the text has changed, or after the focus was elsewhere: then `text` was null. It is empty where Tab inserts
 * nothing. The first announcement of a grey text also says how to leave the text box with Tab, as does one that replaces it. If the
 * grey text has grown, only what was added is announced. If Tab would leave the text box, that is announced. What a person has just
 * done is announced first, with the rows if they are complete.
 * @type {(state: BranchViewState, event: {text: string | null, leadsOn?: boolean}) => BranchViewState}
 */
function announceTab(state, {text, leadsOn = false}) {
  const {tabText, tabAnnouncement, pointed} = state;
  if (!text) return {...state, tabText: tabText && '', tabAnnouncement: ''};
  if (leadsOn) return {...state, tabAnnouncement: TAB_LEADS_ON};
  if (text === tabText && tabAnnouncement) return state;
  const isFirst = tabText === null || tabAnnouncement === tabSentence(tabText);
  const hasGrown = tabText && ![TAB_LEADS_ON, ''].includes(tabAnnouncement) && text.startsWith(tabText) && !pointed;
  const announced = state.confirmed.length ? announceBeforeRows(announceChangedRows(state)) : state;
  return {...announced, tabText: text, tabAnnouncement: hasGrown ? tabAlsoSentence(text.slice(tabText.length)) : tabSentence(text, !isFirst)};
}

/** @type {(state: BranchViewState, branch: number) => BranchViewState} */
function waitFor(state, branch) {
  const awaited = rowToAwait(state, branch);
  return {...state, awaited, announcement: awaited ? awaitSentence(branch) : state.announcement};
}

/**
 * Announce that branching is paused: once, and again together with an action of the person, such as an undo. A text that has
 * changed is no reason to replace a later announcement.
 * @type {(state: BranchViewState) => BranchViewState}
 */
function announcePause(state) {
  if (state.pauseAnnounced && !state.confirmed.length) return state;
  return {...state, announcement: withSentence(state.confirmed, PAUSED), pauseAnnounced: true, confirmed: []};
}

/** @type {(state: BranchViewState, status: {state: string, note?: string | null}) => BranchViewState} */
function enter(state, {state: name, note}) {
  const entered = {...state, status: {...state.status, state: name, note}};
  const next = name === 'thinking' ? entered : name !== 'paused' ? announceConfirmed(entered) : note ? announceConfirmed(entered, note) : announcePause(entered);
  if (name === 'empty') return redraw(withoutRows(next));
  return (state.followed || state.shown?.edits.length) && name !== state.status.state ? redraw(next) : next;
}

/** @type {(state: BranchViewState) => BranchViewState} */
const withoutRows = state => ({
  ...state, shown: null, pinnedSince: null, rowsRevision: state.expectedRevision, ahead: {...state.ahead, ready: 0},
});

/**
 * Prefetched views belong to the text before.
 * @type {(state: BranchViewState) => BranchViewState}
 */
const withoutAhead = state => ({...state, ahead: {...state.ahead, ready: 0, keys: new Set()}});

/**
 * Compute the rows anew, and drop what pointed at a button that is gone.
 * @type {(state: BranchViewState) => BranchViewState}
 */
function redraw(state) {
  const {settings, shown: known, pinnedSince: pinned, veiled, followed} = state, [shown, pinnedSince] = veiled ? [null, null] : [known, pinned];
  const base = shown ? shapeRows(shown.view, settings, shown.pinned, shown.growing) : {...NOTHING, wanted: settings};
  const rows = base.rows.map(row => ({...row, revision: shown?.revision ?? -1}));
  if (pinnedSince) {
    const wanted = {k: 0, depth: Infinity, until: 'tokens', ...base.wanted};
    // It takes the place of the last old row: the next view has a row for it, so that nothing moves when that view comes.
    rows.pop();
    const row = {...shapePinnedRow(pinnedSince.pinned, wanted), revision: pinnedSince.revision};
    // Of its next word only the share of the first token is known, which may be another one.
    rows.unshift(base.wordError === null ? row : {...row, share: NOT_YET});
  }
  const followedAt = followed && (followed.undone ? restoredPosition : editedPosition)(rows, followed.edit);
  const isComputed = followed && !followed.undone && !followed.seen && !followedAt;
  const missing = state.status.state === 'thinking' ? [...(isComputed ? [followed.edit] : []), ...(shown?.edits ?? [])] : [];
  const next = {...state, drawn: {...base, rows: missing.reduce(withChange, rows)}, followedAt, othersOpen: state.othersOpen && base.others.length > 0};
  return next.pointed && !targetExists(next, next.pointed) ? {...next, pointed: null} : next;
}

/** @type {(state: BranchViewState, target: Target) => boolean} */
const targetExists = ({drawn}, target) =>
  ('other' in target ? isChoosable(drawn.others[target.other]) : Boolean(drawn.rows[target.branch]?.pieces[target.piece]));

/**
 * Whether another beginning can be accepted: it is no ending, and it has a text.
 * @param {DrawnOther | undefined} other
 */
export const isChoosable = other => Boolean(other && other.text !== null && !other.end);

// What is drawn.

/**
 * Whether a row belongs to an older text, so that it can no longer be accepted.
 * @param {BranchViewState} state
 * @param {DrawnRow} row
 */
export const isInert = (state, row) => row.revision < state.expectedRevision;

/**
 * Whether the shown view belongs to an older text.
 * @param {BranchViewState} state
 */
export const isShownViewOld = ({shown, expectedRevision}) => Boolean(shown && shown.revision < expectedRevision);

/**
 * Whether the drawn rows are those of the text, but were computed before a setting, a ban or the prompt changed, or before the change
 * of a row was undone.
 * @param {BranchViewState} state
 */
export function isBeforeChange(state) {
  const {shown, settings, textChanged, followed, drawn} = state;
  if (shown === null) return false;
  if (isShownViewOld(state)) return !textChanged;
  return !viewToBeginWith(shown.view, settings) || Boolean(followed?.undone && editedPosition(drawn.rows, followed.edit));
}

/**
 * The kind of odds of the drawn rows, "words" or "tokens", if the rows that are being computed have the other kind; else null.
 * @param {BranchViewState} state
 */
export const otherOddsOf = ({shown, settings}) => shown && otherOdds(shown.view, settings);

/**
 * Whether the drawn rows may leave out other tokens or another word than those that are awaited.
 * @param {BranchViewState} state
 */
export const leavesOutOthers = state => isBeforeChange(state)
  && (isShownViewOld(state) || (state.settings.avoid ?? '') !== (state.shown?.view.asked.avoid ?? ''));

/**
 * Whether the drawn rows belong to an older text.
 * @param {BranchViewState} state
 */
export const isStale = ({rowsRevision, expectedRevision, drawn}) => rowsRevision < expectedRevision && drawn.rows.length > 0;

/**
 * Whether a view after a piece of a row is known already.
 * @param {BranchViewState} state
 * @param {DrawnRow} row
 * @param {RowPiece} piece
 */
export const isPrefetched = (state, row, piece) =>
  !isInert(state, row) && state.ahead.keys.has(row.branch.ids.slice(0, piece.tokens).join(' '));

/**
 * @typedef {object} Description of a button
 * @property {string} text that accepting it would insert
 * @property {string} sentence with its odds
 * @property {string} own its own text, with typed characters that it replaces
 * @property {number} id of its last token
 * @property {boolean} bannable whether that token can be banned
 * @property {boolean} isPart whether its own text is only a part of a word
 * @property {string} unbannable why not, or empty
 * @property {boolean} editable whether it can be changed
 */

/**
 * The description of a button; null if it is gone, hidden, or of an older text.
 * @param {BranchViewState} state
 * @param {Target | null} target
 * @returns {Description | null}
 */
export function describe(state, target) {
  const {drawn, shown} = state;
  if (!target) return null;
  if ('other' in target) {
    const other = drawn.others[target.other];
    if (!isChoosable(other) || !shown || !state.othersOpen || !drawn.count || isShownViewOld(state)) return null;
    const ban = tokenToBan(other, other.ids.length < 2, shown), letters = continuedLetters(shown.before, other.text ?? '');
    return {...ban, isPart: letters !== '' && ban.own === other.text, editable: false, text: other.text ?? '', sentence: describeOther(other, letters)};
  }
  const row = drawn.rows[target.branch], piece = row?.pieces[target.piece];
  if (!piece || isInert(state, row)) return null;
  const ban = tokenToBan(piece, row.healed && !target.piece, shown ?? {view: {branches: [], given: ''}});
  const letters = row.pinned ? '' : continuedLetters(shown?.before ?? '', row.pieces[0].text);
  const isPart = !['', ban.own.trim()].includes(wordOfPiece(row.pieces, target.piece, letters));
  return {...ban, isPart, editable: !shown?.stored, text: textUpTo(row, target.piece), sentence: describePiece(row, piece, letters)};
}

/**
 * The line under the rows: a refusal, what is pointed at, or a sentence about the whole; and the progress beside it.
 * @param {BranchViewState} state
 * @returns {{sentence: string, progress: string, bannable: boolean, editable: boolean, own?: string, isPart?: boolean, ofRows?: boolean}}
 *   `own`: the token that can be banned; `isPart`: whether that is only a part of a word; `ofRows`: whether the sentence only
 *   explains the rows, or says that they are computed
 */
export function noteOf(state) {
  const {refusal, awaited, status, drawn, shown} = state, pointed = describe(state, state.pointed);
  if (refusal !== null) return {sentence: refusal, progress: '', bannable: false, editable: false};
  if (awaited) return {sentence: awaitSentence(awaited.branch), progress: progressOf(state), bannable: false, editable: false};
  if (pointed) return {sentence: pointed.sentence, progress: '', own: pointed.own, isPart: pointed.isPart, bannable: pointed.bannable, editable: pointed.editable};
  if (state.veiled && !STATES_OF_NOTES.includes(status.state)) return {sentence: GUESS_FIRST, progress: '', bannable: false, editable: false};
  if (status.state === 'thinking' && !status.note && drawn.count && isBeforeChange(state)) {
    const odds = otherOddsOf(state), sentence = odds ? `New rows are being computed, with odds of ${odds === 'words' ? 'tokens' : 'words'}.` : NEW_ROWS_COMING;
    return {sentence, progress: progressSentence(status.reading, null), bannable: false, editable: false, ofRows: true};
  }
  const sentence = summarySentence(status, drawn, shown?.view.seen_from, state.readOnly);
  const ofRows = ['settled', 'thinking'].includes(status.state) && !status.note;
  return {sentence, progress: progressOf(state), bannable: false, editable: false, ofRows};
}

/** @param {BranchViewState} state */
function progressOf({status, drawn, shown, expectedRevision}) {
  const growing = status.state === 'thinking' && shown?.revision === expectedRevision;
  return progressSentence(status.reading, growing && drawn.rows, {until: drawn.wanted.until, depth: drawn.wanted.depth ?? shown?.view.asked.depth ?? 0});
}

/**
 * What accepting a button means now; null if there is no such button.
 * @param {BranchViewState} state
 * @param {Target | null} target
 * @returns {Choice | null}
 */
export function choiceAt({drawn, shown}, target) {
  if (!target) return null;
  if ('other' in target) {
    const other = drawn.others[target.other], healed = Boolean(shown?.view.branches.some(branch => branch.healed));
    return other ? choiceOfOther(other, target.other, {revision: shown?.revision ?? -1, healed}) : null;
  }
  const row = drawn.rows[target.branch];
  return row?.pieces[target.piece] ? choiceOf(row, target.branch, target.piece) : null;
}

/**
 * Whether a choice may be accepted: it was made for the present text.
 * @param {BranchViewState} state
 * @param {Choice} choice
 */
export const isCurrent = ({expectedRevision}, choice) => choice.revision >= expectedRevision;
