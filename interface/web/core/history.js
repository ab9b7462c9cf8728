// The one history of a document: steps as differences, where in them the text stands, and what was left behind.
import {applyChange, changeBetween, changeFits, lengthDifference, inverseChange} from './difference.js';
import {spansAfterChange, spansPatch, redoSpans, undoSpans, spansWithin} from './chosen_spans.js';
import {joinSteps, canJoin} from './history_grouping.js';
import {excerpt} from './text_words.js';

const MOST_STEPS = 2000;
const MOST_LEFT = 50;
const MOST_CHARACTERS = 8_000_000;
const MOST_MOMENTS = 200;
const WORDS = new Set(['accepted', 'undone']);
const CONTEXT = 48;   // characters before a piece, for the list

const size = ({removed, inserted}) => removed.length + inserted.length;

// The state after a step, and the state before it.
export const stateAfter = ({text, spans, earlier}, step) => ({
  text: applyChange(text, step), spans: redoSpans(spans, step.marks, lengthDifference(step)), earlier: step.turn ? step.turn.after : earlier,
});
export const stateBefore = ({text, spans, earlier}, step) => ({
  text: applyChange(text, inverseChange(step)), spans: undoSpans(spans, step.marks, lengthDifference(step)), earlier: step.turn ? step.turn.before : earlier,
});

// The state that an entry of what was left leads to.
const tipOf = (then, entry) => ({
  text: applyChange(then.text, entry), spans: spansAfterChange(then.spans, entry, entry.marks), earlier: entry.turn ? entry.turn.after : then.earlier,
});

// The end of what stands before a piece, from the beginning of a word on.
function context(text, start) {
  if (start <= CONTEXT) return excerpt(text.slice(0, start), CONTEXT);
  return `…${excerpt(text.slice(start - CONTEXT, start).replace(/^\S*\s|^[\udc00-\udfff]/u, ''), CONTEXT)}`;
}

// What leads from one state to another, with the marks of what it inserts.
function way(from, to) {
  const change = changeBetween(from.text, to.text), {start, inserted} = change;
  return {...change, marks: spansWithin(to.spans, start, start + inserted.length), ...turnFields(from.earlier, to.earlier)};
}

// What a step has beside the change of the text, where what stands before the text is another after it.
export const turnFields = (before, after) => (before === after ? {} : {turn: {before, after}});

// A state is {text, spans, earlier}: `earlier` is what stands before the text, in a conversation. The steps after `position` were undone and can be redone.
export class EditHistory {
  steps = [];
  position = 0;
  left = [];
  #open = false;

  // Take a step that `state` was changed by, as one with the last step where it goes on with that; the spans after it.
  // `marks` are the spans of what the step inserts, counted from its start; `goal` all spans after it, where they are known.
  // What could be redone until now is left behind.
  add(step, state, {marks = [], goal = null} = {}) {
    const last = this.#goesOn(step), whole = last ? joinSteps(last, step) : step;
    const base = last ? undoSpans(state.spans, last.marks, lengthDifference(last)) : state.spans;
    const spans = goal ?? spansAfterChange(base, whole, marks);
    this.#leave(state);
    if (last) this.steps.pop();
    this.steps.push({...whole, marks: spansPatch(base, spans, lengthDifference(whole))});
    this.position = this.steps.length;
    this.#open = true;
    this.#bound();
    return spans;
  }

  undo() {
    this.#open = false;
    return this.position > 0 ? this.steps[--this.position] : null;
  }

  redo() {
    this.#open = false;
    return this.position < this.steps.length ? this.steps[this.position++] : null;
  }

  get canUndo() { return this.position > 0; }

  get canRedo() { return this.position < this.steps.length; }

