// The writer's tab: between the person's draft, the controls, the branches and the server. The server is told what
// stands before the caret, and answers with views; only a person's hand changes the text.
import * as header from '../header.js';
import {Controls} from './controls.js';
import {mountPaper} from './drawers.js';
import {Example} from './example.js';
import {Ghost} from './ghost.js';
import {listenToKeys} from './keys.js';
import {Known, isWhole, keyOf} from './known.js';
import {Requests} from './requests.js';

const MOST_DEPTH = 40;
const WAITING = 'Branches appear here when the model is ready.';
const SELECTION = 'A selection pauses branching.';
const STOPPED = 'Stopped before there were branches. Change the text or a setting to look again.';

export async function start({element, props, server}) {
  const page = await there({paper: '.sheet', controls: '.controls', branches: '#branches'});
  await new Writer(page, server, props.value || {}).start();
}

// The parts of the page, once they are all mounted.
async function there(places) {
  for (;;) {
    const found = Object.fromEntries(Object.entries(places).map(([name, place]) => [name, document.querySelector(place)]));
    if (Object.values(found).every(Boolean) && found.branches.branchView) return found;
    await new Promise(resolve => { setTimeout(resolve, 10); });
  }
}

class Writer {
  constructor({paper, controls, branches}, server, {example, address}) {
    this.branches = branches;
    this.known = new Known();
    this.paused = false;
    this.heardOf = 0;   // the newest revision of which the server has answered
    this.pinned = null;
    this.controls = new Controls(controls);
    this.requests = new Requests({
      server,
      given: () => this.given(),
      heard: (news, request) => this.heard(news, request),
      lost: sentence => header.complain(sentence),
      unknown: () => { this.heardOf = 0; },
    });
    this.paper = mountPaper({element: paper, hooks: {
      settings: () => this.controls.settings,
      applySettings: settings => this.controls.set(settings),
      view: () => (this.known.revision === this.draft.revision ? this.known.view : null),
      tree: () => this.requests.tree(),
      model: header.model,
      publicAddress: () => address,
      also: () => [branches],
    }});
    this.draft = this.paper.draft;
    this.example = new Example(this.draft.box, example, detail => this.tell('show', detail));
    this.ghost = new Ghost({branches, draft: this.draft, show: text => this.paper.ghost(text), shown: () => this.paper.ghostShown});
  }

  async start() {
    await this.paper.ready;
    const {shelf} = this.paper, others = (await shelf.list()).filter(card => card.id !== shelf.current?.id);
    if (this.draft.text || others.length) this.example.end();
    this.listen();
    this.told = this.telling();
    this.tell('settings', this.settings);
    this.look();
  }

  listen() {
    const {branches, draft, controls} = this;
    draft.addEventListener('change', ({detail}) => {
      if (detail.kind === 'load') controls.set({banned: []});   // bans are a document's own; it brings them along next
      if (detail.kind !== 'accept') this.look(detail.kind);
    });
    // A composition that is given up changes nothing, but what was to be asked meanwhile has waited for its end.
    draft.box.addEventListener('compositionend', () => setTimeout(() => this.look('caret')));
    draft.addEventListener('caret', () => this.selecting());
    controls.addEventListener('change', () => this.adjust());
    draft.addEventListener('instruction', () => this.adjust());
    branches.addEventListener('accept', event => this.accept(event));
    branches.addEventListener('ban', ({detail}) => controls.ban(detail.id, detail.text));
    document.addEventListener('lookahead:ready', () => this.look());
    controls.at('pause').addEventListener('click', () => this.pause());
    controls.at('stop').addEventListener('click', () => this.stop());
    listenToKeys({box: draft.box, draft, does: {
      word: branch => this.choose(branch, branches.branchView.nextWord(branch)),
      whole: branch => this.choose(branch, (branches.branchView.rows()[branch]?.pieces.length ?? 0) - 1),
      ghost: () => this.ghost.take(),
      hide: () => this.ghost.hide(),
      pause: () => this.pause(),
    }});
  }

  get settings() {
    const {banned, ...settings} = this.controls.settings;
    return settings.until === 'tokens' ? settings : {...settings, depth: MOST_DEPTH};
  }

  // What beside the text decides which branches there are, and cannot be changed in the page.
  telling() { return JSON.stringify([this.controls.settings.banned, this.paper.instruction()]); }

  tell(name, detail) { this.branches.dispatchEvent(new CustomEvent(name, {detail})); }

  // The text, or the caret in it, is another: show what is known of it, and ask.
  look(kind = 'caret') {
    const {draft, known} = this, revision = draft.sync(), text = draft.before;
    if (draft.composing) return;
    this.pinned = null;
    if (kind === 'caret') this.ghost.moved();
    else this.ghost.edited();
    if (!text && !this.paper.instruction()) return this.rest(revision);
    this.example.end();
    const view = known.revision === revision ? known.view : known.at(text, this.settings);
    if (view && known.revision !== revision) this.present(revision, text, view);
    else this.tell('expect', {revision});
    this.ask();
  }

