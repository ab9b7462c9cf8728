// The texts that a document has had: found in its history, to be drawn and to be gone back to.
/** @import {AbandonedText, HistoryStep, PastText, Span, TextState} from './types.d.ts' */
import {applyChange, removesWords} from './difference.js';
import {spansAfterChange, spansWithin} from './chosen_spans.js';
import {stateAfter, stateBefore} from './history.js';

const MOST_STEPS = 300;   // before the present text, and after it

/** @typedef {{steps: HistoryStep[], position: number, left: AbandonedText[]}} PastSource a history */
/** @typedef {{state: TextState, caret: number, at?: number, index?: number, step?: HistoryStep}} PastState */
/** @typedef {{kind: string, at?: number, index?: number}} PastMoment of the history */
/**
 * @typedef {{moment: PastMoment} | {text: string, spans: Span[], of: PastMoment | null}} Destination how a text is reached: the
 *   moment that had it, or a new step that writes it with these chosen spans; `of` is the moment that it is the beginning of,
 *   null for the present text
 */

/**
 * The states of the history: before the present one from the newest to the oldest, then the undone ones, then the abandoned.
 * @param {PastSource} history
 * @param {TextState} state the present one
 * @returns {Generator<PastState>}
 */
function* statesOf({steps, position, left}, state) {
  const known = new Map([[position, state]]);
  let then = state;
  for (let at = position - 1; at >= Math.max(0, position - MOST_STEPS); at -= 1) {
    then = stateBefore(then, steps[at]);
    known.set(at, then);
    yield {state: then, at, caret: steps[at].before[0], step: steps[at]};
  }
  then = state;
  for (let at = position; at < Math.min(steps.length, position + MOST_STEPS); at += 1) {
    then = stateAfter(then, steps[at]);
    known.set(at + 1, then);
    yield {state: then, at: at + 1, caret: steps[at].after[0]};
  }
  for (const [index, entry] of left.entries()) {
    const base = known.get(entry.at);
    if (base?.text.startsWith(entry.removed, entry.start)) yield {state: abandonedState(base, entry), index, caret: entry.caret[0]};
  }
}

/** @type {(base: TextState, entry: AbandonedText) => TextState} */
const abandonedState = (base, entry) => ({text: applyChange(base.text, entry), spans: spansAfterChange(base.spans, entry, entry.marks)});

/** @param {PastState} past */
const textBefore = ({state, caret}) => state.text.slice(0, caret);

/**
 * The texts before the caret that the document has had, for a drawing: those that a choice was added to or led to, those
 * that more than a word was removed from, and those that were undone or abandoned.
 * @param {PastSource} history
 * @param {TextState} state the present one
 * @returns {PastText[]}
 */
export function pastTexts(history, state) {
  /** @type {PastText[]} */
  const found = [];
  /** @type {string | null} */
  let source = null;   // of a text that was gone back to: the texts between it and its source were left
  for (const past of statesOf(history, state)) {
    const {step} = past, text = textBefore(past), stepTaken = source === null;
    const there = step?.kind === 'reenter' ? applyChange(past.state.text, step).slice(0, step.after[0]) : null;
    if (text === source) source = null;
    if (stepTaken) source = there;
    const taken = step !== undefined && source === null;
    if (!step || removesWords(step) || there !== null) found.push({text, taken});
    if (step?.kind === 'accept') found.push({text, taken}, {...acceptedText(text, step), taken: stepTaken});
    if (there !== null) found.push({text: there, taken: stepTaken});
  }
  return found;
}

/** @type {(base: string, step: HistoryStep) => PastText} */
function acceptedText(base, {start, inserted, after: [end], logprobs, healed}) {
  const p = logprobs?.length && !healed ? Math.exp(logprobs.reduce((all, one) => all + one, 0)) : null;
  return {text: base + inserted.slice(0, end - start), base, p};
}

/**
 * How to go to a text before the caret, so that nothing is lost; null if the document never had it.
 * @param {string} text
 * @param {PastSource} history
 * @param {TextState} state the present one
 * @returns {Destination | null}
 */
export function destinationOf(text, history, state) {
  /** @type {PastState | null} */
  let longer = state.text.startsWith(text) ? {state, caret: text.length} : null;
  for (const past of statesOf(history, state)) {
    const before = textBefore(past);
    if (before === text) return {moment: momentOf(past)};
    if (!longer && before.startsWith(text)) longer = past;
  }
  if (!longer) return null;
  return {text, spans: spansWithin(longer.state.spans, 0, text.length), of: longer.state === state ? null : momentOf(longer)};
}

/** @type {(past: PastState) => PastMoment} */
const momentOf = ({at, index}) => (index === undefined ? {kind: 'accepted', at} : {kind: 'left', index});
