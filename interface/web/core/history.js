// The history of a document: its steps as changes, the position of the text among them, and abandoned texts.
/**
 * @import {AbandonedText, AcceptedSpan, AuthorRun, ConversationState, HistoryState, HistoryStep, Moment, NewStep, Span, TextState, Turn}
 *   from './types.d.ts'
 */
import {AcceptedTrail} from './accepted_trail.js';
import {agreeWithSpans, changeWithAuthors, earlierRuns, lengthOfRuns, runsAfterChange, runsAfterStep, runsWithin} from './authorship.js';
import {applyChange, changeBetween, changeFits, inverseChange, lengthDifference, removesWords} from './difference.js';
import {redoSpans, spansAfterChange, spansPatch, spansWithin, undoSpans} from './chosen_spans.js';
import {canJoin, joinSteps} from './history_grouping.js';
import {excerpt} from './text_words.js';

const MOST_STEPS = 2000;
const MOST_ABANDONED = 50;
const MOST_CHARACTERS = 8_000_000;   // in all steps
const MOST_MOMENTS = 200;
const SINGLE_PIECES = new Set(['accepted', 'undone']);
const CONTEXT = 48;   // characters before a piece, in the list
const MOST_KNOWN_AUTHORS = 64;   // positions whose authors are kept

/** @param {NewStep} step */
const sizeOf = ({removed, inserted}) => removed.length + inserted.length;

/**
 * @param {TextState} state
 * @param {HistoryStep} step
 * @returns {TextState}
 */
export const stateAfter = ({text, spans, earlier}, step) => ({
  text: applyChange(text, step), spans: redoSpans(spans, step.marks, lengthDifference(step)), earlier: step.turn ? step.turn.after : earlier,
});

/**
 * @param {TextState} state
 * @param {HistoryStep} step
 * @returns {TextState}
 */
export const stateBefore = ({text, spans, earlier}, step) => ({
  text: applyChange(text, inverseChange(step)), spans: undoSpans(spans, step.marks, lengthDifference(step)), earlier: step.turn ? step.turn.before : earlier,
});

/**
 * The state that an abandoned text restores.
 * @type {(then: AuthoredState, entry: AbandonedText) => AuthoredState}
 */
function restoredState(then, entry) {
  const text = applyChange(then.text, entry), spans = spansAfterChange(then.spans, entry, entry.marks);
  const known = entry.authors && lengthOfRuns(entry.authors) === entry.inserted.length ? entry.authors : null;
  const inserted = known ?? earlierRuns({text: entry.inserted, spans: entry.marks});
  const authors = agreeWithSpans(runsAfterChange(then.authors, entry, inserted), spans);
  return {text, spans, authors, earlier: entry.turn ? entry.turn.after : then.earlier};
}

/**
 * The end of the text before a piece, from the beginning of a word on, with a space behind it if white space stands there.
 * @param {string} text
 * @param {number} start of the piece
 */
function contextBefore(text, start) {
  const before = text.slice(Math.max(0, start - CONTEXT), start), space = /\S\s+$/.test(before) ? ' ' : '';
  if (start <= CONTEXT) return excerpt(before, CONTEXT) + space;
  return `…${excerpt(before.replace(/^\S*\s|^[\udc00-\udfff]/u, ''), CONTEXT)}${space}`;
}

/**
 * Whether the text before an undone step has words that the texts after it lack. A message that is sent has the words of the
 * box, which is empty then.
 * @param {HistoryStep} step
 */
const isLostBy = step => !(step.turn && !step.inserted) && (removesWords(step) || (step.kind === 'reenter' && step.removed !== ''));

/** @typedef {TextState & {authors: AuthorRun[]}} AuthoredState */

/**
 * The change from one state to another, with the spans and the authors of what it inserts.
 * @param {AuthoredState} from
 * @param {AuthoredState} to
 */
