// The person's text in its text box: what was typed and chosen, the caret, and the one history of both.
//
// Every change of the text or of the caret's position makes a new revision. Events:
// - `change` {revision, kind}: kind is type, accept, undo, redo, reenter, load, caret, prompt, prompting, replace or the kind of a
//   turn. Undo, redo and reenter also have the `text` that they have inserted or removed, and undo and redo the kind of their `step`.
// - `caret` {caret, selected}: at every move of the caret.
// - `side` {verb, step}: a step beside the text is taken, undone or redone.
/**
 * @import {AbandonedText, AcceptedPiece, AcceptedSpan, AuthorRun, Change, ConversationState, DraftState, HistoryState, Moment, NewStep, Span, TextState}
 *   from '../core/types.d.ts'
 */
import {AcceptedTrail} from '../core/accepted_trail.js';
import {SideSteps} from '../core/side_steps.js';
import {EditHistory, stateAfter, stateBefore, turnFields} from '../core/history.js';
import {applyChange, changeBetween, changeFits, changeTyped, inverseChange} from '../core/difference.js';
import {dispatch} from './events.js';
import {runsAfterChange, runsWithin} from '../core/authorship.js';
import {hasFocus, replaceInTextBox} from './text_box_writing.js';
import {listenToTextBox} from './text_box_events.js';
import {destinationOf, pastTexts} from '../core/past_texts.js';
import {spansAfterChange, spansOutside, spansWithin} from '../core/chosen_spans.js';

/** @param {string} text */
const oneLineEnd = text => text.replace(/\r\n?/g, '\n');
const NO_MOMENT = {kind: 'accepted', time: 0, before: '', text: ''};
const OWN_KINDS = ['accept', 'reenter', 'replace'];   // kinds of changes that are no typing

/** The text of one text box. */
export class TextOwner extends EventTarget {
  composing = false;
  revision = 0;
  #text = '';            // as last noticed; the box may be ahead of it while an input method composes
  #caretPosition = 0;    // at the newest revision
  /** @type {Span} */
  #selection = [0, 0];
  /** @type {Span[]} */
  #spans = [];
  #earlier;              // the conversation before the text, if the text is one of its messages
  #history = new EditHistory();
  #side = new SideSteps();
  #trail = new AcceptedTrail();
  #writing = false;      // while a script changes the box
  #listening = new AbortController();

