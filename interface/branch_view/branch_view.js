// The branch view on its element of the page: it hears what to show, and tells what was chosen. It knows of no other
// part of the page, and asks nobody for anything.
import {tokenToBan, choiceOf, choiceOfOther, nextWordEnd, textUpTo} from '../web/core/choice.js';
import {paintCover, paintMeter, paintRest} from './coverage_frame.js';
import {focusAt, keepTabStop, listenToRowKeys, placeOf} from './row_keys.js';
import {set, write} from './dom.js';
import {markAhead, markInert, paintRows} from './paint_rows.js';
import {Pointing} from './pointing.js';
import {listenToPresses} from './presses.js';
import {shapeRows, shapePinnedRow} from '../web/core/branch_rows.js';
import * as words from '../web/core/branch_sentences.js';

const REFUSED_FOR = 2500;   // milliseconds
const NOTHING = {rows: [], others: [], count: 0, coverage: {p: 0}, rest: {p: 1}, wanted: {}, given: '', firsts: true};

export function mount({element, props, watch}) {
  const root = element.querySelector('.branch-view');
  const branches = new Branches(root, element.querySelector('.cover'));
  const hear = (name, listener) => root.addEventListener(name, event => listener(event.detail || {}));
  hear('show', detail => branches.show(detail));
  hear('expect', detail => branches.expect(detail.revision));
  hear('settings', detail => branches.set(detail));
  hear('state', detail => branches.enter(detail));
  hear('ahead', detail => branches.readAhead(detail));
  hear('refuse', () => branches.refuse());
  const given = () => { if (props.value) branches.show(props.value); };
  watch('value', given);
  given();
  root.dispatchEvent(new CustomEvent('mounted', {bubbles: true}));
}

class Branches {
  constructor(root, cover) {
    Object.assign(this, {root, cover, drawn: NOTHING, settings: {}});
    this.expected = 0;   // the revision that is wanted
    this.seen = null;    // the newest view, what was pinned with it, and its revision
    this.pin = null;     // what was pinned since: it stands above the rows of that view until the next
    this.said = {state: 'empty'};
    this.ahead = {keys: new Set(), tokens: 0};
    this.refusing = 0;
    for (const name of ['rows', 'rest', 'note', 'meter', 'announcement']) this[name] = root.querySelector(`.${name}`);
    this.rows.addEventListener('scroll', ({target}) => set(target, 'data-scrolled', target.scrollLeft !== 0), {capture: true, passive: true});
    this.pointing = new Pointing(root, () => this.paintNote());
    listenToPresses(this);
    listenToRowKeys(root, {
      takeWord: branch => this.choose(branch, nextWordEnd(this.drawn.rows[branch] || {pieces: []}), {byKeyboard: true}),
      ban: button => this.ban(button),
    });
    root.branchView = {
      rows: () => this.drawn.rows,
      choiceOf: (branch, token) => this.choiceOf(branch, token),
      choose: (branch, token, options) => this.choose(branch, token, options),
      choosePointed: () => this.accept(this.pointing.current && this.meaningOf(this.pointing.current), {byKeyboard: true, pointer: null}),
      nextWord: branch => nextWordEnd(this.drawn.rows[branch] || {pieces: []}),
    };
  }

  // A newer revision's word counts; an older run's last word may have been overtaken on the way.
  show({revision = this.expected, view, state = view ? 'settled' : 'thinking', note, reading, pinned, stored}) {
    if (revision < this.expected) return;
    const newer = revision > Number(this.root.dataset.revision);
    this.expected = revision;
    this.said = {state, note, reading};
    if (state === 'empty' && !view) this.forget();
    else if (view) [this.seen, this.pin] = [{view, pinned, revision, stored, growing: state === 'thinking'}, null];
    else if (pinned && revision !== this.seen?.revision) this.pin = {pinned, revision};
    if (newer && (view || pinned)) this.startAnew(revision);
    this.paint();
    if (state === 'settled' && view) write(this.announcement, words.announcementSentence(this.drawn));
  }

  forget() {
    this.seen = this.pin = null;
    this.root.dataset.revision = this.expected;
    this.root.dataset.aheadReady = 0;
  }

  startAnew(revision) {
    this.root.dataset.revision = revision;
    this.forgetAhead();
    for (const tokens of this.rows.querySelectorAll('.tokens')) if (tokens.scrollLeft) tokens.scrollLeft = 0;
  }

  // What was read ahead belonged to another text.
  forgetAhead() {
    this.ahead.keys = new Set();
    this.root.dataset.aheadReady = 0;
    markAhead(this.rows, this.drawn.rows, this.ahead.keys);
  }

  expect(revision) {
    if (revision > this.expected) this.forgetAhead();
    this.expected = Math.max(this.expected, revision);
    this.said = {state: 'thinking'};
    this.paintState();
  }

  set(settings) {
    this.settings = settings;
    if (this.seen || this.pin) this.paint();
  }

  enter({state, note}) {
    this.said = {...this.said, state, note};
    if (state === 'empty') this.forget();
    this.paint();
  }

  readAhead({ready, keys, tokens = this.ahead.tokens}) {
    this.ahead = {keys: new Set(keys), tokens};
    this.root.dataset.aheadReady = ready;
    markAhead(this.rows, this.drawn.rows, this.ahead.keys);
    paintMeter(this.meter, this.seen?.view, tokens);
  }