function changeOfState(from, to) {
  const change = changeWithAuthors(from, to, changeBetween(from.text, to.text)), {start} = change, end = start + change.inserted.length;
  const marks = spansWithin(to.spans, start, end), authors = runsWithin(to.authors, start, end);
  return {...change, marks, authors, ...turnFields(from.earlier, to.earlier)};
}

/**
 * The fields of a step that passes the turn of a conversation; none where the conversation stays the same.
 * @param {ConversationState | undefined} before
 * @param {ConversationState | undefined} after
 * @returns {{turn?: Turn}}
 */
export const turnFields = (before, after) => (before === after ? {} : {turn: {before, after}});

/** All steps of a document. The steps after `position` were undone and can be redone. */
export class EditHistory {
  /** @type {HistoryStep[]} */
  steps = [];
  position = 0;
  /** @type {AbandonedText[]} */
  left = [];
  #open = false;   // whether the next change may join the last step
  /**
   * The authors of the text before the first step, once they are known.
   * @type {AuthorRun[] | null}
   */
  #firstAuthors = null;
  #checked = false;   // whether these authors fit the text
  /**
   * The authors at positions that were looked at lately. Without them each key after an undo would compute those of all steps.
   * @type {Map<number, AuthorRun[]>}
   */
  #knownAuthors = new Map();
  #nextNumber = 1;    // of a step

  /**
   * Add a step, or join it with the last one. The text that undone steps led to becomes an abandoned one, and so does each
   * that one of them had replaced or shortened by words.
   * @param {NewStep} step
   * @param {TextState} state before the step
   * @param {{marks?: Span[], goal?: Span[], authors?: AuthorRun[]}} [options] `marks`: the spans of the inserted text,
   *   counted from its start; `goal` and `authors`: all spans and authors after the step, where they are known
   * @returns {Span[]} the spans after the step
   */
  add(step, state, {marks = [], goal, authors} = {}) {
    this.#findFirstAuthors(state);
    const last = this.#stepToJoin(step), joined = last ? joinSteps(last, step) : step;
    const base = last ? undoSpans(state.spans, last.marks, lengthDifference(last)) : state.spans;
    const spans = goal ?? spansAfterChange(base, joined, marks);
    this.#abandonUndone(state);
    if (last) this.steps.pop();
    this.#forgetAuthorsAfter(this.steps.length);
    const patch = spansPatch(base, spans, lengthDifference(joined)), number = last?.number ?? this.#nextNumber++;
    this.steps.push({...joined, marks: patch, number, ...(authors ? {authors} : {})});
    this.position = this.steps.length;
    this.#open = true;
    this.#limit();
    return spans;
  }

  /** Move one step back. Returns the step, or null if there is none. */
  undo() {
    this.#open = false;
    return this.position > 0 ? this.steps[--this.position] : null;
  }

  /** Move one step forward. Returns the step, or null if there is none. */
  redo() {
    this.#open = false;
    return this.position < this.steps.length ? this.steps[this.position++] : null;
  }

  /** The number of the step before the position; 0 if there is none. */
  get number() { return this.steps[this.position - 1]?.number ?? 0; }

  /**
   * Keep the accepted pieces of the text with the last step, which went back to an earlier text.
   * @param {AcceptedSpan[]} accepted
   */
  keepAccepted(accepted) {
    if (accepted.length) this.steps[this.position - 1].accepted = accepted;
  }

