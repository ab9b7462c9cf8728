// The fields of a document that is stored, sent or read from a file. Each field is checked before it is used.
/**
 * @import {
 *   AbandonedText, AcceptedSpan, Author, AuthorRun, DocumentFields, HistoryState, HistoryStep, SideStep, Span, StoredSettings,
 * } from '../../web/core/types.d.ts'
 */
import {isPlainObject} from '../../web/core/json_values.js';

const KINDS = ['type', 'delete', 'paste', 'cut', 'composition', 'replace', 'accept', 'reenter'];   // of steps
const AUTHORS = ['typed', 'pasted', 'chosen', 'example', 'earlier'];
const MOST_SETTINGS = 20_000;   // characters of JSON
const MOST_LABEL = 200;         // characters
const MOST_IDS = 1000;          // of an accepted piece
const MOST_SIDE_STEPS = 100;    // done, and as many undone

/** @type {(value: unknown) => boolean} */
const isCount = value => Number.isSafeInteger(value) && /** @type {number} */ (value) >= 0;
/** @param {unknown} value */
const stringOf = value => (typeof value === 'string' ? value : '');
/** @param {unknown} value */
const labelOf = value => stringOf(value).slice(0, MOST_LABEL);
/** @type {(value: unknown) => any[]} */
const listOf = value => (Array.isArray(value) ? value : []);

/** @type {(value: any, most?: number) => boolean} */
const isSpan = (value, most = Infinity) =>
  Array.isArray(value) && value.length === 2 && value.every(isCount) && value[0] <= value[1] && value[1] <= most;

/**
 * The entries whose spans are not empty, within the text, and behind the span of the entry kept before.
 * @param {any[]} entries
 * @param {(entry: any) => any} spanOf
 * @param {number} most the length of the text
 */
function inOrder(entries, spanOf, most) {
  let last = 0;
  return entries.filter(entry => {
    const span = spanOf(entry), fine = isSpan(span, most) && span[0] < span[1] && span[0] >= last;
    if (fine) last = span[1];
    return fine;
  });
}

/**
 * The spans of a list that are in order and within the text.
 * @param {unknown} value
 * @param {number} most the length of the text
 * @returns {Span[]}
 */
const spansFrom = (value, most) => inOrder(listOf(value), span => span, most).map(([from, to]) => [from, to]);

/** @param {any} value */
const isChange = value => isPlainObject(value) && isCount(value.start) && typeof value.removed === 'string'
  && typeof value.inserted === 'string' && Number.isFinite(value.time);

/** @param {any} value */
const isSpansPatch = value => isPlainObject(value) && isCount(value.from)
  && [value.before, value.after].every(spans => Array.isArray(spans) && spans.every(span => isSpan(span)));

/** @type {(value: any) => boolean} */
const areIds = value => Array.isArray(value) && value.every(isCount);

/** @type {(value: unknown) => number[] | null} */
const idsFrom = value => (areIds(value) && /** @type {number[]} */ (value).length ? [.../** @type {number[]} */ (value)] : null);

/**
 * The accepted pieces of a list that have ids, are in order and within the text; undefined if the value is no list.
 * @param {unknown} value
 * @param {number} most the length of the text
 * @returns {AcceptedSpan[] | undefined}
 */
function acceptedFrom(value, most) {
  if (!Array.isArray(value)) return undefined;
  const pieces = value.filter(piece => isPlainObject(piece) && idsFrom(piece.ids) !== null && piece.ids.length <= MOST_IDS);
  return inOrder(pieces, ({start, end}) => [start, end], most)
    .map(({start, end, ids, healed}) => ({start, end, ids: [...ids], healed: healed === true}));
}

/** The beginning of the instruction of an accepted piece, as a field; no field if there is none. @param {unknown} value */
const instructionFrom = value => (labelOf(value) ? {instruction: labelOf(value)} : {});

/** @type {(value: any) => AuthorRun | null} */
function authorRunFrom(value) {
  if (!isPlainObject(value) || !isCount(value.length) || !value.length || !AUTHORS.includes(value.author)) return null;
  const {length, author, step, model, logprob, instruction} = value;
  const details = author === 'chosen' && (model !== undefined || logprob !== undefined);
  return {
    length, author: /** @type {Author} */ (author), ...(isCount(step) ? {step} : {}),
    ...(details ? {model: labelOf(model) || null, logprob: Number.isFinite(logprob) ? logprob : null, ...instructionFrom(instruction)} : {}),
  };
}

/**
 * The authors of a text, as a field; no field if any run is wrong, since each begins where the one before ends.
 * @param {unknown} value
 * @returns {{authors?: AuthorRun[]}}
 */
function authorsFrom(value) {
  const runs = Array.isArray(value) ? value.map(authorRunFrom) : [null];
  return runs.includes(null) ? {} : {authors: runs.filter(run => run !== null)};
}

/**
 * @param {any} value
 * @returns {HistoryStep | null}
 */
