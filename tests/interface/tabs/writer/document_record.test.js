import assert from 'node:assert/strict';
import {test} from 'node:test';

import {documentFrom, settingsFrom} from '../../../../interface/tabs/writer/document_record.js';

const STEP = {
  start: 0, removed: '', inserted: 'Once', before: [0, 0], after: [4, 4], kind: 'type', time: 5, marks: {from: 0, before: [], after: [[0, 4]]},
};
const ACCEPTED = {...STEP, start: 4, inserted: ' upon', before: [4, 4], after: [9, 9], kind: 'accept', ids: [7, 12], healed: true, logprobs: [-1, -2.5]};
const LEFT = {at: 1, start: 4, removed: '', inserted: ' more', caret: [9, 9], time: 6, marks: [[0, 5]], context: 'Once'};
const BAN = {at: 2, step: {id: 7, text: ' upon', banned: true}};
const EDIT = {at: 1, step: {edit: {row: [7, 12], before: [], text: ' under'}, text: 'Once', pinned: null}};
const WHOLE = {
  side: {done: [EDIT, BAN], undone: []},
  name: 'Mine', text: 'Once upon', caret: 4, history: {steps: [STEP, ACCEPTED], position: 2}, left: [LEFT], spans: [[4, 9]],
  accepted: [{start: 4, end: 9, ids: [7, 12], healed: true}],
  settings: {k: 5, odds: 'words', banned: [{id: 1, text: 'a'}]}, model: 'a/model', instruction: 'Write.', instructed: false,
};

const documentOf = changes => documentFrom({...WHOLE, ...changes});
const stepsOf = (...steps) => documentOf({history: {steps, position: 0}}).history.steps;
const leftOf = entry => documentOf({left: [entry]}).left;

// What may stand in a file in place of anything.
const STRANGE = [undefined, null, true, -1, 0.5, 1e300, Infinity, 'x', '', [], [1], {}, {length: 2}];
const others = (...allowed) => STRANGE.filter(value => !allowed.some(one => JSON.stringify(one) === JSON.stringify(value) && typeof one === typeof value));

test('a whole document is taken as it is', () => assert.deepEqual(documentFrom(WHOLE), WHOLE));

test('a document that was saved as JSON is the same when it is read', () => {
  assert.deepEqual(documentFrom(JSON.parse(JSON.stringify(WHOLE))), WHOLE);
});

test('a document of a text alone is one with nothing else', () => {
  assert.deepEqual(documentFrom({text: 'abc'}), {
    name: '', text: 'abc', caret: 3, history: {steps: [], position: 0}, left: [], side: {done: [], undone: []}, spans: [], settings: null,
    model: null, instruction: '', instructed: false,
  });
});

test('steps beside the text are bans and changes of rows; anything else is left out', () => {
  const sideOf = (...done) => documentOf({side: {done}}).side.done;
  for (const value of STRANGE) {
    assert.deepEqual(documentOf({side: value}).side, {done: [], undone: []});
    assert.deepEqual(sideOf(value, {at: 1, step: value}, {...EDIT, step: {...EDIT.step, edit: value}}), []);
  }
  for (const value of others()) if (!Number.isSafeInteger(value) || value < 0) assert.deepEqual(sideOf({...BAN, at: value}), []);
  for (const value of others(true)) assert.deepEqual(sideOf({at: 1, step: {...BAN.step, banned: value}}), []);
  for (const field of ['row', 'before']) {
    for (const value of others([], [1])) assert.deepEqual(sideOf({at: 1, step: {...EDIT.step, edit: {...EDIT.step.edit, [field]: value}}}), []);
  }
  assert.deepEqual(sideOf(EDIT, {at: 1, step: {}}, BAN), [EDIT, BAN]);
  const withEarlier = earlier => ({...EDIT, step: {...EDIT.step, edit: {...EDIT.step.edit, before: [4, 5], earlier}}});
  assert.deepEqual(sideOf(withEarlier([[0, 1], [1, 3]]))[0].step.edit.earlier, [[0, 1]]);
  assert.deepEqual(sideOf({...EDIT, step: {...EDIT.step, pinned: {ids: [1]}, more: 1}}), [EDIT], 'the pinned row is not kept');
  const many = Array.from({length: 101}, (_, at) => ({...BAN, at}));
  assert.deepEqual(sideOf(...many), many.slice(1));
});

