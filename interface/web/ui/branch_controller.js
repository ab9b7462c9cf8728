// Connects a person's draft, the branch view and the server: sends requests for the text before the caret, shows views as
// they come, and inserts what a person accepts. Only a person's action changes the text.
/**
 * @import {AcceptDetail, BranchRequest, BranchViewElement, ColumnViews, News, PromptFields, RowSettings, SentRequest, Server, ShowDetail,
 *   View, ViewOptionsOfRequest, WaitingNews, BranchRemainder} from '../core/types.d.ts'
 */
/** @import {TextOwner} from './text_owner.js' */
/** @import {TextMirror} from './text_mirror.js' */
import * as header from './header.js';
import {gapBehind} from '../core/choice.js';
import {SELECTION, caretSentence, noRowsSentence} from '../core/branch_sentences.js';
import {AcceptingByKeys} from './accepting_by_keys.js';
import {DoubleClicks} from './double_clicks.js';
import {GhostText} from './ghost_text.js';
import {KnownViews, idsKey, isComplete, showsMore} from '../core/known_views.js';
import {RowEditing} from './row_editing.js';
import {ServerRequests} from '../net/requests.js';
import {afterPaint, dispatch, onDetail} from './events.js';
import {find} from './elements.js';
import {listenToKeysBetween} from './keys_between.js';
import {showRowsAboveKeyboard} from './screen_keyboard.js';
import {withCharacterStarts} from '../core/text_words.js';

const MOST_RECORDED = 200;   // characters of an instruction that an accepted piece keeps
const LOADING = 'Branches appear here when the model is ready.';
const PAUSED = 'Branching is paused: press “Go on” to change a row.';
const STEERED = 'To change a row, first remove the word to go towards.';
/**
 * What is announced of a step of a ban, by its verb: where the step has lifted the ban, and where it has made it.
 * @type {Record<string, [string, string]>}
 */
const BAN_KINDS = {take: ['allowed', 'banned'], undo: ['bannedAgain', 'unbanned'], redo: ['allowedAgain', 'rebanned']};
/** The kinds of steps that take messages out of a conversation. */
const LEAVES_CONVERSATION = new Set(['anew', 'edit']);
/**
 * What is announced of a step of the text, by its verb: where the text has left the box, and where it was inserted.
 * @type {Record<string, [string, string]>}
 */
const STEP_KINDS = {undo: ['undone', 'restored'], redo: ['removedAgain', 'redone']};
const PROMPT_KINDS = ['prompt', 'prompting'];   // changes after which the text is the same
const MOST_PINNED = 40;    // texts whose pinned row is remembered
const SHOWN_BEFORE = 60;   // characters of the text that the branch view gets: a half-typed word is shown before its rows
const STOPPED = 'Stopped before there were branches. Change the text or a setting to look again.';

/**
 * @typedef {object} ControllerHooks what a tab adds
 * @property {() => PromptFields} prompt what the model is told beside the text
 * @property {() => string[]} bannedTexts the texts of the banned tokens
 * @property {() => string} lacks a sentence about something missing without which no branches are requested; empty if there is none
 * @property {() => void} onSettings called when a setting or the prompt changes
 * @property {() => string} exampleText the text of stored branches, while there is none of the person's
 * @property {() => string | null} exampleModel the name of the model that computed the stored branches; null while there are none
 * @property {() => void} onBegin called when branches of the person's own text are requested
 * @property {(revision: number) => void} onEmpty called when there is no text
 * @property {(news: News) => void} onNews called with all news of the newest request
 * @property {(text: string) => boolean} hidesRows whether the rows after a text are hidden, until the next word is guessed
 * @property {() => void} onVeil called when the rows have been hidden or shown
 * @property {() => boolean} onHidden called when a person asks for rows that are hidden; returns whether the focus has moved
 * @property {() => void} onGhostHidden called when a person has hidden the ghost text, and when the text changes after that
 * @property {(views: ColumnViews, detail: ShowDetail & {revision: number}) => void} onColumns called with the views of a
 *   response to a request with columns
 * @property {() => boolean} focusRows gives the focus to rows in columns; false if there are none
 * @property {() => boolean} hasRows whether there are rows of the present text in columns
 * @property {(ahead: Record<string, ColumnViews>, detail: {revision: number, tokens: number}) => void} onColumnsAhead called
 *   with prefetched views of all columns
 * @property {(ids: number[], revision: number) => ColumnViews | null} columnsAfter the views of all columns after accepting
 *   these tokens, where they are known
 * @property {() => BranchViewElement | null} keyedColumn the column whose rows the keys of the text accept; null for none
 */