  // Steps up to where the text stands that do not fit it (a file made by hand) are dropped.
  forgetBefore() { this.#drop(this.position); }

  forgetAfter() { this.steps.length = this.position; }

  // What was accepted, undone, left and turned from, the newest first; each can be gone back to.
  moments(state) {
    const left = this.left.map((entry, index) => {
      const moment = {kind: 'left', index, time: entry.time, before: entry.context, text: entry.inserted};
      return entry.turn ? {...moment, earlier: entry.turn.after, text: this.goal(moment, state)?.text ?? ''} : moment;
    });
    const found = [...left, ...this.#accepted(state)].sort((one, other) => other.time - one.time);
    // Of single words there are many; turns that were passed, and what was left, are all to be found again.
    let words = 0;
    return found.filter(({kind}) => !WORDS.has(kind) || (words += 1) <= MOST_MOMENTS);
  }

  // The document as it stood at one of the moments.
  goal(moment, state) {
    if (moment.kind !== 'left') return this.#at(moment.at, state);
    const entry = this.left[moment.index], then = entry && this.#at(entry.at, state);
    if (!then || !changeFits(then.text, entry)) return null;
    return {...tipOf(then, entry), caret: entry.caret};
  }

  state() {
    return {steps: [...this.steps], position: this.position};
  }

  load({steps = [], position = 0} = {}, left = []) {
    Object.assign(this, {steps: [...steps], position, left: [...left]});
    this.#open = false;
  }

  // The step that this one goes on with, if any.
  #goesOn(step) {
    const last = this.steps[this.position - 1];
    return this.#open && canJoin(last, step) ? last : null;
  }

  #accepted(state) {
    const found = [], firstTurn = this.steps.findIndex(({turn}) => turn);
    let {text} = state;
    const goesOn = index => index >= 0 && (found.length < MOST_MOMENTS || (firstTurn >= 0 && index >= firstTurn));
    for (let index = this.position - 1; goesOn(index); index -= 1) {
      const step = this.steps[index];
      text = applyChange(text, inverseChange(step));
      if (step.turn) found.push({kind: step.kind, at: index, time: step.time, before: '', text, earlier: step.turn.before});
      if (step.kind === 'accept') found.push(this.#moment('accepted', index, text));
    }
    ({text} = state);
    for (let index = this.position; index < this.steps.length; index += 1) {
      if (this.steps[index].kind === 'accept') found.push(this.#moment('undone', index, text));
      text = applyChange(text, this.steps[index]);
    }
    return found;
  }

  #moment(kind, index, text) {
    const {time, start, inserted} = this.steps[index];
    return {kind, at: index + 1, time, before: context(text, start), text: inserted};
  }

  #at(position, state) {
    let then = state;
    for (let index = this.position; index > position; index -= 1) then = stateBefore(then, this.steps[index - 1]);
    for (let index = this.position; index < position; index += 1) then = stateAfter(then, this.steps[index]);
    return {...then, caret: this.steps[position - 1]?.after ?? [0, 0]};
  }

  #leave(state) {
    // The older ones that hang further down must be reached from here now.
    this.left = this.left.map(entry => (entry.at > this.position ? this.#reachedFrom(state, entry) : entry));
    const gone = this.steps.slice(this.position);
    while (gone.length && !gone[gone.length - 1].inserted && !gone[gone.length - 1].turn) gone.pop();
    if (gone.length) this.#keep(state, this.#at(this.position + gone.length, state), gone[gone.length - 1]);
    this.steps.length = this.position;
  }

  #reachedFrom(state, entry) {
    const then = this.#at(entry.at, state);
    const {turn, ...older} = entry;
    return {...older, ...way(state, tipOf(then, entry)), at: this.position};
  }

  #keep(state, tip, {after, time}) {
    const found = way(state, tip);
    if (!found.inserted && !found.turn) return;
    const known = entry => entry.at === this.position && entry.start === found.start && entry.removed === found.removed
      && entry.inserted === found.inserted && entry.turn?.after === found.turn?.after;
    const entry = {...found, at: this.position, caret: after, time, context: context(state.text, found.start)};
    this.left = [...this.left.filter(older => !known(older)), entry].slice(-MOST_LEFT);
  }

  #bound() {
    let characters = this.steps.reduce((sum, step) => sum + size(step), 0), dropped = 0;
    while (this.steps.length - dropped > MOST_STEPS || (characters > MOST_CHARACTERS && dropped < this.steps.length - 1)) {
      characters -= size(this.steps[dropped]);
      dropped += 1;
    }
    this.#drop(dropped);
  }

  #drop(count) {
    this.steps.splice(0, count);
    this.position -= count;
    this.left = this.left.map(entry => ({...entry, at: entry.at - count})).filter(entry => entry.at >= 0);
  }
}