test('names, models and contexts are texts of at most two hundred characters', () => {
  for (const value of others('x', '')) assert.deepEqual([documentOf({name: value}).name, documentOf({model: value}).model], ['', null]);
  const {name, model} = documentOf({name: 'a'.repeat(201), model: 'b'.repeat(201)});
  assert.deepEqual([name.length, model.length], [200, 200]);
  assert.equal(documentOf({model: ''}).model, null);
  assert.equal(leftOf({...LEFT, context: 'c'.repeat(201)})[0].context.length, 200);
  assert.equal(leftOf({...LEFT, context: 7})[0].context, '');
});

test('the caret is within the text, and at its end if it is invalid', () => {
  for (const value of [undefined, null, true, -1, 0.5, 1e300, 'x', [1]]) assert.equal(documentOf({caret: value}).caret, 9, String(value));
  assert.deepEqual([0, 9, 10].map(caret => documentOf({caret}).caret), [0, 9, 9]);
});

test('an instruction is in force if the document says so, or says nothing of it', () => {
  for (const value of others('x', '')) assert.equal(documentOf({instruction: value}).instruction, '');
  assert.equal(documentOf({instructed: true}).instructed, true);
  for (const value of others(undefined, true)) assert.equal(documentOf({instructed: value}).instructed, false, JSON.stringify(value));
  assert.equal(documentOf({instructed: undefined}).instructed, true);
  assert.equal(documentOf({instructed: undefined, instruction: ''}).instructed, false);
  assert.equal(documentOf({instructed: undefined, instruction: 7}).instructed, false);
});

test('spans are in order, within the text, and do not overlap', () => {
  const spans = value => documentOf({spans: value}).spans;
  assert.deepEqual(spans([[0, 2], [2, 4], [5, 9]]), [[0, 2], [2, 4], [5, 9]]);
  assert.deepEqual(spans([[0, 3], [2, 4], [3, 5]]), [[0, 3], [3, 5]]);
  assert.deepEqual(spans([[2, 2], [3, 2], [4, 10], [4, 9]]), [[4, 9]]);
  assert.deepEqual(spans([[0, 1, 2], [0], '01', null, [0.5, 1], [-1, 1], ['0', 1], {0: 0, 1: 1, length: 2}, [1, 2]]), [[1, 2]]);
  for (const value of others([[0, 1]])) assert.deepEqual(spans(value), []);
});

test('accepted pieces are in order, within the text, and have ids', () => {
  const piece = (start, end, more = {}) => ({start, end, ids: [1], healed: false, ...more});
  const accepted = value => documentOf({accepted: value}).accepted;
  assert.deepEqual(accepted([piece(0, 2), piece(2, 4), piece(5, 9)]), [piece(0, 2), piece(2, 4), piece(5, 9)]);
  assert.deepEqual(accepted([piece(0, 3), piece(2, 4), piece(3, 5)]), [piece(0, 3), piece(3, 5)]);
  assert.deepEqual(accepted([piece(2, 2), piece(3, 2), piece(4, 10), piece(4, 9)]), [piece(4, 9)]);
  for (const ids of [[], [0.5], [-1], '1', null, undefined, [1, 'x'], Array(1001).fill(1)]) assert.deepEqual(accepted([piece(0, 1, {ids})]), []);
  assert.equal(accepted([piece(0, 1, {ids: Array(1000).fill(1)})]).length, 1);
  assert.deepEqual(accepted([piece(0, 1, {healed: 'yes', more: 1})]), [piece(0, 1)]);
  assert.deepEqual(accepted([null, 7, [0, 1], piece(-1, 1), piece(0.5, 1), piece(0, '1')]), []);
  for (const value of others([], [1])) assert.equal(accepted(value), undefined, JSON.stringify(value));
});

test('spans are copied', () => {
  const spans = [[0, 2]], found = documentOf({spans}).spans;
  assert.notEqual(found[0], spans[0]);
});

test('a history with one wrong step is dropped as a whole', () => {
  const empty = {steps: [], position: 0};
  assert.deepEqual(documentOf({history: {steps: [STEP, {}], position: 1}}).history, empty);
  assert.deepEqual(documentOf({history: {steps: [STEP], position: 2}}).history, empty);
  assert.deepEqual(documentOf({history: {steps: [STEP], position: 1}}).history, {steps: [STEP], position: 1});
  for (const position of [-1, 0.5, '0', null, undefined]) assert.deepEqual(documentOf({history: {steps: [STEP], position}}).history, empty, String(position));
  for (const history of STRANGE) assert.deepEqual(documentOf({history}).history, empty);
  assert.deepEqual(documentOf({history: {steps: 'x', position: 0}}).history, empty);
  assert.deepEqual(documentOf({history: Object.assign([], {steps: [STEP], position: 1})}).history, empty);
});