  /**
   * @param {HTMLTextAreaElement} box
   * @param {{also?: () => (Element | null)[], earlier?: ConversationState}} [options] `also`: further elements in which the
   *   undo keys are the draft's; `earlier`: the conversation before the text
   */
  constructor(box, {also = () => [], earlier} = {}) {
    super();
    this.box = box;
    this.#earlier = earlier;
    const handlers = {
      onInput: (/** @type {string} */ kind) => this.#onInput(kind),
      onSelect: () => { this.#selection = this.selection; },
      onFocus: () => this.#restoreSelection(),
      onNativeUndo: (/** @type {'undo' | 'redo'} */ verb) => this.#replaceNativeUndo(verb),
    };
    listenToTextBox(this, {also, handlers, signal: this.#listening.signal});
    this.sync();
  }

  get text() { return this.box.value; }

  get hasFocus() { return hasFocus(this.box); }

  /**
   * The selection. A box that was left by touch forgets its caret: then it is the last one that was known.
   * @returns {Span}
   */
  get selection() {
    const {selectionStart: start, selectionEnd: end} = this.box;
    return !this.hasFocus && !start && !end ? this.#selection : [start, end];
  }

  get caret() { return this.selection[0]; }

  get selected() { return this.selection[0] !== this.selection[1]; }

  /** The text before the caret. */
  get before() { return this.text.slice(0, this.caret); }

  get earlier() { return this.#earlier; }

  get steps() { return this.#history.steps; }

  get left() { return this.#history.left; }

  /** The steps beside the text that were made at this point of its history and are not undone. */
  get sideSteps() { return this.#side.at(this.#history.number); }

  get canUndo() { return this.#side.canUndo(this.#history.number) || this.#history.canUndo; }

  get canRedo() { return this.#side.canRedo(this.#history.number) || this.#history.canRedo; }

  get moments() { return this.#history.moments(this.#state); }

  /** The texts before the caret that the document has had, for a drawing. */
  get pastTexts() { return pastTexts(this.#history, this.#state); }

  /** The chosen spans of the text in the box, also during a composition. */
  get spans() {
    return this.text === this.#text ? this.#spans : spansAfterChange(this.#spans, changeBetween(this.#text, this.text));
  }

  /** The authors of the text in the box; what is being composed is typed. */
  get authors() {
    const known = this.#history.authors(this.#state);
    if (this.text === this.#text) return known;
    const change = changeBetween(this.#text, this.text);
    return runsAfterChange(known, change, [{length: change.inserted.length, author: 'typed'}]);
  }

  /** Whether the newest revision is that of the text and the caret as they are: a moved caret makes one after a moment. */
  get isSynced() { return this.text === this.#text && (this.selected || this.caret === this.#caretPosition); }

  /** Notice changes that no event has reported. Returns the newest revision. */
  sync() {
    if (this.composing || this.isSynced) return this.revision;
    if (this.text !== this.#text) this.#notice('replace');
    else this.#makeRevision('caret');
    return this.revision;
  }

  /**
   * Insert an accepted text at the caret, if it was made for this revision. Returns whether it was inserted.
   * @param {string} text
   * @param {object} options
   * @param {number} options.revision that the text was made for
   * @param {number[]} [options.ids] of its tokens
   * @param {boolean} [options.healed] whether the first token replaces the typed one
   * @param {number[] | null} [options.logprobs]
   * @param {boolean} [options.focus] whether the box takes the focus
   * @param {string | null} [options.model] its name
   * @param {string} [options.instruction] that the rows followed, or its beginning
   * @param {number} [options.unchosen] characters at its start that nobody has chosen: those of the example
   * @param {Span[]} [options.written] spans that the person has written into a row
   * @param {number[]} [options.chosenLogprobs] the log-probability of each stretch between these spans
   * @param {string} [options.gap] a space that is inserted too, behind the text and the caret; it counts as typed.
   *   Never with `unchosen`: the example is accepted into an empty text, where no word follows.
   */
  accept(text, {ids = [], healed = false, revision, logprobs = null, focus = false, model = null, instruction = '', unchosen = 0, written = [], chosenLogprobs = [], gap = ''}) {
    if (!text || this.composing || this.selected || this.sync() !== revision) return false;
    if (focus) this.box.focus({preventScroll: true});
    // The box keeps one kind of line end. Ids of another text than the inserted one are of no use.
    const accepted = oneLineEnd(text), inserted = accepted + gap, start = this.caret, end = start + accepted.length;
    this.#write({start, removed: '', inserted}, [end, end]);
    const tokens = accepted === text ? {ids, healed, logprobs} : {ids: null, healed: false, logprobs: null};
    /** @type {Span[]} */
    const typed = gap ? [...written, [accepted.length, inserted.length]] : written;
    /** @type {NewStep} */
    const step = {
      start, removed: '', inserted, before: [start, start], after: this.selection, kind: 'accept', time: Date.now(), model, ...(instruction && {instruction}), ...tokens, ...(typed.length ? {written: typed} : {}), ...(written.length && tokens.logprobs ? {chosenLogprobs} : {}),
    };
    this.#record(step, spansOutside([[0, unchosen], ...typed], inserted.length));
    this.#makeRevision('accept');
    this.#trail.add(step, this.revision);
    return true;
  }

  /**
   * Replace the text and the conversation before it, as one step. Returns whether it was done.
   * @param {{kind: string, text: string, spans: Span[], earlier: ConversationState}} turn
   */
  turn({kind, text, spans, earlier}) {
    if (this.composing) return false;
    this.sync();
    const change = {start: 0, removed: this.#text, inserted: text}, before = this.selection;
    this.#write(change, [text.length, text.length]);
    const turned = turnFields(this.#earlier, earlier), carets = {before, after: this.selection};
    this.#record({...change, ...carets, kind, time: Date.now(), ...turned}, [], {spans});
    this.#makeRevision(kind);
    return true;
  }

  /**
   * Make a new revision because the prompt has changed: branches of the old prompt no longer belong to the text.
   * @param {'prompt' | 'prompting'} [kind] `prompting`: the prompt is still being written
   */
  promptChanged(kind = 'prompt') {
    if (this.composing) return;
    this.sync();
    this.#makeRevision(kind);
  }

  /**
   * Add a step beside the text, which undo and redo reach in its turn: they dispatch it as a `side` event.
   * @param {unknown} step
   */
  addSideStep(step) {
    this.sync();
    this.#history.close();
    this.#side.add(this.#history.number, step);
    dispatch(this, 'side', {verb: 'take', step});
  }

  undo() { return this.#moveSide('undo') || this.#travel('undo'); }

  redo() { return this.#moveSide('redo') || this.#travel('redo'); }

  /**
   * Go back to the text of a moment, as one new step. Returns false if that text is no longer known.
   * @param {Moment} moment
   */
  reenter(moment) { return this.#goBack(moment); }

  /** @param {Moment} moment @param {Span} [caret] where it goes, unless it goes where it was at that moment */
  #goBack(moment, caret) {
    if (this.composing) return false;
    this.sync();
    const goal = this.#history.goal(moment, this.#state), authors = this.#history.goalAuthors(moment, this.#state);
    const past = moment.at === undefined ? undefined : {steps: [...this.#history.steps], position: moment.at};
    if (goal) this.#enter({...goal, caret: caret ?? goal.caret}, authors, past);
    return goal !== null;
  }

  /**
   * Go to a text before the caret that the document has had, as one new step, so that undo leads back from there. What follows
   * the caret stays unless the history holds the text. Returns false if the document never had that text.
   * @param {string} text
   */
  goTo(text) {
    if (this.composing) return false;
    this.sync();
    const found = destinationOf(text, this.#history, this.#state), {length} = text;
    if (!found) return false;
    if ('moment' in found) return this.#goBack({...NO_MOMENT, ...found.moment}, [length, length]);
    const [, end] = this.selection, {spans, of} = found;
    const later = spansWithin(this.#spans, end, this.text.length).map(([from, to]) => /** @type {Span} */ ([from + length, to + length]));
    const known = of && this.#history.goalAuthors({...NO_MOMENT, ...of}, this.#state);
    const authors = known ? [...runsWithin(known, 0, length), ...runsWithin(this.authors, end, Infinity)] : undefined;
    this.#enter({text: text + this.text.slice(end), spans: [...spans, ...later], earlier: this.#earlier, caret: [length, length]}, authors);
    return true;
  }

  /**
   * The unchanged pieces before the caret that were accepted after a revision, or that the text before the caret did not
   * reach at that revision.
   * @param {number} revision
   * @param {number} length of the text before the caret at that revision
   * @returns {AcceptedPiece[]}
   */
  trail(revision, length) { return this.#trail.since(revision, this.caret, length); }

  /** @returns {DraftState} */
  state() {
    const before = this.#earlier === undefined ? {} : {earlier: this.#earlier};
    return {
      text: this.text, caret: this.caret, history: this.#history.state(), left: [...this.left], side: this.#side.state(),
      spans: this.spans, accepted: this.#trail.spans, ...before,
    };
  }

  /**
   * Load another document with a history of its own.
   * @param {Partial<DraftState>} [state]
   */
  load({text = '', caret = text.length, history, left, side, spans, accepted, earlier = this.#earlier} = {}) {
    this.composing = false;
    this.#earlier = earlier;
    this.#writing = true;
    this.box.value = text;
    this.#writing = false;
    const same = this.text === text;   // the box changes line ends; then the steps of the history do not fit
    this.#history.load(same ? history : {}, same ? left : []);
    this.#side.load(same ? side : {});
    this.#spans = same && spans ? spans : [];
    const next = this.revision + 1;
    if (same && accepted) this.#trail.restore(accepted, next);
    else this.#trail.restoreFrom(this.#history.state(), next);
    this.box.setSelectionRange(caret, caret);
    this.#selection = [caret, caret];
    this.#text = this.text;
    this.#makeRevision('load');
  }

  /** Stop listening: the page no longer needs this text box. */
  stop() { this.#listening.abort(); }

  /** @returns {TextState} */
  get #state() { return {text: this.#text, spans: this.#spans, earlier: this.#earlier}; }

  /** @param {string} kind */
  #onInput(kind) {
    if (!this.#writing && !this.composing && this.text !== this.#text) this.#notice(kind);
  }

  /** @param {string} kind */
  #notice(kind) {
    const change = changeTyped(this.#text, this.text, this.#selection, this.box.selectionEnd);
    const [from, to] = this.#selection, end = change.start + change.removed.length;
    /** @type {Span} */
    const before = from >= change.start && to <= end ? [from, to] : [end, end];
    this.#record({...change, before, after: this.selection, kind, time: Date.now()});
    this.#makeRevision(OWN_KINDS.includes(kind) ? kind : 'type');
  }

  /**
   * @param {NewStep} step
   * @param {Span[]} [marks] the spans of the inserted text
   * @param {{spans?: Span[], authors?: AuthorRun[]}} [goal] all spans and authors after the step, where they are known
   */
  #record(step, marks = [], {spans: goal, authors} = {}) {
    this.#spans = this.#history.add(step, this.#state, {marks, goal, authors});
    this.#side.forgetUndone();
    this.#trail.applyChange(step);
    this.#text = this.text;
    if (step.turn) this.#earlier = step.turn.after;
  }

  /**
   * Write a text with its spans as one step.
   * @param {TextState & {caret: Span, accepted?: AcceptedSpan[]}} goal `accepted`: pieces of the text that are accepted again
   * @param {AuthorRun[]} [authors] of the whole text, where they are known
   * @param {HistoryState} [past] the steps that made the text: the tokens that were accepted in it are accepted again
   */
  #enter(goal, authors, past) {
    const change = changeBetween(this.#text, goal.text), before = this.selection;
    this.#write(change, goal.caret);
    const turned = turnFields(this.#earlier, goal.earlier);
    if (change.removed || change.inserted || turned.turn) {
      const step = {...change, before, after: this.selection, kind: 'reenter', time: Date.now(), ...turned};
      this.#record(step, [], {spans: goal.spans, authors});
    }
    if (past) this.#trail.addFrom(past, this.revision + 1);
    if (goal.accepted) this.#trail.addMissing(goal.accepted, this.revision + 1);
    if (change.removed || change.inserted) this.#history.keepAccepted(this.#trail.spans);
    this.#makeRevision('reenter', movedText(change));
  }

  /**
   * Undo or redo a step beside the text, if it comes next. Returns whether it did.
   * @param {'undo' | 'redo'} verb
   */
  #moveSide(verb) {
    if (this.composing) return false;
    this.sync();
    const step = this.#side[verb](this.#history.number);
    if (step) dispatch(this, 'side', {verb, step});
    return step !== null;
  }

  /**
   * Restore the selection that a box without the focus had: a box whose text a script has changed may forget its caret when a
   * dialog that closes gives it the focus back. A click places the caret after this.
   */
  #restoreSelection() {
    if (!this.box.selectionStart && !this.box.selectionEnd) this.box.setSelectionRange(...this.#selection);
  }

  /**
   * Undo or redo a step of the text. Returns whether there was one.
   * @param {'undo' | 'redo'} verb
   */
  #travel(verb) {
    if (this.composing) return false;
    this.sync();
    const undoes = verb === 'undo', step = this.#history[verb]();
    if (!step) return false;
    const change = undoes ? inverseChange(step) : step;
    if (!changeFits(this.#text, change)) {
      this.#dropUnfitting(undoes);
      return false;
    }
    const state = (undoes ? stateBefore : stateAfter)(this.#state, step);
    this.#trail.applyChange(change);
    if (!undoes) this.#trail.restoreStep(step, this.revision + 1);
    else if (step.kind === 'reenter') this.#trail.addFrom(this.#history.state(), this.revision + 1);
    this.#write(change, undoes ? step.before : step.after);
    this.#text = this.text;
    [this.#spans, this.#earlier] = [state.spans, state.earlier];
    this.#makeRevision(verb, {...movedText(change), step: step.kind});
    return true;
  }

  /** @param {boolean} undoes */
  #dropUnfitting(undoes) {
    this.#history[undoes ? 'redo' : 'undo']();
    this.#history[undoes ? 'forgetBefore' : 'forgetAfter']();
  }

  /**
   * The browser has undone by itself, from its menu: restore the text, and undo with our history.
   * @param {'undo' | 'redo'} verb
   */
  #replaceNativeUndo(verb) {
    if (this.#writing || this.composing) return;
    this.#writing = true;
    replaceInTextBox(this.box, changeBetween(this.text, this.#text));
    this.#writing = false;
    this.box.setSelectionRange(...this.#selection);
    this[verb]();
  }

  /**
   * @param {Change} change
   * @param {Span} selection after it
   */
  #write(change, selection) {
    const expected = applyChange(this.#text, change);
    this.#writing = true;
    replaceInTextBox(this.box, change);
    if (this.text !== expected) this.box.value = expected;
    this.box.setSelectionRange(...selection);
    this.#selection = selection;
    this.#writing = false;
  }

  /** @param {string} kind @param {{text?: string, isInserted?: boolean, step?: string}} [moved] of an undo, a redo or a return to a moment */
  #makeRevision(kind, moved = {}) {
    this.revision += 1;
    this.#caretPosition = this.caret;
    this.#selection = this.selection;
    dispatch(this, 'change', {revision: this.revision, kind, ...moved});
  }
}

/**
 * The text that a change has inserted, or else the text that it has removed.
 * @param {Change} change
 */
const movedText = ({inserted, removed}) => ({text: inserted || removed, isInserted: inserted !== ''});