/** @type {ControllerHooks} */
const NO_HOOKS = {
  prompt: () => ({}), bannedTexts: () => [], lacks: () => '', onSettings: () => {}, exampleText: () => '', exampleModel: () => null, onBegin: () => {}, onEmpty: () => {}, onNews: () => {},
  onColumns: () => {}, hidesRows: () => false, onVeil: () => {}, onHidden: () => false, onGhostHidden: () => {}, focusRows: () => false, hasRows: () => false,
  onColumnsAhead: () => {}, columnsAfter: () => null, keyedColumn: () => null,
};

/**
 * @typedef {object} ControllerParts
 * @property {BranchViewElement} branches
 * @property {TextOwner} draft
 * @property {Pick<TextMirror, 'ghost' | 'ghostShown'>} mirror draws the ghost text
 * @property {Server} server
 * @property {HTMLElement} controls hold the buttons that stop and pause
 * @property {() => Partial<ViewOptionsOfRequest>} settings of a request
 * @property {() => RowSettings} [drawn] settings that rows are drawn with, the same unless given
 */

/** The branches of one draft. */
export class BranchController {
  paused = false;
  /**
   * What is left of the branch that was accepted last.
   * @type {BranchRemainder | null}
   */
  #rest = null;
  #answeredRevision = 0;   // the newest revision that the server has answered
  #answeredLength = 0;     // of the text before the caret at that revision
  #selecting = false;      // whether a selection pauses branching
  #prompt = '';            // the prompt of the known views, as JSON
  /**
   * What was left of the branch when a text was accepted, by the text before the caret.
   * @type {Map<string, BranchRemainder | null>}
   */
  #pinnedAfter = new Map();
  known = new KnownViews();

