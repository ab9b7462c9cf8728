// The person's text in its text box: what was typed and chosen, where the caret stands, and the one history of both.
//
// Every change of the text, or of where the caret stands, gives a new revision. Events: `change` {revision, kind}, kind
// being type, accept, undo, redo, reenter, load, caret, told, telling, replace or a turn's own; `caret` {caret, selected} at once
// at every move.
import {applyChange, changeBetween, changeFits, inverseChange, changeTyped} from '../core/difference.js';
import {spansAfterChange} from '../core/chosen_spans.js';
import {EditHistory, stateBefore, stateAfter, turnFields} from '../core/history.js';
import {listenToTextBox} from './text_box_events.js';
import {AcceptedTrail} from '../core/accepted_trail.js';
import {replaceInTextBox} from './text_box_writing.js';

const oneLineEnd = text => text.replace(/\r\n?/g, '\n');
const OURS = ['accept', 'reenter', 'replace'];

export class TextDraft extends EventTarget {
  composing = false;
  revision = 0;
  #text;               // as last noticed; the box may be ahead of it while an input method composes
  #place;              // of the caret, at the newest revision
  #selection;
  #spans = [];
  #earlier;            // what stands before the text, where it is a message of a conversation
  #history = new EditHistory();
  #trail = new AcceptedTrail();
  #writing = false;
  #listening = new AbortController();

  // `also` gives the elements in which the keys of undo and redo are the draft's too.
  constructor(box, {also = () => [], earlier} = {}) {
    super();
    this.box = box;
    this.#earlier = earlier;
    this.#text = '';
    this.#place = 0;
    this.#selection = [0, 0];
    listenToTextBox(this, {also, signal: this.#listening.signal, hear: {
      input: kind => this.#hear(kind),
      select: () => { this.#selection = this.selection; },
      nativeUndo: verb => this.#instead(verb),
    }});
    this.sync();
  }

  get text() { return this.box.value; }

  // A box that was left by touch forgets where its caret stood: then it stands where it was last put.
  get selection() {
    const {selectionStart: start, selectionEnd: end} = this.box;
    return this.#left && !start && !end ? this.#selection : [start, end];
  }

  get caret() { return this.selection[0]; }

  get selected() { return this.selection[0] !== this.selection[1]; }

  get #left() { return this.#selection && this.box.getRootNode().activeElement !== this.box; }

  get before() { return this.text.slice(0, this.caret); }