  /** Let no later change join the last step: something else was done between. */
  close() { this.#open = false; }

  get canUndo() { return this.position > 0; }

  get canRedo() { return this.position < this.steps.length; }

  /** Drop the steps before the position: they do not fit the text, as in a file that was edited by hand. */
  forgetBefore() {
    this.#drop(this.position);
    this.#firstAuthors = null;
    this.#knownAuthors.clear();
  }

  /** Drop the steps after the position. */
  forgetAfter() {
    this.steps.length = this.position;
    this.#forgetAuthorsAfter(this.position);
  }

  /**
   * The moments that can be gone back to, the newest first: accepted pieces, undone ones, turns, and abandoned texts.
   * @param {TextState} state
   * @returns {Moment[]}
   */
  moments(state) {
    if (!this.steps.length && !this.left.length) return [];
    const present = this.#stepsIn(state);
    const left = this.left.map((entry, index) => {
      const isBack = Boolean(entry.authors?.some(({step}) => step !== undefined && present.has(step)));
      const moment = {kind: 'left', index, time: entry.time, before: entry.context, text: entry.inserted, ...(isBack && {isBack})};
      return entry.turn ? {...moment, earlier: entry.turn.after, text: this.goal(moment, state)?.text ?? ''} : moment;
    });
    const found = [...left, ...this.#acceptedMoments(state, present)].sort((one, other) => other.time - one.time);
    // Accepted pieces are many: the list shows the newest. Turns and abandoned texts are all listed.
    let pieces = 0;
    return found.filter(({kind}) => !SINGLE_PIECES.has(kind) || (pieces += 1) <= MOST_MOMENTS);
  }

  /**
   * The document as it was at a moment; null if that is no longer known.
   * @param {Moment} moment
   * @param {TextState} state
   * @returns {TextState & {caret: Span, accepted?: AcceptedSpan[]} | null} `accepted`: the accepted pieces of an abandoned text, where
   *   there are any
   */
  goal(moment, state) {
    const found = this.#goal(moment, state);
    return found && {text: found.text, spans: found.spans, earlier: found.earlier, caret: found.caret, ...(found.accepted ? {accepted: found.accepted} : {})};
  }

  /**
   * The authors of the text at a moment; undefined if that is no longer known.
   * @param {Moment} moment
   * @param {TextState} state
   */
  goalAuthors(moment, state) { return this.#goal(moment, state)?.authors; }

  /**
   * @param {Moment} moment
   * @param {TextState} state
   * @returns {AuthoredState & {caret: Span, accepted?: AcceptedSpan[]} | null}
   */
  #goal(moment, state) {
    if (moment.kind !== 'left') return this.#stateAt(moment.at ?? 0, state);
    const entry = this.left[moment.index ?? -1], then = entry && this.#stateAt(entry.at, state);
    if (!then || !changeFits(then.text, entry)) return null;
    return {...restoredState(then, entry), caret: entry.caret, accepted: entry.accepted};
  }

  /**
   * The authors of the present text.
   * @param {TextState} state
   */
  authors(state) { return this.#stateAt(this.position, state).authors; }

  /**
   * The text, its spans and its authors before the first step.
   * @param {TextState} state
   */
  first(state) { return this.#stateAt(0, state); }

  /** @returns {HistoryState} */
  state() {
    const authors = this.#firstAuthors;
    return {steps: [...this.steps], position: this.position, ...(authors ? {authors} : {})};
  }

  /**
   * Replace all of the history. Of more steps than a history keeps, as a file may have, the oldest are dropped, or those that
   * were undone.
   * @param {Partial<HistoryState>} [history]
   * @param {AbandonedText[]} [left]
   */
  load({steps = [], position = 0, authors} = {}, left = []) {
    this.steps = steps.slice(0, Math.max(position, MOST_STEPS)).map((step, index) => ({number: index + 1, ...step}));
    Object.assign(this, {position, left: left.filter(({at}) => at <= this.steps.length).slice(-MOST_ABANDONED)});
    this.#open = false;
    const runs = [authors ?? [], ...left.map(entry => entry.authors ?? [])].flat();
    const numbers = [...this.steps.map(({number}) => number ?? 0), ...runs.map(({step}) => step ?? 0)];
    this.#nextNumber = 1 + numbers.reduce((most, number) => Math.max(most, number), 0);
    this.#firstAuthors = authors ?? null;
    this.#checked = false;
    this.#knownAuthors.clear();
    this.#limit();
  }

  /** @param {NewStep} step */
  #stepToJoin(step) {
    const last = this.steps[this.position - 1];
    return this.#open && canJoin(last, step) ? last : null;
  }

  /**
   * The numbers of the steps that brought what stands in the text.
   * @param {TextState} state
   */
  #stepsIn(state) { return new Set(this.authors(state).map(({step}) => step)); }

  /** @param {TextState} state @param {Set<number | undefined>} present the numbers of the steps that brought what stands in the text */
  #acceptedMoments(state, present) {
    /** @type {Moment[]} */
    const found = [];
    const firstTurn = this.steps.findIndex(({turn}) => turn);
    let then = state, isSent = false;   // what was accepted before a turn stands in an earlier message
    /** @param {number} index */
    const goesOn = index => index >= 0 && (found.length < MOST_MOMENTS || (firstTurn >= 0 && index >= firstTurn));
    for (let index = this.position - 1; goesOn(index); index -= 1) {
      const step = this.steps[index];
      isSent ||= Boolean(step.turn);
      const isGone = !isSent && !present.has(step.number);
      if (step.kind === 'accept') found.push({...this.#momentOf('accepted', index, then), ...(isGone && {isGone})});
      then = stateBefore(then, step);
      const moment = {kind: step.kind, at: index, time: step.time};
      // The moment of an accepted piece is listed already.
      const left = step.kind === 'reenter' && step.removed !== '' && this.steps[index - 1]?.kind !== 'accept';
      if (step.turn) found.push({...moment, before: '', text: then.text, earlier: step.turn.before});
      else if (left) found.push({...moment, before: contextBefore(then.text, step.start), text: step.removed});
    }
    then = state;
    for (let index = this.position; index < this.steps.length; index += 1) {
      then = stateAfter(then, this.steps[index]);
      if (this.steps[index].kind === 'accept') found.push(this.#momentOf('undone', index, then));
    }
    return found;
  }

  /**
   * @param {string} kind
   * @param {number} index of the step
   * @param {TextState} state after it
   * @returns {Moment}
   */
  #momentOf(kind, index, {text, spans}) {
    const {time, start, inserted, written} = this.steps[index], end = start + inserted.length;
    // A click in the example brings its opening too, which nobody has chosen.
    const chosen = written?.length ? undefined : spans.find(([from, to]) => to > start && from < end), from = Math.max(start, chosen?.[0] ?? start);
    return {kind, at: index + 1, time, before: contextBefore(text, from), text: text.slice(from, end), ...(written?.length ? {written} : {})};
  }

  /**
   * @param {number} position
   * @param {TextState} state at the present position
   * @returns {AuthoredState & {caret: Span}}
   */
  #stateAt(position, state) {
    const then = this.#textAt(position, state);
    const authors = agreeWithSpans(this.#authorsAt(position, state), then.spans);
    return {...then, authors, caret: this.steps[position - 1]?.after ?? /** @type {Span} */ ([0, 0])};
  }

  /**
   * @param {number} position
   * @param {TextState} state at the present position
   */
  #textAt(position, state) {
    let then = state;
    for (let index = this.position; index > position; index -= 1) then = stateBefore(then, this.steps[index - 1]);
    for (let index = this.position; index < position; index += 1) then = stateAfter(then, this.steps[index]);
    return then;
  }

  /**
   * The authors as the steps say, whatever the spans are.
   * @param {number} position
   * @param {TextState} state at the present position
   */
  #authorsAt(position, state) {
    const known = this.#knownAuthors, from = Math.max(0, ...[...known.keys()].filter(at => at <= position));
    const runs = this.steps.slice(from, position).reduce(runsAfterStep, known.get(from) ?? this.#findFirstAuthors(state));
    known.set(position, runs);
    const [oldest] = known.keys();
    if (known.size > MOST_KNOWN_AUTHORS) known.delete(oldest);
    return runs;
  }

  /** @param {number} position */
  #forgetAuthorsAfter(position) { for (const at of this.#knownAuthors.keys()) if (at > position) this.#knownAuthors.delete(at); }

  /**
   * The authors of the text before the first step. Those of a file are dropped if they do not fit the text.
   * @param {TextState} state at the present position
   */
  #findFirstAuthors(state) {
    if (this.#firstAuthors && this.#checked) return this.#firstAuthors;
    const first = this.#textAt(0, state), known = this.#firstAuthors;
    this.#firstAuthors = known && lengthOfRuns(known) === first.text.length ? known : earlierRuns(first);
    this.#checked = true;
    return this.#firstAuthors;
  }

  /** @param {TextState} state */
  #abandonUndone(state) {
    // Texts that were abandoned after an undone step are from now on changes of the present text.
    this.left = this.left.map(entry => (entry.at > this.position ? this.#fromHere(state, entry) : entry));
    const gone = this.steps.slice(this.position);
    while (gone.length && !gone[gone.length - 1].inserted && !gone[gone.length - 1].turn) gone.pop();
    for (const [index, step] of gone.entries()) {
      const next = gone[index + 1], at = this.position + index + 1;
      // After a turn the box is empty, or has the copy of a message.
      if (!next || (!step.turn && isLostBy(next))) this.#keepAbandoned(state, at);
    }
    this.steps.length = this.position;
  }

  /**
   * @param {TextState} state
   * @param {AbandonedText} entry
   * @returns {AbandonedText}
   */
  #fromHere(state, entry) {
    const then = this.#stateAt(entry.at, state), {caret, time, context, accepted} = entry;
    const change = changeOfState(this.#stateAt(this.position, state), restoredState(then, entry));
    return {caret, time, context, ...(accepted ? {accepted} : {}), ...change, at: this.position};
  }

  /**
   * @param {TextState} state
   * @param {number} position after which the text is abandoned
   */
  #keepAbandoned(state, position) {
    const tip = this.#stateAt(position, state), {after, time} = this.steps[position - 1], trail = new AcceptedTrail();
    trail.restoreFrom({steps: this.steps, position}, 0);
    const found = changeOfState(this.#stateAt(this.position, state), tip);
    if (!changeBetween(state.text, tip.text).inserted && !found.turn) return;
    /** @param {AbandonedText} entry */
    const isKnown = entry => entry.at === this.position && entry.start === found.start && entry.removed === found.removed
      && entry.inserted === found.inserted && entry.turn?.after === found.turn?.after;
    const accepted = trail.spans.filter(({end}) => end > found.start);
    const entry = {...found, at: this.position, caret: after, time, context: contextBefore(state.text, found.start), ...(accepted.length ? {accepted} : {})};
    this.left = [...this.left.filter(older => !isKnown(older)), entry].slice(-MOST_ABANDONED);
  }

  /** Drop the oldest steps, if there are too many, but none that was undone. */
  #limit() {
    const most = Math.min(this.position, this.steps.length - 1);
    let characters = this.steps.reduce((sum, step) => sum + sizeOf(step), 0), dropped = 0;
    while (dropped < most && (this.steps.length - dropped > MOST_STEPS || characters > MOST_CHARACTERS)) {
      characters -= sizeOf(this.steps[dropped]);
      dropped += 1;
    }
    if (dropped) this.#drop(dropped);
  }

  /** @param {number} count of the oldest steps */
  #drop(count) {
    const dropped = this.steps.splice(0, count), known = [...this.#knownAuthors].filter(([at]) => at > count);
    this.#knownAuthors = new Map(known.map(([at, runs]) => [at - count, runs]));
    if (this.#firstAuthors) this.#firstAuthors = dropped.reduce(runsAfterStep, this.#firstAuthors);
    this.position -= count;
    this.left = this.left.map(entry => ({...entry, at: entry.at - count})).filter(entry => entry.at >= 0);
  }
}