test('every field of a step is checked', () => {
  const wrong = {
    start: [-1, 0.5, '0', null], removed: [1, null], inserted: [1, null], time: ['1', null, NaN, Infinity], kind: ['send', 'x', 1, null],
    before: [[1, 0], [0], [0, 1, 2], [0.5, 1], [-1, 0], 'ab', null], after: [[1, 0], null],
    marks: [null, [], 'x', {from: -1, before: [], after: []}, {from: 0, before: null, after: []}, {from: 0, before: [], after: [[2, 1]]}, {from: 0, before: [[0]], after: []}],
  };
  for (const [field, values] of Object.entries(wrong))
    for (const value of values) assert.deepEqual(stepsOf({...STEP, [field]: value}), [], `${field} ${JSON.stringify(value)}`);
  for (const value of others()) assert.deepEqual(stepsOf(value), []);
});

test('the kinds of steps are those of a document', () => {
  for (const kind of ['type', 'delete', 'paste', 'cut', 'composition', 'replace', 'reenter']) assert.deepEqual(stepsOf({...STEP, kind}), [{...STEP, kind}]);
});

test('unknown fields of a step are left out', () => {
  assert.deepEqual(stepsOf({...STEP, extra: 1, ids: [1], marks: {...STEP.marks, extra: 1}}), [STEP]);
});

test('an accepted step has token ids only if all are ids', () => {
  for (const ids of [[], ['1'], [1, '2'], [-1], [0.5], null, 'x', {length: 1, 0: 1}]) assert.equal(stepsOf({...ACCEPTED, ids})[0].ids, null);
  assert.deepEqual(stepsOf({...ACCEPTED, ids: [0]})[0].ids, [0]);
  assert.notEqual(stepsOf(ACCEPTED)[0].ids, ACCEPTED.ids);
});

test('a step that went back to an earlier text has its accepted pieces, if that is a list', () => {
  const piece = {start: 0, end: 4, ids: [1], healed: false}, back = {...STEP, kind: 'reenter'};
  assert.deepEqual(stepsOf({...back, accepted: [piece, 7]}), [{...back, accepted: [piece]}]);
  assert.deepEqual(stepsOf({...back, accepted: 'x'}), [back]);
  assert.deepEqual(stepsOf({...STEP, accepted: [piece]}), [STEP]);
});

test('an accepted step is healed only where that is said, and has log-probabilities where they are numbers', () => {
  for (const healed of [1, 'true', null, undefined, false]) assert.equal(stepsOf({...ACCEPTED, healed})[0].healed, false);
  for (const logprobs of [['1'], [NaN], [null], null, 'x', {}]) assert.equal(stepsOf({...ACCEPTED, logprobs})[0].logprobs, null);
  assert.deepEqual(stepsOf({...ACCEPTED, logprobs: []})[0].logprobs, []);
});

test('every field of an abandoned text is checked', () => {
  const wrong = {at: [-1, 3, 0.5, null], start: [-1, null], removed: [1], inserted: [null], caret: [[2, 1], null], time: ['x', null]};
  for (const [field, values] of Object.entries(wrong)) for (const value of values) assert.deepEqual(leftOf({...LEFT, [field]: value}), [], field);
  assert.deepEqual(leftOf({...LEFT, at: 2, extra: 1}), [{...LEFT, at: 2}]);
  assert.deepEqual(leftOf({...LEFT, marks: [[0, 6], [1, 5]]})[0].marks, [[1, 5]]);
  for (const left of others()) assert.deepEqual(documentOf({left}).left, []);
});

test('abandoned texts are also found within the history, where older versions kept them', () => {
  const history = {...WHOLE.history, left: [LEFT]};
  assert.deepEqual(documentFrom({...WHOLE, left: undefined, history}).left, [LEFT]);
  assert.deepEqual(documentFrom({...WHOLE, left: [], history}).left, []);
  assert.deepEqual(documentFrom({...WHOLE, left: undefined, history: undefined}).left, []);
});

