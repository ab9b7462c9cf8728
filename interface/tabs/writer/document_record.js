// What a document is when it is kept, sent or read from a file: every field is looked at before it is believed.
const KINDS = ['type', 'delete', 'paste', 'cut', 'composition', 'replace', 'accept', 'reenter'];
const MOST_SETTINGS = 20_000;   // characters of JSON
const MOST_LABEL = 200;

const whole = value => Number.isSafeInteger(value) && value >= 0;
const string = value => (typeof value === 'string' ? value : '');
export const isPlainObject = value => typeof value === 'object' && value !== null && !Array.isArray(value);
const list = value => (Array.isArray(value) ? value : []);
const label = value => string(value).slice(0, MOST_LABEL);

const pair = (value, most = Infinity) =>
  Array.isArray(value) && value.length === 2 && value.every(whole) && value[0] <= value[1] && value[1] <= most;

// Spans in order, within the text, none in another.
function spansFrom(value, most) {
  let last = 0;
  return list(value).filter(span => {
    const fine = pair(span, most) && span[0] < span[1] && span[0] >= last;
    if (fine) last = span[1];
    return fine;
  }).map(([from, to]) => [from, to]);
}

const changed = value => isPlainObject(value) && whole(value.start) && typeof value.removed === 'string'
  && typeof value.inserted === 'string' && Number.isFinite(value.time);

const marked = value => isPlainObject(value) && whole(value.from)
  && [value.before, value.after].every(spans => Array.isArray(spans) && spans.every(span => pair(span)));

const idsFrom = value => (Array.isArray(value) && value.length && value.every(whole) ? [...value] : null);

function stepFrom(value) {
  if (!changed(value) || !KINDS.includes(value.kind) || !marked(value.marks) || !pair(value.before) || !pair(value.after)) return null;
  const {start, removed, inserted, before, after, kind, time, marks} = value;
  const step = {start, removed, inserted, before, after, kind, time, marks: {from: marks.from, before: marks.before, after: marks.after}};
  if (kind !== 'accept') return step;
  const logprobs = Array.isArray(value.logprobs) && value.logprobs.every(Number.isFinite) ? value.logprobs : null;
  return {...step, ids: idsFrom(value.ids), healed: value.healed === true, logprobs};
}

function leftFrom(value, steps) {
  if (!changed(value) || !whole(value.at) || value.at > steps || !pair(value.caret)) return null;
  const {at, start, removed, inserted, caret, time} = value;
  return {at, start, removed, inserted, caret, time, marks: spansFrom(value.marks, inserted.length), context: label(value.context)};
}

// A history is believed as a whole or not at all: its steps build on each other.
function historyFrom(value) {
  const steps = list(value?.steps).map(stepFrom);
  if (!isPlainObject(value) || steps.includes(null) || !whole(value.position) || value.position > steps.length) return {steps: [], position: 0};
  return {steps, position: value.position};
}

export function settingsFrom(value) {
  if (!isPlainObject(value)) return null;
  const text = JSON.stringify(value);
  return text.length <= MOST_SETTINGS ? JSON.parse(text) : null;
}

// Fields that are unknown are left out; fields of another type become empty. The text alone must be a text.
export function documentFrom(value) {
  const text = value.text, history = historyFrom(value.history);
  return {
    name: label(value.name),
    text,
    caret: whole(value.caret) ? Math.min(value.caret, text.length) : text.length,
    history,
    left: list(value.left ?? value.history?.left).map(entry => leftFrom(entry, history.steps.length)).filter(Boolean),
    spans: spansFrom(value.spans, text.length),
    settings: settingsFrom(value.settings),
    model: label(value.model) || null,
    instruction: string(value.instruction),
    instructed: value.instructed === true || (value.instructed === undefined && Boolean(string(value.instruction))),
  };
}