  get earlier() { return this.#earlier; }

  get steps() { return this.#history.steps; }

  get left() { return this.#history.left; }

  get canUndo() { return this.#history.canUndo; }

  get canRedo() { return this.#history.canRedo; }

  get moments() { return this.#history.moments(this.#state); }

  // Of the text in the box, also in the middle of a composition.
  get spans() {
    return this.text === this.#text ? this.#spans : spansAfterChange(this.#spans, changeBetween(this.#text, this.text));
  }

  // The newest revision, after noticing what has changed without being heard of.
  sync() {
    if (this.composing) return this.revision;
    if (this.text !== this.#text) this.#noticed('replace');
    else if (!this.selected && this.caret !== this.#place) this.#renew('caret');
    return this.revision;
  }

  // Insert what was chosen at the caret, if it belongs to what stands there; whether it was done.
  accept(text, {ids = [], healed = false, revision, logprobs = null, focus = false} = {}) {
    if (!text || this.composing || this.selected || this.sync() !== revision) return false;
    if (focus) this.box.focus({preventScroll: true});
    // The box keeps one kind of line end; ids that do not stand for what was inserted help nobody.
    const inserted = oneLineEnd(text), start = this.caret, end = start + inserted.length;
    this.#write({start, removed: '', inserted}, [end, end]);
    const what = inserted === text ? {ids, healed, logprobs} : {ids: null, healed: false, logprobs: null};
    const carets = {before: [start, start], after: this.selection};
    const step = {start, removed: '', inserted, ...carets, kind: 'accept', time: Date.now(), ...what};
    this.#record(step, [[0, inserted.length]]);
    this.#renew('accept');
    this.#trail.add(step, this.revision);
    return true;
  }

  // Another text, with something else before it: as one step. Whether it was done.
  turn({kind, text, spans, earlier}) {
    if (this.composing) return false;
    this.sync();
    const change = {start: 0, removed: this.#text, inserted: text}, before = this.selection;
    this.#write(change, [text.length, text.length]);
    const turned = turnFields(this.#earlier, earlier), carets = {before, after: this.selection};
    this.#record({...change, ...carets, kind, time: Date.now(), ...turned}, null, spans);
    this.#renew(kind);
    return true;
  }

  // What the model is told of the text is another, or (`telling`) is being written: what belonged to the text as it stands
  // belongs to it no more.
  retold(kind = 'told') {
    if (this.composing) return;
    this.sync();
    this.#renew(kind);
  }

  undo() { return this.#travel('undo'); }

  redo() { return this.#travel('redo'); }

  // Go back to how the text stood at one of the moments, as one new step.
  reenter(moment) {
    if (this.composing) return false;
    this.sync();
    const goal = this.#history.goal(moment, this.#state);
    if (!goal) return false;
    const change = changeBetween(this.#text, goal.text), before = this.selection;
    this.#write(change, goal.caret);
    const turned = turnFields(this.#earlier, goal.earlier);
    if (change.removed || change.inserted || turned.turn) {
      const step = {...change, before, after: this.selection, kind: 'reenter', time: Date.now(), ...turned};
      this.#record(step, null, goal.spans);
    }
    this.#renew('reenter');
    return true;
  }

  // What was accepted since a revision and still stands untouched before the caret: [[before, ids, healed], ...].
  trail(since) { return this.#trail.since(since, this.caret); }

  state() {
    const before = this.#earlier === undefined ? {} : {earlier: this.#earlier};
    return {
      text: this.text, caret: this.caret, history: this.#history.state(), left: [...this.left], spans: this.spans, ...before,
    };
  }

  // Another document: nothing of the one before is left in the history.
  load({text = '', caret = text.length, history, left, spans, earlier = this.#earlier} = {}) {
    this.composing = false;
    this.#earlier = earlier;
    this.#writing = true;
    this.box.value = text;
    this.#writing = false;
    const same = this.text === text;   // line ends become one kind, and then no difference fits
    this.#history.load(same ? history : {}, same ? left : []);
    this.#spans = same && spans ? spans : [];
    this.#trail.clear();
    this.box.setSelectionRange(caret, caret);
    this.#selection = [caret, caret];
    this.#text = this.text;
    this.#renew('load');
  }

  // The page needs this text box no more.
  stop() { this.#listening.abort(); }

  get #state() { return {text: this.#text, spans: this.#spans, earlier: this.#earlier}; }

  #hear(kind) {
    if (!this.#writing && !this.composing && this.text !== this.#text) this.#noticed(kind);
  }

  #noticed(kind) {
    const change = changeTyped(this.#text, this.text, this.#selection, this.box.selectionEnd);
    const [from, to] = this.#selection, end = change.start + change.removed.length;
    const before = from >= change.start && to <= end ? [from, to] : [end, end];
    this.#record({...change, before, after: this.selection, kind, time: Date.now()});
    this.#renew(OURS.includes(kind) ? kind : 'type');
  }

  #record(step, marks = [], goal = null) {
    this.#spans = this.#history.add(step, this.#state, {marks, goal});
    this.#trail.applyChange(step);
    this.#text = this.text;
    if (step.turn) this.#earlier = step.turn.after;
  }

  #travel(verb) {
    if (this.composing) return false;
    this.sync();
    const step = this.#history[verb](), undoes = verb === 'undo';
    if (!step) return false;
    const change = undoes ? inverseChange(step) : step;
    if (!changeFits(this.#text, change)) return this.#lost(undoes);
    const {spans, earlier} = (undoes ? stateBefore : stateAfter)(this.#state, step);
    this.#write(change, undoes ? step.before : step.after);
    this.#text = this.text;
    [this.#spans, this.#earlier] = [spans, earlier];
    this.#trail.applyChange(change);
    this.#renew(verb);
    if (!undoes && step.ids) this.#trail.add(step, this.revision);
    return true;
  }

  #lost(undoes) {
    this.#history[undoes ? 'redo' : 'undo']();
    this.#history[undoes ? 'forgetBefore' : 'forgetAfter']();
    return false;
  }

  // The browser has undone by itself (its menu): put back what stood there, and do it our way.
  #instead(verb) {
    if (this.#writing || this.composing) return;
    this.#writing = true;
    replaceInTextBox(this.box, changeBetween(this.text, this.#text));
    this.#writing = false;
    this.box.setSelectionRange(...this.#selection);
    this[verb]();
  }

  #write(change, selection) {
    const expected = applyChange(this.#text, change);
    this.#writing = true;
    replaceInTextBox(this.box, change);
    if (this.text !== expected) this.box.value = expected;
    this.box.setSelectionRange(...selection);
    this.#selection = selection;
    this.#writing = false;
  }

  #renew(kind) {
    this.revision += 1;
    this.#place = this.caret;
    this.#selection = this.selection;
    this.dispatchEvent(new CustomEvent('change', {detail: {revision: this.revision, kind}}));
  }
}
