import assert from 'node:assert/strict';
import {test} from 'node:test';

import {historyToReplay, isPlayable, replayOf} from '../../../../interface/web/core/replay.js';
import {EditHistory} from '../../../../interface/web/core/history.js';

// A document that is written step by step, and its texts after each step.
class Writing {
  history = new EditHistory();
  state = {text: '', spans: []};
  texts = [''];
  time = 1000;

  change(start, removed, inserted, {kind = 'paste', wait = 60_000, marks = [], ...more} = {}) {
    this.time += wait;
    const after = [start + inserted.length, start + inserted.length];
    const step = {start, removed, inserted, before: [start, start], after, kind, time: this.time, ...more};
    const text = this.state.text.slice(0, start) + inserted + this.state.text.slice(start + removed.length);
    this.state = {text, spans: this.history.add(step, this.state, {marks})};
    this.texts.push(text);
    return this;
  }

  accept(inserted, more = {}) { return this.change(this.state.text.length, '', inserted, {kind: 'accept', marks: [[0, inserted.length]], ...more}); }

  get document() { return {...this.state, history: this.history.state()}; }
}

const story = () => new Writing().change(0, '', 'Once', {kind: 'type'}).accept(' upon', {model: 'm', logprobs: [Math.log(0.5)], ids: [7]}).change(0, 'Once', 'Twice 🙂');

// The texts that a player shows after each step.
function textsOf(replay) {
  return Array.from({length: replay.steps.length + 1}, (_, index) => shownText(replay, index));
}

function shownText({first, steps}, count) {
  return steps.slice(0, count).reduce((text, {start, removed, pieces}) =>
    text.slice(0, start) + pieces.map(piece => piece.text).join('') + text.slice(start + removed), first.map(piece => piece.text).join(''));
}

test('only a document with steps up to its text can be played', () => {
  const written = story().document, {steps} = written.history;
  assert.equal(isPlayable(written), true);
  assert.equal(isPlayable({history: {steps: [], position: 0}}), false, 'it came without its history');
  assert.equal(isPlayable({history: {steps, position: 0}}), false, 'every step is undone');
  assert.equal(replayOf({...written, history: {steps: [], position: 0}}).steps.length, 0);
});

test('a replay shows the text after every step', () => {
  const {document, texts} = story();
  assert.deepEqual(textsOf(replayOf(document)), texts);
});

test('the steps of a replay say what was done, by whom', () => {
  const {steps} = replayOf(story().document);
  assert.deepEqual(steps.map(({did}) => did), ['typed', 'chosen', 'pasted']);
  assert.deepEqual(steps.map(({pieces}) => pieces.map(({author, note}) => [author, note])), [
    [['typed', 'typed']], [['chosen', 'chosen · 50 % chance of the whole piece · m']], [['pasted', 'pasted']],
  ]);
});

test('steps that were undone are not played', () => {
  const writing = story();
  const step = writing.history.undo();
  const {text, spans} = writing.state;
  const state = {text: text.replace(step.inserted, step.removed), spans: spans.map(([from, to]) => [from - 4, to - 4])};
  assert.deepEqual(textsOf(replayOf({...state, history: writing.history.state()})), ['', 'Once', 'Once upon']);
});

test('a document with an earlier text begins with it', () => {
  const writing = new Writing();
  writing.state = {text: 'Before', spans: [[0, 3]]};
  const {first, steps} = replayOf(writing.accept(' now').document);
  assert.deepEqual(first.map(({text, author}) => [text, author]), [['Bef', 'chosen'], ['ore', 'earlier']]);
  assert.equal(steps.length, 1);
});

test('a step that restored an earlier text shows all of that text', () => {
  const writing = story(), [moment] = writing.history.moments(writing.state);
  const goal = writing.history.goal(moment, writing.state), authors = writing.history.goalAuthors(moment, writing.state);
  const step = {start: 0, removed: 'Twice 🙂', inserted: 'Once', before: [0, 0], after: goal.caret, kind: 'reenter', time: writing.time + 9000};
  const spans = writing.history.add(step, writing.state, {goal: goal.spans, authors});
  const {steps} = replayOf({text: goal.text, spans, history: writing.history.state()}), last = steps.at(-1);
  assert.deepEqual([last.start, last.removed, last.did], [0, 'Twice 🙂 upon'.length, 'went back to an earlier text']);
  assert.deepEqual(last.pieces.map(({text, author}) => [text, author]), [['Once', 'typed'], [' upon', 'chosen']]);
});

test('a step waits as long as it took, within bounds, and the same where that is not known', () => {
  const waits = (...times) => {
    const writing = new Writing();
    for (const wait of times) writing.accept('x', {wait});
    return replayOf(writing.document).steps.map(({wait}) => wait);
  };
  assert.deepEqual(waits(5, 400, 10, 60_000, 0, -50), [700, 400, 150, 1500, 700, 700]);
});

test('the history of a replay ends with the present text, and holds no token ids', () => {
  const writing = story().accept(' a', {ids: [1], logprobs: [-1, -0.123456]});
  writing.history.undo();
  const {steps, position, authors} = historyToReplay(writing.history.state());
  assert.deepEqual([steps.length, position, authors], [3, 3, []]);
  assert.deepEqual(steps.map(step => 'ids' in step), [false, false, false]);
  assert.deepEqual(steps[1].logprobs, [-0.6931]);
  assert.deepEqual(historyToReplay({steps: [], position: 0}), {steps: [], position: 0});
  assert.deepEqual(writing.history.steps[1].ids, [7], 'the document keeps them');
});

test('a file of many thousand steps opens quickly', () => {
  const steps = Array.from({length: 20_000}, (_, start) => ({
    start, removed: '', inserted: 'a', before: [start, start], after: [start + 1, start + 1], kind: start % 2 ? 'paste' : 'type', time: start,
    marks: {from: 0, before: [], after: []},
  }));
  const began = performance.now(), replay = replayOf({text: 'a'.repeat(20_000), spans: [], history: {steps, position: 20_000}});
  assert.ok(performance.now() - began < 3000, 'it took minutes when all steps were followed');
  assert.equal(shownText(replay, replay.steps.length), 'a'.repeat(20_000));
  assert.equal(replay.steps.length, 2000);
});