  // Nothing is written, so nothing follows.
  rest(revision) {
    this.requests.drop();
    this.halting(false);
    if (header.state() !== 'error') header.complain(null);
    this.known.take(revision, '', null, false);
    this.tell('show', {revision, state: 'empty', view: null});
    if (!this.draft.text) this.example.show(revision);
  }

  ask() {
    if (this.paused) return this.tell('state', {state: 'paused'});
    if (this.draft.selected) return this.hold();
    this.halting(true);
    this.requests.ask({length: this.draft.caret});
  }

  // What to ask, as it is when the request leaves; nothing while an input method composes: its text is nobody's yet.
  given() {
    const {draft, controls} = this, text = draft.before;
    if (draft.composing) return null;
    return {
      ...this.settings, revision: draft.revision, text, instruction: this.paper.instruction(),
      banned: controls.settings.banned.map(({id}) => id),
      accepted: draft.trail(this.heardOf).map(([before, ids, healed]) => [characters(text.slice(0, before)), ids, healed]),
    };
  }

  heard(news, request) {
    const {revision} = request;
    if (news.state === 'waiting') return this.wait(news, revision);
    if (news.state === 'error') return this.fail(news, revision);
    header.complain(null);
    this.heardOf = Math.max(this.heardOf, revision);
    this.paint(news, request);
    this.readAhead(news, revision);
    this.halting(news.state === 'thinking' && !news.over);
  }

  paint(news, {revision, text}) {
    const {state, view = null, reading = null, note = null} = news, known = this.known;
    const whole = state === 'settled', had = known.revision === revision && known.view;
    // What is there already may reach deeper than what comes first.
    if (!whole && had && !(view && tellsMore(view, had))) return;
    if (view) known.take(revision, text, view, whole);
    if (view || reading || this.branches.dataset.state !== state)
      this.tell('show', {revision, state, view, reading, note, pinned: this.pinned});
    this.ghost.painted();
  }

  present(revision, text, view) {
    const whole = isWhole(view, this.settings);
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
    return rows.filter(({pieces, ids}) => !pieces.length || keys.has(keyOf(ids.slice(0, pieces[0].tokens)))).length;
  }

  wait({loading}, revision) {
    this.halting(false);
    if (header.state() === 'ready') header.meanwhile(loading);
    else header.complain(null);
    if (loading.state === 'error') return this.tell('show', {revision, state: 'error', view: null});
    this.tell('show', {revision, state: 'thinking', view: null, note: WAITING});
  }

  fail({sentence}, revision) {
    header.complain(sentence);
    this.halting(false);
    this.tell('show', {revision, state: 'error', view: null});
  }

  accept(event) {
    const {revision, text, ids, healed, logprobs, rest, byKeyboard, pointer} = event.detail, {draft, known} = this;
    const stored = draft.text ? '' : this.example.text;
    const how = {revision, logprobs, focus: !byKeyboard && pointer !== 'touch', ...(stored ? {} : {ids, healed})};
    const next = known.revision === revision ? known.after(ids, this.settings) : null;
    if (draft.selected) event.detail.because = SELECTION;
    if (!draft.accept(stored + text, how)) return event.preventDefault();
    this.example.end();
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

  // Sliders, choices, bans and the instruction: at once from what is there; the server is asked only for what is not.
  adjust() {
    const told = this.telling(), {known} = this;
    if (told !== this.told) known.forget();
    this.told = told;
    this.paper.settingsChanged();
    this.tell('settings', this.settings);
    this.tellAhead();
    if (known.complete && known.revision === this.draft.revision && isWhole(known.view, this.settings)) {
      this.ghost.painted();
    } else {
      this.look();
    }
  }

  selecting() {
    const {draft} = this;
    if (draft.selected && !this.holding) {
      this.hold();
    } else if (!draft.selected && this.holding) {
      this.holding = false;
      this.resume();
    }
  }

  hold() {
    this.holding = true;
    this.requests.drop();
    this.halting(false);
    this.tell('state', {state: 'paused', note: SELECTION});
  }

  pause() {
    this.paused = !this.paused;
    const button = this.controls.at('pause');
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
    if (there && isWhole(known.view, this.settings) && !this.paused) this.tell('state', {state: 'settled'});
    else this.look();
  }

  stop() {
    const {known, draft} = this;
    this.requests.drop();
    this.halting(false);
    if (known.view && known.revision === draft.revision) this.tell('state', {state: 'settled'});
    else this.tell('state', {state: 'paused', note: STOPPED});
  }

  halting(possible) { this.controls.at('stop').disabled = !possible; }
}

// Whether a view that still grows shows something that another one does not.
const tellsMore = (view, had) => view.asked.mode !== had.asked.mode || view.branches.length > had.branches.length
  || depthOf(view) > depthOf(had);

// How deep all rows of a view are at least.
const depthOf = ({branches}) => Math.min(...branches.filter(({ended}) => !ended).map(({ids}) => ids.length));

// Characters as Python counts them.
const characters = text => [...text].length;

function afterPaint(run) {
  let done = false;
  const once = () => { if (!done) [done] = [true, run()]; };
  requestAnimationFrame(() => setTimeout(once));
  setTimeout(once, 100);   // pages in the background paint nothing
}