test('settings of a version without odds of words have odds of tokens, and a choice stays', () => {
  assert.deepEqual(settingsFrom({k: 5}), {k: 5, odds: 'tokens'});
  for (const odds of ['words', 'tokens']) assert.deepEqual(settingsFrom({k: 5, odds}), {k: 5, odds});
});

test('settings are an object of at most twenty thousand characters, and a copy of it', () => {
  for (const value of others({}, {length: 2})) assert.equal(settingsFrom(value), null);
  const settings = {k: 5, odds: 'words', list: [1]}, found = settingsFrom(settings);
  assert.deepEqual(found, settings);
  assert.notEqual(found.list, settings.list);
  assert.ok(settingsFrom({a: 'x'.repeat(20_000 - 8)}));
  assert.equal(settingsFrom({a: 'x'.repeat(20_000 - 7)}), null);
});

const RUN = {length: 9, author: 'chosen', step: 2, model: 'a/model', logprob: -1.5};

test('the authors of a history, of a step and of an abandoned text are kept', () => {
  const authors = [{length: 2, author: 'earlier'}, RUN], step = {...ACCEPTED, number: 3, model: 'a/model', authors};
  const found = documentOf({history: {steps: [STEP, step], position: 2, authors}, left: [{...LEFT, authors}]});
  assert.deepEqual(found.history, {steps: [STEP, step], position: 2, authors});
  assert.deepEqual(found.left, [{...LEFT, authors}]);
  assert.notEqual(found.history.authors[1], RUN);
  assert.deepEqual(stepsOf({...STEP, number: 0}), [{...STEP, number: 0}]);
});

test('authors of which one is wrong are dropped, and the history stays', () => {
  const wrong = [
    null, 7, [], {...RUN, length: 0}, {...RUN, length: -1}, {...RUN, length: 1.5}, {...RUN, author: 'x'}, {length: 3}, {author: 'typed'},
  ];
  for (const run of wrong) assert.deepEqual(stepsOf({...STEP, authors: [RUN, run]}), [STEP], JSON.stringify(run));
  for (const authors of others([])) assert.deepEqual(stepsOf({...STEP, authors}), [STEP], JSON.stringify(authors));
  assert.deepEqual(stepsOf({...STEP, authors: []}), [{...STEP, authors: []}]);
  for (const number of [-1, 0.5, '1', null, true]) assert.deepEqual(stepsOf({...STEP, number}), [STEP]);
});

test('details of an author that are wrong are not known', () => {
  const runOf = run => stepsOf({...STEP, authors: [run]})[0].authors[0];
  assert.deepEqual(runOf({...RUN, extra: 1}), RUN);
  for (const step of [-1, 0.5, '1', null]) assert.deepEqual(runOf({...RUN, step}), {length: 9, author: 'chosen', model: 'a/model', logprob: -1.5});
  assert.deepEqual(runOf({...RUN, model: 7, logprob: 'x'}), {...RUN, model: null, logprob: null});
  assert.deepEqual([runOf({...RUN, model: 'm'.repeat(201)}).model.length, runOf({...RUN, model: ''}).model], [200, null]);
  assert.deepEqual(runOf({length: 1, author: 'chosen'}), {length: 1, author: 'chosen'});
  assert.deepEqual(runOf({...RUN, author: 'typed'}), {length: 9, author: 'typed', step: 2});
});

test('an accepted step and a chosen run have the beginning of their instruction, where they have one', () => {
  assert.equal(stepsOf({...ACCEPTED, instruction: 'Be brief.'})[0].instruction, 'Be brief.');
  for (const wrong of [7, '', null, undefined]) assert.equal('instruction' in stepsOf({...ACCEPTED, instruction: wrong})[0], false);
  assert.equal(stepsOf({...ACCEPTED, instruction: 'm'.repeat(201)})[0].instruction.length, 200);
  const runOf = run => stepsOf({...STEP, authors: [run]})[0].authors[0];
  assert.equal(runOf({...RUN, instruction: 'Be brief.'}).instruction, 'Be brief.');
  assert.equal('instruction' in runOf({...RUN, instruction: 7}), false);
});

test('an accepted step has the name of its model, where it has one', () => {
  assert.deepEqual(stepsOf({...ACCEPTED, model: 7})[0].model, null);
  assert.equal('model' in stepsOf(ACCEPTED)[0], false);
  assert.equal(stepsOf({...ACCEPTED, model: 'm'.repeat(201)})[0].model.length, 200);
});