  draw() {
    const {view, pinned, revision, growing} = this.seen || {};
    const drawn = view ? shapeRows(view, this.settings, pinned, growing) : {...NOTHING, wanted: this.settings};
    const rows = drawn.rows.map(row => ({...row, revision}));
    if (this.pin) rows.unshift({...shapePinnedRow(this.pin.pinned, drawn.wanted), revision: this.pin.revision});
    return {...drawn, rows};
  }

  paint() {
    const place = placeOf(this.root);
    this.drawn = this.draw();
    this.markOld();
    paintRows(this.rows, this.drawn.rows);
    paintCover(this.cover, this.drawn, this.seen?.stored);
    paintRest(this.rest, this.drawn);
    paintMeter(this.meter, this.seen?.view, this.ahead.tokens);
    markAhead(this.rows, this.drawn.rows, this.ahead.keys);
    if (place && !placeOf(this.root)) focusAt(this.root, place);
    this.paintState();
    keepTabStop(this.root);
  }

  markOld() {
    for (const row of this.drawn.rows) row.inert = row.revision < this.expected;
  }

  get stale() {
    return Number(this.root.dataset.revision) < this.expected && this.drawn.rows.length > 0;
  }

  paintState() {
    const old = Boolean(this.seen && this.seen.revision < this.expected);
    this.markOld();
    markInert(this.rows, this.drawn.rows);
    set(this.root, 'data-state', this.said.state);
    set(this.root, 'data-stale', String(this.stale));
    set(this.rest, 'data-inert', old || null);
    set(this.cover, 'data-stale', String(old));
    this.paintNote();
  }

  // The line under the rows: a refusal, what is pointed at, or what there is to say of the whole.
  paintNote() {
    const pointed = this.about(this.pointing.current), from = this.seen?.view.seen_from;
    const sentence = this.refusing ? this.because : pointed ? pointed.sentence : words.summarySentence(this.said, this.drawn, from);
    write(this.note.querySelector('.words'), sentence);
    write(this.note.querySelector('.progress'), this.refusing || pointed ? '' : this.progress());
    this.note.querySelector('.ban').hidden = !pointed?.bannable || Boolean(this.refusing);
    this.tellPointed(pointed ? pointed.text : null);
  }

  // What a button stands for: the text up to it, its own, the token's id, and what to say of it.
  about(button) {
    if (!button || button.closest('[data-inert]')) return null;
    if (button.dataset.rest) {
      const other = this.drawn.others[button.dataset.rest];
      return other && {...tokenToBan(other, other.ids.length < 2, this.seen), text: other.text, sentence: words.describeOther(other)};
    }
    const row = this.drawn.rows[button.closest('.branch').dataset.branch], token = Number(button.dataset.token);
    const piece = row?.pieces[token];
    return piece && {...tokenToBan(piece, row.healed && !token, this.seen), text: textUpTo(row, token), sentence: words.describePiece(row, piece)};
  }

  tellPointed(text) {
    if (text === this.told) return;
    this.told = text;
    this.root.dispatchEvent(new CustomEvent('point', {detail: {text}, bubbles: true}));
  }

  progress() {
    const {state, reading} = this.said, growing = state === 'thinking' && this.seen?.revision === this.expected;
    return words.progressSentence(reading, growing && this.drawn.rows, this.seen?.view.asked);
  }

  choiceOf(branch, token) {
    const row = this.drawn.rows[branch];
    return row?.pieces[token] ? choiceOf(row, branch, token) : null;
  }

  // What a button means now: it is decided when it is pressed, for a paint may come before it is let go.
  meaningOf(button) {
    if (button.dataset.token) return this.choiceOf(Number(button.closest('.branch').dataset.branch), Number(button.dataset.token));
    const other = this.drawn.others[button.dataset.rest], {view, revision} = this.seen || {};
    const healed = Boolean(view?.branches.some(branch => branch.healed));
    return other ? choiceOfOther(other, Number(button.dataset.rest), {revision, healed}) : null;
  }

  choose(branch, token, {byKeyboard = false, pointer = null} = {}) {
    return this.accept(this.choiceOf(branch, token), {byKeyboard, pointer});
  }

  // A choice among rows of an older text is refused; so is what a listener cancels.
  accept(choice, {byKeyboard, pointer}) {
    if (!choice) return false;
    const detail = {...choice, byKeyboard, pointer};
    const event = new CustomEvent('accept', {detail, bubbles: true, cancelable: true});
    if (choice.revision >= this.expected && this.root.dispatchEvent(event)) return true;
    this.refuse(detail.because);
    return false;
  }

  ban(button) {
    const about = this.about(button);
    if (about?.bannable) this.root.dispatchEvent(new CustomEvent('ban', {detail: {id: about.id, text: about.own}, bubbles: true}));
  }

  refuse(because = words.REFUSAL) {
    clearTimeout(this.refusing);
    this.because = because;
    this.root.dataset.refused = true;
    this.refusing = setTimeout(() => this.endRefusal(), REFUSED_FOR);
    this.paintNote();
    write(this.announcement, because);
  }

  endRefusal() {
    this.refusing = 0;
    delete this.root.dataset.refused;
    if (this.announcement.textContent === words.REFUSAL) write(this.announcement, '');   // so that the next is heard too
    this.paintNote();
  }

  toggleRest() {
    const more = this.rest.querySelector('.more');
    more.setAttribute('aria-expanded', String(more.getAttribute('aria-expanded') !== 'true'));
    paintRest(this.rest, this.drawn);
    keepTabStop(this.root);
  }
}