  /** @param {ControllerParts & Partial<ControllerHooks>} parts */
  constructor({branches, draft, mirror, server, controls, settings, drawn = settings, ...hooks}) {
    this.branches = branches;
    this.draft = draft;
    this.controls = controls;
    this.drawn = drawn;
    this.requestSettings = settings;
    this.hooks = {...NO_HOOKS, ...hooks};
    this.buttons = {stop: find(controls, '.stop', HTMLButtonElement), pause: find(controls, '.pause')};
    this.requests = new ServerRequests({
      server,
      makeRequest: () => this.#makeRequest(),
      onNews: (news, request) => this.#takeNews(news, request),
      onFailure: sentence => {
        this.#forgetAnswers();
        header.showError(this, sentence, this.draft.box);
      },
      onForgotten: () => this.#forgetAnswers(),
    });
    // Before the bans themselves change: rows that are known may be shown at once.
    onDetail(draft, 'side', ({verb, step}) => {
      if (!step.edit) this.#confirm(BAN_KINDS[verb][Number(step.banned)], step.text);
    });
    this.edits = new RowEditing({
      branches, draft, refusal: () => (this.paused ? PAUSED : draft.selected ? SELECTION : this.#settings.towards ? STEERED : ''), banned: () => this.hooks.prompt().banned ?? [], bannedTexts: () => this.hooks.bannedTexts(),
      steers: () => Boolean(this.#settings.towards),
      pinned: () => this.pinned, request: pinned => this.#requestEdited(pinned),
    });
    this.ghost = new GhostText({
      branches, keyed: () => this.#keyed, draft, show: text => mirror.ghost(text), shown: () => mirror.ghostShown,
      onHidden: () => this.hooks.onGhostHidden(),
    });
    this.keys = new AcceptingByKeys({
      branches, keyed: () => this.#keyed, draft, ghost: this.ghost, onHidden: () => this.hooks.onHidden(), confirmHidden: () => this.#confirm('hidden'),
      rows: () => this.goToRows(), pause: () => this.#togglePause(),
    });
  }

  start() {
    this.#listen();
    this.#dispatch('settings', this.drawn());
    this.#update();
  }

  /** The row that is pinned: what is left of the branch that was accepted last, unless it has a banned token. */
  get pinned() {
    const {banned = []} = this.hooks.prompt();
    return this.#rest?.ids.some(id => banned.includes(id)) ? null : this.#rest;
  }

  set pinned(rest) { this.#rest = rest; }

  /** The view of the present text, or null. */
  get view() { return this.known.revision === this.draft.revision ? this.known.view : null; }

  get #settings() { return this.requestSettings(); }

  /** The branch view whose rows the keys of the text accept. */
  get #keyed() { return this.hooks.keyedColumn() ?? this.branches; }

  #listen() {
    const {branches, draft, buttons} = this;
    this.keys.listen();
    draft.addEventListener('change', () => this.#keyed.branchView.giveUp());
    draft.box.addEventListener('compositionstart', () => this.#keyed.branchView.giveUp());
    onDetail(draft, 'change', ({kind, text, isInserted, step}) => {
      if (kind === 'undo' && LEAVES_CONVERSATION.has(step ?? '')) this.#confirm('conversationRestored', isInserted ? text : '');
      else if (kind === 'reenter' && text) this.#confirm(isInserted ? 'entered' : 'left', text);
      else if (STEP_KINDS[kind]) this.#confirm(STEP_KINDS[kind][Number(isInserted)], text);
      if (!PROMPT_KINDS.includes(kind)) this.edits.textChanged();
      if (kind !== 'accept') this.#update(kind, step);
    });
    // A composition that is given up changes nothing, but a request has waited for its end.
    draft.box.addEventListener('compositionend', () => setTimeout(() => this.#update('caret')));
    draft.addEventListener('caret', () => this.#onSelection());
    branches.addEventListener('accept', event => this.#accept(/** @type {CustomEvent<AcceptDetail>} */ (event)));
    branches.addEventListener('leave', () => draft.box.focus());
    showRowsAboveKeyboard(draft.box, branches);
    listenToKeysBetween(branches, {toRows: () => this.goToRows(), toText: () => draft.box.focus()});
    document.addEventListener('lookahead:ready', () => this.#update());
    const doubleClicks = new DoubleClicks();
    buttons.pause.addEventListener('click', event => {
      if (event.detail && doubleClicks.isSecond(event)) return;
      doubleClicks.begin(event);
      this.#togglePause();
    });
    buttons.stop.addEventListener('click', () => this.#stop());
  }

  /** The server may have another document after an error: it needs the accepted ids of the whole text. */
  #forgetAnswers() { this.#answeredRevision = this.#answeredLength = 0; }

  /** Move the focus to the rows; where there are none, say why. Returns whether the focus has moved, or that was said. */
  goToRows() {
    const {branches: {branchView}, draft, hooks, paused} = this;
    if (branchView.isVeiled()) return hooks.onHidden();
    if (branchView.focus() || hooks.focusRows()) {
      this.#sayWhereRowsContinue();
      return true;
    }
    dispatch(this.#keyed, 'refuse', {because: hooks.lacks() || noRowsSentence({state: branchView.state(), paused, selected: draft.selected})});
    return true;
  }

  /** Announce where the rows continue, if that is not the end of the text: a screen reader may have moved the caret in reading. */
  #sayWhereRowsContinue() {
    const {draft} = this, text = caretSentence(draft.text, draft.caret);
    if (!text) return;
    this.#confirm('caret', text);
    dispatch(this.branches, 'announceConfirmed');
  }

  /** Whether there are branches to be requested. @param {string} text before the caret */
  #mayContinue(text) { return !this.hooks.lacks() && (Boolean(text) || startsAText(this.hooks.prompt())); }

  #promptAsJson() { return JSON.stringify(this.hooks.prompt()); }

  /**
   * Send an event to the branch view.
   * @param {string} name
   * @param {unknown} detail
   */
  #dispatch(name, detail) { dispatch(this.branches, name, detail); }

  /**
   * Let what a person has done be announced, with the rows that follow.
   * @param {string} kind
   * @param {string} [text]
   */
  #confirm(kind, text) { this.#dispatch('confirm', {kind, text}); }

  /** @param {ShowDetail} detail */
  show(detail) { this.#dispatch('show', detail); }

  /**
   * The text or the caret has changed: show the view that is known, and request the rest.
   * @param {string} [kind] of the draft's change
   * @param {string} [step] the kind of the step that was undone or redone
   */
  #update(kind = 'caret', step = '') {
    const {draft, known, hooks} = this, revision = draft.sync(), text = draft.before;
    if (draft.composing) return;
    this.#veil();
    const bansChanged = this.#takePrompt();
    // A redo leads to what was accepted, and to what was left of its row. So does the undo of a step to an earlier text.
    const returns = step === 'reenter' ? kind === 'undo' : kind === 'redo';
    if (!bansChanged) this.pinned = returns ? this.#pinnedAfter.get(text) ?? null : null;
    if (kind === 'load') {
      this.#pinnedAfter.clear();
      this.show({revision, state: 'empty', view: null});   // the rows were those of another document
    }
    if (kind === 'caret') this.ghost.moved();
    else this.ghost.edited();
    if (!this.#mayContinue(text)) {
      this.#showEmpty(revision);
      return;
    }
    hooks.onBegin();
    const isNew = known.revision !== revision || (known.view && !isComplete(known.view, this.#settings));
    // A known view of another visit of the text has no changed rows.
    const view = isNew && !this.edits.list.length ? known.at(text, this.#settings) : null;
    if (view) this.#showKnown(revision, text, view);
    else this.#dispatch('expect', {revision, textChanged: !PROMPT_KINDS.includes(kind)});
    if (kind !== 'prompting') this.#request();
  }

  /** Forget what was computed for another prompt. Returns whether the bans alone have changed. */
  #takePrompt() {
    const prompt = this.#promptAsJson(), changed = prompt !== this.#prompt, isOther = withoutBans(prompt) !== withoutBans(this.#prompt);
    if (changed) this.known.forget();
    // The server continues another document.
    if (isOther) this.#forgetAnswers();
    this.#prompt = prompt;
    return changed && !isOther;
  }

  /** Hide the rows, or show them, as the text before the caret demands. */
  #veil() {
    const {draft, hooks} = this, text = draft.before, begins = this.#mayContinue(text);
    this.#dispatch('veil', {veiled: begins && hooks.hidesRows(text)});
    hooks.onVeil();
  }

  /** Whether rows are hidden has changed. */
  veilChanged() {
    this.#veil();
    this.ghost.refresh();
    if (this.branches.branchView.state() === 'settled') this.keys.announceTab();
  }

  /** @param {number} revision */
  #showEmpty(revision) {
    this.requests.cancel();
    this.#setStoppable(false);
    if (header.loadingState() !== 'error') header.clearErrors(this);
    this.known.take(revision, '', null, false);
    this.show({revision, state: 'empty', view: null});
    if (!this.draft.text) this.hooks.onEmpty(revision);
  }

  #request() {
    if (this.paused) {
      this.#dispatch('state', {state: 'paused'});
    } else if (this.draft.selected) {
      this.#pauseForSelection();
    } else {
      this.#setStoppable(true);
      this.requests.schedule({length: this.draft.before.length + this.#promptAsJson().length});
    }
  }

  /**
   * The request, as it is when it leaves. Null while an input method composes, and without a text: the browser reports
   * that the caret has moved to the start only after a request may have left.
   * @returns {BranchRequest | null}
   */
  #makeRequest() {
    const {draft} = this, text = draft.before, prompt = this.hooks.prompt();
    if (draft.composing || !this.#mayContinue(text)) return null;
    return {
      ...this.#settings, revision: draft.revision, text, ...prompt,
      accepted: withCharacterStarts(text, draft.trail(this.#answeredRevision, this.#answeredLength)),
      edits: this.edits.list,
    };
  }

  /** @param {News} news @param {SentRequest} request */
  #takeNews(news, request) {
    const {revision} = request;
    this.hooks.onNews(news);
    if (news.state === 'waiting') return this.#showLoading(/** @type {WaitingNews} */ (news), revision);
    if (news.state === 'error') return this.#showFailure(news, revision);
    header.clearErrors(this);
    if (revision >= this.#answeredRevision) [this.#answeredRevision, this.#answeredLength] = [revision, request.text?.length ?? 0];
    if (request.columns) this.#showColumns(news, request);
    this.#showNews(request.columns ? {...news, view: null} : news, request);
    if (request.columns) this.hooks.onColumnsAhead(/** @type {Record<string, any>} */ (news.ahead ?? {}), {revision, tokens: news.tokens_ahead ?? 0});
    else this.#keepAhead(news, revision);
    this.#setStoppable(news.state === 'thinking' && !news.over);
    this.#keyed.branchView.acceptAwaited();
  }

  /** @param {News} news @param {SentRequest} request */
  #showColumns({state, view, reading = null, note = null}, {revision, text = ''}) {
    if (!view || revision !== this.draft.revision) return;
    this.hooks.onColumns(view, {revision, state, reading, note, pinned: this.pinned, before: text.slice(-SHOWN_BEFORE)});
  }

  /** @param {News} news @param {SentRequest} request */
  #showNews(news, {revision, text = '', edits}) {
    const {state, view = null, reading = null, note = null} = news, {known} = this;
    const settled = state === 'settled', shown = known.revision === revision && known.view;
    // The shown view may reach deeper than the first ones of a new request.
    if (!settled && shown && !(view && showsMore(view, shown))) return;
    if (view) known.take(revision, text, view, settled);
    const changes = Boolean(view || reading || (note && !settled)) || this.branches.branchView.state() !== state;
    if (changes) this.show({revision, state, view, reading, note, pinned: this.pinned, before: text.slice(-SHOWN_BEFORE), edits});
    this.ghost.refresh();
    if (settled && changes) this.keys.announceTab();
  }

  /** @param {number} revision @param {string} text @param {View} view */
  #showKnown(revision, text, view) {
    const complete = isComplete(view, this.#settings);
    this.known.take(revision, text, view, complete);
    this.show({revision, state: this.paused ? 'paused' : complete ? 'settled' : 'thinking', view, pinned: this.pinned, before: text.slice(-SHOWN_BEFORE)});
    this.ghost.refresh();
    this.keys.announceTab();
  }

  /**
   * Show views of all columns that were prefetched. Their rows are short: a request for the rest follows.
   * @param {ColumnViews} views
   */
  #showKnownColumns(views) {
    const {draft} = this, state = this.paused ? 'paused' : 'thinking', detail = {revision: draft.revision, state, before: draft.before.slice(-SHOWN_BEFORE)};
    this.show({...detail, view: null});
    this.hooks.onColumns(views, {...detail, pinned: this.pinned});
    this.ghost.refresh();
  }

  /** @param {News} news @param {number} revision */
  #keepAhead({ahead = {}, tokens_ahead: tokens = 0}, revision) {
    if (revision !== this.known.revision) return;
    for (const [key, view] of Object.entries(ahead)) this.known.add(key, view);
    this.known.tokens = tokens;
    this.#showAhead();
  }

  #showAhead() {
    const {known} = this;
    this.#dispatch('ahead', {ready: this.#readyRows(), keys: known.ready(this.#settings), tokens: known.tokens});
  }

  /** The number of rows whose view after the first piece is known; rows without a piece need none. */
  #readyRows() {
    const rows = this.branches.branchView.rows().filter(row => !row.extra), keys = new Set(this.known.ready(this.#settings));
    return rows.filter(({pieces, ids}) => !pieces.length || keys.has(idsKey(ids.slice(0, pieces[0].tokens)))).length;
  }

  /** @param {WaitingNews} news @param {number} revision */
  #showLoading({loading}, revision) {
    this.#setStoppable(false);
    if (header.loadingState() === 'ready') header.showReload(loading);
    else header.clearErrors(this);
    if (loading.state === 'error') this.show({revision, state: 'error', view: null});
    else this.show({revision, state: 'thinking', view: null, note: LOADING});
  }

  /** @param {News} news @param {number} revision */
  #showFailure({sentence = ''}, revision) {
    this.edits.refuse();
    this.#forgetAnswers();
    header.clearErrors(this);
    header.showError(this, sentence, this.draft.box);
    this.#setStoppable(false);
    this.show({revision, state: 'error', view: null, note: sentence});
  }

  /** Request the rows again: one of them was changed. @param {BranchRemainder | null} pinned the row that is pinned from now on */
  #requestEdited(pinned) {
    this.pinned = pinned;
    this.#dispatch('state', {state: 'thinking'});
    this.#request();
  }

  /** @param {CustomEvent<AcceptDetail>} event */
  #accept(event) {
    const {revision, text, ids, healed, logprobs, rest, written, chosenLogprobs, byKeyboard, pointer} = event.detail, {draft, known} = this;
    const instruction = (event.detail.instruction ?? this.hooks.prompt().instruction ?? '').trim().slice(0, MOST_RECORDED);
    const example = draft.text ? '' : this.hooks.exampleText(), inserted = example + (text ?? '');
    const gap = gapBehind(draft.before, inserted, draft.text.slice(draft.caret));
    const options = {revision, logprobs, focus: !byKeyboard && pointer !== 'touch', ...(example ? {unchosen: example.length, model: this.hooks.exampleModel()} : {ids, healed, written, chosenLogprobs, gap, instruction, model: header.modelName()})};
    const next = known.revision === revision ? known.after(ids, this.#settings) : null, columns = this.hooks.columnsAfter(ids, revision);
    if (draft.selected) event.detail.because = SELECTION;
    if (!draft.accept(inserted, options)) {
      event.preventDefault();
      return;
    }
    this.#confirm('inserted', inserted);
    this.hooks.onBegin();
    this.#veil();
    // The row that had the focus is hidden.
    if (byKeyboard && document.activeElement === document.body && this.branches.branchView.isVeiled()) this.hooks.onHidden();
    this.ghost.edited();
    this.pinned = example ? null : rest;
    this.#rememberPinned();
    if (next) this.#showKnown(draft.revision, draft.before, next);
    else if (columns) this.#showKnownColumns(columns);
    else if (this.pinned) this.show({revision: draft.revision, state: 'thinking', view: null, pinned: rest});
    else this.#dispatch('expect', {revision: draft.revision});
    afterPaint(() => this.#request());
  }

  #rememberPinned() {
    const kept = this.#pinnedAfter, {before} = this.draft;
    kept.delete(before);
    kept.set(before, this.pinned);
    if (kept.size > MOST_PINNED) kept.delete([...kept.keys()][0]);
  }

  /** A setting or the prompt has changed: draw what is known at once, and request only what is not. */
  settingsChanged() { this.branches.branchView.drawOnce(() => this.#takeSettings()); }

  #takeSettings() {
    const {known} = this;
    this.hooks.onSettings();
    this.#dispatch('settings', this.drawn());
    if (this.#promptAsJson() !== this.#prompt) {
      this.draft.promptChanged();   // its event updates the branches
    } else if (known.complete && known.view && known.revision === this.draft.revision && isComplete(known.view, this.#settings)) {
      this.#showAhead();
      this.ghost.refresh();
      // One for other settings is on its way: its answer would replace these rows.
      if (this.#isStoppable) this.#request();
    } else {
      this.#showAhead();
      this.#update();
    }
  }

  /** The prompt is being written: nothing of the old one can be accepted, and `settingsChanged` follows when it rests. */
  promptChanging() {
    if (this.#promptAsJson() === this.#prompt) return;
    this.requests.cancel();
    this.#setStoppable(false);
    this.draft.promptChanged('prompting');
  }

  #onSelection() {
    const {draft} = this;
    if (draft.selected && !this.#selecting) {
      this.#pauseForSelection();
    } else if (!draft.selected && this.#selecting) {
      this.#selecting = false;
      this.#resume();
    }
  }

  #pauseForSelection() {
    this.#selecting = true;
    this.requests.cancel();
    this.#setStoppable(false);
    this.#dispatch('state', {state: 'paused', note: SELECTION});
  }

  #togglePause() {
    this.paused = !this.paused;
    const button = this.buttons.pause;
    button.toggleAttribute('data-on', this.paused);
    find(button, '.icon').textContent = this.paused ? '▶' : '❚❚';
    find(button, '.says').textContent = this.paused ? 'Go on' : 'Pause';
    button.title = this.paused ? 'Send requests again (Alt+P)' : 'Send no requests until you continue (Alt+P)';
    if (this.paused) this.requests.cancel();
    this.#setStoppable(false);
    if (this.paused) {
      this.#dispatch('state', {state: 'paused'});
      this.keys.announceTab();
    } else {
      this.#confirm('resumed');
      this.#resume();
    }
    return true;
  }

  #resume() {
    const {known, draft} = this;
    const complete = known.complete && known.view && known.revision === draft.revision && isComplete(known.view, this.#settings);
    if (complete && !this.paused) this.#dispatch('state', {state: 'settled'});
    else this.#update();
  }

  #stop() {
    const {known, draft} = this;
    this.requests.cancel();
    this.#setStoppable(false);
    if ((known.view && known.revision === draft.revision) || this.hooks.hasRows()) this.#dispatch('state', {state: 'settled'});
    else this.#dispatch('state', {state: 'paused', note: STOPPED});
    this.keys.announceTab();
  }

  /** Whether a request is on its way whose view is not complete. */
  get #isStoppable() { return !this.buttons.stop.disabled; }

  /** @param {boolean} possible */
  #setStoppable(possible) { this.buttons.stop.disabled = !possible; }
}

/**
 * Whether the model can begin a text from the prompt alone.
 * @param {PromptFields} prompt
 */
const startsAText = ({instruction, source, role, columns = []}) =>
  Boolean(instruction || source || role || columns.some(column => column.instruction));

/**
 * A prompt without its bans, which leave the server's document as it is.
 * @param {string} prompt as JSON
 */
const withoutBans = prompt => (prompt ? JSON.stringify({...JSON.parse(prompt), banned: null}) : prompt);