function stepFrom(value) {
  if (!isChange(value) || !KINDS.includes(value.kind) || !isSpansPatch(value.marks) || !isSpan(value.before) || !isSpan(value.after)) return null;
  const {start, removed, inserted, before, after, kind, time, marks} = value;
  const step = {
    start, removed, inserted, before, after, kind, time, marks: {from: marks.from, before: marks.before, after: marks.after},
    ...(isCount(value.number) ? {number: value.number} : {}), ...authorsFrom(value.authors),
  };
  const accepted = kind === 'reenter' ? acceptedFrom(value.accepted, Infinity) : undefined;
  if (kind !== 'accept') return accepted ? {...step, accepted} : step;
  const logprobs = Array.isArray(value.logprobs) && value.logprobs.every(Number.isFinite) ? value.logprobs : null;
  const model = value.model === undefined ? {} : {model: labelOf(value.model) || null};
  const written = spansFrom(value.written, inserted.length), parts = value.chosenLogprobs;
  const hasParts = written.length && Array.isArray(parts) && parts.every(Number.isFinite);
  return {
    ...step, ids: idsFrom(value.ids), healed: value.healed === true, logprobs, ...model, ...instructionFrom(value.instruction),
    ...(written.length ? {written} : {}), ...(hasParts ? {chosenLogprobs: [...parts]} : {}),
  };
}

/**
 * @param {any} value
 * @param {number} steps of the history
 * @returns {AbandonedText | null}
 */
function abandonedFrom(value, steps) {
  if (!isChange(value) || !isCount(value.at) || value.at > steps || !isSpan(value.caret)) return null;
  const {at, start, removed, inserted, caret, time} = value, accepted = acceptedFrom(value.accepted, Infinity);
  return {
    at, start, removed, inserted, caret, time, marks: spansFrom(value.marks, inserted.length), context: labelOf(value.context),
    ...authorsFrom(value.authors), ...(accepted?.length ? {accepted} : {}),
  };
}

/**
 * A ban, or a change of a row; null for anything else. The row that was pinned is not kept.
 * @param {any} value
 */
function sideStepFrom(value) {
  if (!isPlainObject(value) || typeof value.text !== 'string') return null;
  const {id, text, banned, edit} = value;
  if (isCount(id) && typeof banned === 'boolean') return {id, text: labelOf(text), banned};
  if (!isPlainObject(edit) || ![edit.row, edit.before].every(ids => areIds(ids) && ids.length <= MOST_IDS) || typeof edit.text !== 'string') return null;
  const earlier = spansFrom(edit.earlier, edit.before.length);
  return {edit: {row: [...edit.row], before: [...edit.before], text: labelOf(edit.text), ...(earlier.length ? {earlier} : {})}, text, pinned: null};
}

/** @param {unknown} list @returns {SideStep[]} the newest of them */
const sideStepsFrom = list => listOf(list).flatMap(one => {
  const step = isCount(one?.at) ? sideStepFrom(one.step) : null;
  return step ? [{at: one.at, step}] : [];
}).slice(-MOST_SIDE_STEPS);

/**
 * The history; an empty one if any step is wrong, since its steps build on each other.
 * @param {any} value
 * @returns {HistoryState}
 */
function historyFrom(value) {
  const steps = listOf(value?.steps).map(stepFrom);
  const whole = isPlainObject(value) && isCount(value.position) && value.position <= steps.length;
  if (!whole || steps.includes(null)) return {steps: [], position: 0};
  return {steps: steps.filter(step => step !== null), position: value.position, ...authorsFrom(value.authors)};
}

/**
 * Settings from a document, a file or a link; null if they are none. Those of versions without odds of words have odds of
 * tokens, so that they open as before.
 * @param {unknown} value
 * @returns {StoredSettings | null}
 */
export function settingsFrom(value) {
  if (!isPlainObject(value)) return null;
  const text = JSON.stringify(value);
  return text.length <= MOST_SETTINGS ? {odds: 'tokens', ...JSON.parse(text)} : null;
}

/**
 * The document of an untrusted object. Unknown fields are left out, fields of a wrong type become empty.
 * @param {{text: string, [field: string]: any}} value
 * @returns {DocumentFields & {name: string}}
 */
export function documentFrom(value) {
  const text = value.text, history = historyFrom(value.history), accepted = acceptedFrom(value.accepted, text.length);
  return {
    name: labelOf(value.name),
    text,
    caret: isCount(value.caret) ? Math.min(value.caret, text.length) : text.length,
    history,
    side: {done: sideStepsFrom(value.side?.done), undone: sideStepsFrom(value.side?.undone)},
    left: listOf(value.left ?? value.history?.left).map(entry => abandonedFrom(entry, history.steps.length)).filter(entry => entry !== null),
    spans: spansFrom(value.spans, text.length),
    ...(accepted ? {accepted} : {}),
    ...(Array.isArray(value.seen) ? {seen: value.seen} : {}),   // `SeenViews` checks each
    settings: settingsFrom(value.settings),
    model: labelOf(value.model) || null,
    instruction: stringOf(value.instruction),
    instructed: value.instructed === true || (value.instructed === undefined && Boolean(stringOf(value.instruction))),
  };
}
