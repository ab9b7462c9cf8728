// Between a person's draft, the branches and the server. The server is told what stands before the caret, and answers
// with views; only a person's hand changes the text.
import * as header from './header.js';
import {GhostText} from './ghost_text.js';
import {listenToTextKeys} from './text_keys.js';
import {KnownViews, isComplete, idsKey, showsMore} from '../core/known_views.js';
import {ServerRequests} from '../net/requests.js';
import {withCharacterStarts} from '../core/text_words.js';

const WAITING = 'Branches appear here when the model is ready.';
const SELECTION = 'A selection pauses branching.';
const STOPPED = 'Stopped before there were branches. Change the text or a setting to look again.';

// What a tab may add to the plain case.
const HOOKS = {
  told: () => ({}),         // what the model is told beside the text, as fields of a request
  changed: () => {},        // a setting, or what the model is told, is another
  stored: () => '',         // the text that stored branches stand for while there is none of the person's
  begins: () => {},         // branches of the person's own text are looked for from now on
  rests: () => {},          // nothing is written, so nothing follows: (revision)
};

export class BranchController {
  paused = false;
  pinned = null;
  #heardOf = 0;   // the newest revision of which the server has answered
  #holding = false;
  #told = '';

  // `paper` draws the grey text; `settings()` says what is asked for, `drawn()` how it is shown; `controls` holds the
  // buttons that stop and pause.
  constructor({branches, draft, paper, server, controls, settings, drawn = settings, ...hooks}) {
    Object.assign(this, {branches, draft, drawn, asked: settings, hooks: {...HOOKS, ...hooks}});
    this.known = new KnownViews();
    this.buttons = {stop: controls.querySelector('.stop'), pause: controls.querySelector('.pause')};
    this.requests = new ServerRequests({
      server,
      given: () => this.given(),
      heard: (news, request) => this.heard(news, request),
      lost: sentence => header.showError(this, sentence),
      unknown: () => { this.#heardOf = 0; },
    });
    this.ghost = new GhostText({branches, draft, show: text => paper.ghost(text), shown: () => paper.ghostShown});
  }

  start() {
    this.listen();
    this.tell('settings', this.drawn());
    this.look();
  }

  // The branches of the text as it stands.
  get view() { return this.known.revision === this.draft.revision ? this.known.view : null; }

  get settings() { return this.asked(); }

  listen() {
    const {branches, draft, buttons} = this;
    draft.addEventListener('change', ({detail}) => { if (detail.kind !== 'accept') this.look(detail.kind); });
    // A composition that is given up changes nothing, but what was to be asked meanwhile has waited for its end.
    draft.box.addEventListener('compositionend', () => setTimeout(() => this.look('caret')));
    draft.addEventListener('caret', () => this.selecting());
    branches.addEventListener('accept', event => this.accept(event));
    document.addEventListener('lookahead:ready', () => this.look());
    buttons.pause.addEventListener('click', () => this.pause());
    buttons.stop.addEventListener('click', () => this.stop());
    listenToTextKeys({box: draft.box, draft, does: {
      word: branch => this.choose(branch, branches.branchView.nextWord(branch)),
      whole: branch => this.choose(branch, (branches.branchView.rows()[branch]?.pieces.length ?? 0) - 1),
      ghost: () => this.ghost.take(),
      hide: () => this.ghost.hide(),
      pause: () => this.pause(),
    }});
  }

  // What beside the text decides which branches there are, and cannot be changed in the page.
  telling() { return JSON.stringify(this.hooks.told()); }

  tell(name, detail) { this.branches.dispatchEvent(new CustomEvent(name, {detail})); }

  // The text, or the caret in it, is another: show what is known of it, and ask.
  look(kind = 'caret') {
    const {draft, known, hooks} = this, revision = draft.sync(), text = draft.before;
    if (draft.composing) return;
    this.#hear();
    this.pinned = null;
    if (kind === 'caret') this.ghost.moved();
    else this.ghost.edited();
    if (!text && !opens(hooks.told())) return this.rest(revision);
    hooks.begins();
    const view = known.revision === revision ? known.view : known.at(text, this.settings);
    if (view && known.revision !== revision) this.present(revision, text, view);
    else this.tell('expect', {revision});
    if (kind !== 'telling') this.ask();
  }

  // Where the model is told something else of a text, what was known of it is of no use.
  #hear() {
    const told = this.telling();
    if (told !== this.#told) this.known.forget();
    this.#told = told;
  }

  // Nothing is written, so nothing follows.
  rest(revision) {
    this.requests.drop();
    this.halting(false);
    if (header.loadingState() !== 'error') header.clearErrors(this);
    this.known.take(revision, '', null, false);
    this.tell('show', {revision, state: 'empty', view: null});
    if (!this.draft.text) this.hooks.rests(revision);
  }

  ask() {
    if (this.paused) return this.tell('state', {state: 'paused'});
    if (this.draft.selected) return this.hold();
    this.halting(true);
    this.requests.ask({length: this.draft.before.length + this.telling().length});
  }

  // What to ask, as it is when the request is sent. Null while an input method composes, and where there is no text: the
  // browser reports that the caret has moved to the start only after a request may have been sent.
  given() {
    const {draft} = this, text = draft.before, told = this.hooks.told();
    if (draft.composing || (!text && !opens(told))) return null;
    return {
      ...this.settings, revision: draft.revision, text, ...told,
      accepted: withCharacterStarts(text, draft.trail(this.#heardOf)),
    };
  }

  heard(news, request) {
    const {revision} = request;
    if (news.state === 'waiting') return this.wait(news, revision);
    if (news.state === 'error') return this.fail(news, revision);
    header.clearErrors(this);
    this.#heardOf = Math.max(this.#heardOf, revision);
    this.paint(news, request);
    this.readAhead(news, revision);
    this.halting(news.state === 'thinking' && !news.over);
  }

  paint(news, {revision, text}) {
    const {state, view = null, reading = null, note = null} = news, known = this.known;
    const whole = state === 'settled', had = known.revision === revision && known.view;
    // What is there already may reach deeper than what comes first.
    if (!whole && had && !(view && showsMore(view, had))) return;
    if (view) known.take(revision, text, view, whole);
    if (view || reading || this.branches.dataset.state !== state)
      this.tell('show', {revision, state, view, reading, note, pinned: this.pinned});
    this.ghost.painted();
  }

  present(revision, text, view) {
    const whole = isComplete(view, this.settings);
    this.known.take(revision, text, view, whole);
    this.tell('show', {revision, state: this.paused ? 'paused' : whole ? 'settled' : 'thinking', view, pinned: this.pinned});
    this.ghost.painted();
  }

  readAhead({ahead = {}, tokens_ahead: tokens = 0}, revision) {
    if (revision !== this.known.revision) return;
    for (const [key, view] of Object.entries(ahead)) this.known.add(key, view);
    this.known.tokens = tokens;
    this.tellAhead();
  }

  tellAhead() {
    const {known, settings} = this;
    this.tell('ahead', {ready: this.ready(), keys: known.ready(settings), tokens: known.tokens});
  }

  // How many of the rows have the view after their first piece; where there is nothing to click, nothing is missing.
  ready() {
    const rows = this.branches.branchView.rows().filter(row => !row.extra), keys = new Set(this.known.ready(this.settings));
    return rows.filter(({pieces, ids}) => !pieces.length || keys.has(idsKey(ids.slice(0, pieces[0].tokens)))).length;
  }

  wait({loading}, revision) {
    this.halting(false);
    if (header.loadingState() === 'ready') header.showReload(loading);
    else header.clearErrors(this);
    if (loading.state === 'error') return this.tell('show', {revision, state: 'error', view: null});
    this.tell('show', {revision, state: 'thinking', view: null, note: WAITING});
  }

  fail({sentence}, revision) {
    header.clearErrors(this);
    header.showError(this, sentence);
    this.halting(false);
    this.tell('show', {revision, state: 'error', view: null, note: sentence});
  }

  accept(event) {
    const {revision, text, ids, healed, logprobs, rest, byKeyboard, pointer} = event.detail, {draft, known} = this;
    const stored = draft.text ? '' : this.hooks.stored();
    const how = {revision, logprobs, focus: !byKeyboard && pointer !== 'touch', ...(stored ? {} : {ids, healed})};
    const next = known.revision === revision ? known.after(ids, this.settings) : null;
    if (draft.selected) event.detail.because = SELECTION;
    if (!draft.accept(stored + text, how)) return event.preventDefault();
    this.hooks.begins();
    this.ghost.edited();
    this.pinned = stored ? null : rest;
    if (next) this.present(draft.revision, draft.before, next);
    else if (this.pinned) this.tell('show', {revision: draft.revision, state: 'thinking', view: null, pinned: rest});
    else this.tell('expect', {revision: draft.revision});
    afterPaint(() => this.ask());
  }

  // By a key of the text box: whether there was anything to take.
  choose(branch, token) {
    const {rows, choose} = this.branches.branchView;
    return Boolean(rows()[branch]?.pieces[token]) && (choose(branch, token, {byKeyboard: true}), true);
  }

  // Settings, and what the model is told: at once from what is there; the server is asked only for what is not.
  adjust() {
    const {known} = this;
    this.hooks.changed();
    this.tell('settings', this.drawn());
    if (this.telling() !== this.#told) {
      this.draft.retold();   // of which we hear
    } else if (known.complete && known.revision === this.draft.revision && isComplete(known.view, this.settings)) {
      this.tellAhead();
      this.ghost.painted();
    } else {
      this.tellAhead();
      this.look();
    }
  }

  // What the model is told is being written: no branch of before is taken any more, and `adjust` asks once it rests.
  unsettle() {
    if (this.telling() === this.#told) return;
    this.requests.drop();
    this.halting(false);
    this.draft.retold('telling');   // of which we hear
  }

  selecting() {
    const {draft} = this;
    if (draft.selected && !this.#holding) {
      this.hold();
    } else if (!draft.selected && this.#holding) {
      this.#holding = false;
      this.resume();
    }
  }

  hold() {
    this.#holding = true;
    this.requests.drop();
    this.halting(false);
    this.tell('state', {state: 'paused', note: SELECTION});
  }

  pause() {
    this.paused = !this.paused;
    const button = this.buttons.pause;
    button.setAttribute('aria-pressed', this.paused);
    button.querySelector('.icon').textContent = this.paused ? '▶' : '❚❚';
    button.querySelector('.says').textContent = this.paused ? 'Go on' : 'Pause';
    if (this.paused) this.requests.drop();
    this.halting(false);
    if (this.paused) this.tell('state', {state: 'paused'});
    else this.resume();
    return true;
  }

  resume() {
    const {known, draft} = this, there = known.complete && known.revision === draft.revision;
    if (there && isComplete(known.view, this.settings) && !this.paused) this.tell('state', {state: 'settled'});
    else this.look();
  }

  stop() {
    const {known, draft} = this;
    this.requests.drop();
    this.halting(false);
    if (known.view && known.revision === draft.revision) this.tell('state', {state: 'settled'});
    else this.tell('state', {state: 'paused', note: STOPPED});
  }

  halting(possible) { this.buttons.stop.disabled = !possible; }
}

// Whether what the model is told gives it something to go on from, though nothing is written.
const opens = ({instruction, source, role}) => Boolean(instruction || source || role);

function afterPaint(run) {
  let done = false;
  const once = () => { if (!done) [done] = [true, run()]; };
  requestAnimationFrame(() => setTimeout(once));
  setTimeout(once, 100);   // pages in the background paint nothing
}
