// What belongs to one step of the history: typing goes together until a pause, and over long runs by words.
const PAUSE = 1000;   // milliseconds
const RUN = 40;       // characters, after which the next word begins a step of its own
const PHRASE = 20;    // more than that at once was not typed by hand
const alone = ([start, end], [from, to]) => start === end && start === from && end === to;

const whole = (before, after) => before.length >= RUN && /\s$/u.test(before) && !/^\s/u.test(after);

function typesOn(last, step) {
  const follows = !step.removed && step.start === last.start + last.inserted.length;
  const newLine = last.inserted.endsWith('\n') && !step.inserted.startsWith('\n');
  return follows && !newLine && step.inserted.length <= PHRASE && !whole(last.inserted, step.inserted);
}

function deletesOn(last, step) {
  const beside = step.start + step.removed.length === last.start || step.start === last.start;
  return beside && step.removed.length <= PHRASE && !(last.removed.length >= RUN && /\s$/u.test(step.removed));
}

// Whether a step goes on with what the last one does.
export function canJoin(last, step) {
  if (!last || last.kind !== step.kind || Math.abs(step.time - last.time) >= PAUSE) return false;
  if (!alone(last.after, step.before)) return false;
  return step.kind === 'type' ? typesOn(last, step) : step.kind === 'delete' && deletesOn(last, step);
}

// Both as one step.
export function joinSteps(last, step) {
  const {after, time} = step;
  if (step.kind === 'type') return {...last, inserted: last.inserted + step.inserted, after, time};
  const forward = step.start === last.start;
  const removed = forward ? last.removed + step.removed : step.removed + last.removed;
  return {...last, start: step.start, removed, after, time};
}
