// The making of a text, step by step, from its history.
/** @import {AuthorRun, HistoryStep, Replay, ReplayPiece, TextState, HistoryState} from './types.d.ts' */
import {EditHistory, stateAfter} from './history.js';
import {authoredPieces, pieceSentence} from './authored_pieces.js';
import {joinRuns, runsAfterStep, runsWithin} from './authorship.js';

const WAIT = 700;            // milliseconds before a step whose time is not known
const SHORTEST = 150, LONGEST = 1500;
/** @type {Record<string, string>} */
const DONE = {
  type: 'typed', composition: 'typed', replace: 'corrected', delete: 'deleted', cut: 'cut', paste: 'pasted', accept: 'chosen',
  reenter: 'went back to an earlier text',
};

/**
 * @param {string} text
 * @param {AuthorRun[]} runs
 * @returns {ReplayPiece[]}
 */
const piecesOf = (text, runs) => authoredPieces(text, joinRuns(runs))
  .map(piece => ({text: piece.text, author: piece.author, note: pieceSentence({...piece, order: null})}));

/**
 * The milliseconds before a step: its distance from the step before, but not too short and not too long.
 * @param {HistoryStep | undefined} last
 * @param {HistoryStep} step
 */
function waitBefore(last, step) {
  const passed = last ? step.time - last.time : 0;
  return passed > 0 ? Math.round(Math.min(LONGEST, Math.max(SHORTEST, passed))) : WAIT;
}

/**
 * Whether a document has steps to replay. One that came without its history has none.
 * @param {{history: HistoryState}} document
 */
export const isPlayable = ({history: {position}}) => position > 0;

/**
 * The replay of a document: every step up to the present text. Steps that were undone are no part of it.
 * @param {TextState & {history: HistoryState}} document
 * @returns {Replay}
 */
export function replayOf({text, spans, history: stored}) {
  const history = new EditHistory();
  history.load(stored);
  const {authors, ...first} = history.first({text, spans}), steps = history.steps.slice(0, history.position);
  /** @type {TextState} */
  let then = first;
  let runs = authors;
  const played = steps.map((step, index) => {
    const before = then;
    then = stateAfter(then, step);
    runs = runsAfterStep(runs, step);
    const whole = Boolean(step.authors), start = whole ? 0 : step.start, inserted = whole ? then.text : step.inserted;
    const pieces = piecesOf(inserted, runsWithin(runs, start, start + inserted.length));
    const removed = whole ? before.text.length : step.removed.length;
    return {start, removed, pieces, did: DONE[step.kind] ?? 'changed', wait: waitBefore(steps[index - 1], step)};
  });
  return {first: piecesOf(first.text, authors), steps: played};
}

/**
 * A history for a replay: the steps up to the present text, without token ids, undone steps and abandoned texts.
 * @param {HistoryState} history
 * @returns {HistoryState}
 */
export function historyToReplay({steps, position, authors}) {
  const kept = steps.slice(0, position).map(({ids: _ids, accepted: _accepted, logprobs, ...step}) => {
    if (!logprobs?.length) return step;
    return {...step, logprobs: [Number(logprobs.reduce((sum, one) => sum + one, 0).toFixed(4))]};
  });
  return {steps: kept, position: kept.length, ...(authors ? {authors} : {})};
}
