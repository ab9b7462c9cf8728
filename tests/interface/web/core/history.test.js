import assert from 'node:assert/strict';
import {test} from 'node:test';

import {changeBetween} from '../../../../interface/web/core/difference.js';
import {EditHistory, stateBefore, stateAfter, turnFields} from '../../../../interface/web/core/history.js';
import {withDice} from '../../../support/scripts/dice.js';
import {Owners, randomMarks} from '../../../support/scripts/owners.js';

const EMPTY = {text: '', spans: [], earlier: undefined};

// A document and its history, as a text box drives it.
class Page {
  history = new EditHistory();
  state = EMPTY;
  time = 0;

  // Replace what stands from `start` on; steps are a minute apart, so that none goes on with another, unless `wait` is less.
  change(change, {kind = 'paste', marks, wait = 60_000, goal, authors, ...more} = {}) {
    this.time += wait;
    const {start, removed, inserted} = change, end = start + inserted.length;
    const caret = {before: [start + removed.length, start + removed.length], after: [end, end]};
    const step = {...change, ...caret, kind, time: this.time, ...more};
    const text = this.state.text.slice(0, start) + inserted + this.state.text.slice(start + removed.length);
    const spans = this.history.add(step, this.state, {marks, goal, authors});
    this.state = {text, spans, earlier: step.turn ? step.turn.after : this.state.earlier};
  }

  write(inserted, options) { this.change({start: this.state.text.length, removed: '', inserted}, options); }

  accept(inserted) { this.write(inserted, {kind: 'accept', marks: [[0, inserted.length]]}); }

  // Send what stands in the box as a message: another text, and something else before it.
  turn(kind, earlier, text = '') {
    this.change({start: 0, removed: this.state.text, inserted: text}, {kind, goal: [], ...turnFields(this.state.earlier, earlier)});
  }

  undo() {
    const step = this.history.undo();
    if (step) this.state = stateBefore(this.state, step);
    return Boolean(step);
  }

  redo() {
    const step = this.history.redo();
    if (step) this.state = stateAfter(this.state, step);
    return Boolean(step);
  }

  moments() { return this.history.moments(this.state); }

  goal(moment) { return this.history.goal(moment, this.state); }

  // Restore the text of a moment as a new step, as the text box does.
  enter(moment) {
    const goal = this.goal(moment), authors = this.history.goalAuthors(moment, this.state);
    this.change(changeBetween(this.state.text, goal.text), {kind: 'reenter', goal: goal.spans, authors});
  }

  // The texts that the moments of some kind lead to, the newest first.
  texts(kind) { return this.moments().filter(moment => moment.kind === kind).map(moment => this.goal(moment).text); }
}

// The slow way: every state of the document, as it was. Of a step that went on with the last one only the state after it.
class Snapshots {
  states = [EMPTY];
  inserts = [false];   // whether the step to each state inserted anything
  removed = [''];      // what it removed
  position = 0;
  left = new Set();    // the abandoned texts

  // Of the undone states the last one that something was inserted for is abandoned, and each that words were removed from.
  add(state, inserts, {joined, removed}) {
    const tip = this.inserts.lastIndexOf(true), here = this.states[this.position];
    for (let at = this.position + 1; at <= tip; at += 1) {
      const lost = at === tip || this.removed[at + 1].trim().split(/\s+/).length > 1;
      if (lost && changeBetween(here.text, this.states[at].text).inserted) this.left.add(this.states[at].text);
    }
    this.states.length = this.inserts.length = this.removed.length = this.position + (joined ? 0 : 1);
    this.states.push(state);
    this.inserts.push(inserts);
    this.removed.push(removed);
    this.position = this.states.length - 1;
  }
}

function randomly(dice, turns, look) {
  const page = new Page(), owners = new Owners(), slow = new Snapshots();
  const cells = new Map([[EMPTY, []]]);   // of each state, so that the owners are where the text is
  for (let turn = 0; turn < turns; turn += 1) {
    const deed = dice.number();
    if (deed < 0.3 && page.undo()) slow.position -= 1;
    else if (deed < 0.5 && page.redo()) slow.position += 1;
    else if (deed >= 0.3) act(dice, page, owners, slow, cells);
    look(page, slow);
  }
}

// Type a few characters, often right after the last ones, or put something chosen anywhere.
function act(dice, page, owners, slow, cells) {
  const before = page.history.position, {text} = page.state;
  const types = dice.chance(0.5), change = types ? {start: text.length, removed: '', inserted: dice.text(3) || 'x'} : dice.change(text, 5);
  const marks = types ? [] : randomMarks(dice, change.inserted.length);
  owners.cells = cells.get(slow.states[slow.position]);
  owners.change(change, marks);
  page.change(change, types ? {kind: 'type', wait: dice.among([0, 5000])} : {kind: 'accept', marks, ids: [1]});
  const state = {text: page.state.text, spans: owners.spans, earlier: undefined};
  cells.set(state, owners.cells);
  slow.add(state, Boolean(page.history.steps.at(-1).inserted), {joined: page.history.position === before, removed: change.removed});
}

test('undoing and redoing restores every state with its spans', () => withDice(150, dice => {
  randomly(dice, 25, (page, slow) => {
    assert.deepEqual(page.state, slow.states[slow.position]);
    assert.equal(page.history.position, slow.position);
    assert.equal(page.history.canUndo, slow.position > 0);
    assert.equal(page.history.canRedo, slow.position < slow.states.length - 1);
  });
}));

test('the state after every accepted piece can be restored, undone or not', () => withDice(100, dice => {
  randomly(dice, 20, (page, slow) => {
    const moments = page.moments().filter(({kind}) => kind !== 'left');
    const accepted = page.history.steps.flatMap(({kind}, index) => (kind === 'accept' ? [index + 1] : []));
    assert.deepEqual(moments.map(({at}) => at).sort((one, other) => one - other), accepted);
    for (const moment of moments) {
      const {caret, ...state} = page.goal(moment);
      assert.deepEqual(state, slow.states[moment.at]);
      assert.deepEqual(caret, page.history.steps[moment.at - 1].after);
      assert.equal(moment.kind, moment.at > slow.position ? 'undone' : 'accepted');
      const {start, inserted} = page.history.steps[moment.at - 1];
      const [chosenFrom] = state.spans.find(([from, to]) => to > start && from < start + inserted.length) ?? [start];
      assert.equal(moment.text, inserted.slice(Math.max(0, chosenFrom - start)), 'from its first chosen character on');
    }
  });
}));

test('every abandoned text can be restored from any position', () => withDice(150, dice => {
  randomly(dice, 25, (page, slow) => {
    assert.deepEqual(new Set(page.texts('left')), slow.left);
  });
}));

test('a new document has nothing to undo, to redo or to go back to', () => {
  const page = new Page();
  assert.ok(!page.history.canUndo && !page.history.canRedo);
  for (const verb of ['undo', 'undo', 'redo']) assert.ok(!page[verb]() && page.history.position === 0);
  assert.deepEqual([page.moments(), page.history.state()], [[], {steps: [], position: 0}]);
});

test('continued typing is undone as one step', () => {
  const page = new Page();
  for (const key of 'abc') page.write(key, {kind: 'type', wait: 10});
  assert.equal(page.history.steps.length, 1);
  page.undo();
  assert.equal(page.state.text, '');
});

test('typing after an undo, a redo or an opened document is a step of its own', () => {
  for (const meanwhile of [page => page.undo() && page.redo(), page => page.history.load(page.history.state())]) {
    const page = new Page();
    page.write('a', {kind: 'type', wait: 10});
    meanwhile(page);
    page.write('b', {kind: 'type', wait: 10});
    assert.equal(page.history.steps.length, 2);
  }
});

test('typing after an undo does not join the step before', () => {
  const page = new Page();
  page.write('a', {kind: 'type', wait: 10});
  page.accept(' word');
  page.undo();
  page.write('b', {kind: 'type', wait: 10});
  assert.deepEqual(page.history.steps.map(({inserted}) => inserted), ['a', 'b']);
});

test('a joined step has the spans of both', () => {
  const page = new Page();
  page.accept('chosen');
  page.change({start: 3, removed: '', inserted: 'x'}, {kind: 'type'});
  page.change({start: 4, removed: '', inserted: 'y'}, {kind: 'type', wait: 10});
  assert.deepEqual(page.state.spans, [[0, 3], [5, 8]]);
  page.undo();
  assert.deepEqual(page.state.spans, [[0, 6]]);
});

test('undone text that is written over is abandoned, with its position and time', () => {
  const page = new Page();
  page.write('Once upon');
  page.accept(' a time');
  const {time} = page;
  page.undo();
  page.accept(' the sea');
  assert.deepEqual(page.history.left, [{
    start: 9, removed: '', inserted: ' a time', marks: [[0, 7]], at: 1, caret: [16, 16], time, context: 'Once upon',
    authors: [{length: 7, author: 'chosen', step: 2, model: null, logprob: null}],
  }]);
  const [, moment] = page.moments();
  assert.deepEqual(moment, {kind: 'left', index: 0, time, before: 'Once upon', text: ' a time'});
  assert.deepEqual(page.goal(moment), {text: 'Once upon a time', spans: [[9, 16]], earlier: undefined, caret: [16, 16]});
});

test('several undone steps are abandoned as one, without removals at their end', () => {
  const page = new Page();
  for (const word of ['one', ' two', ' three']) page.accept(word);
  page.change({start: 7, removed: ' three', inserted: ''});
  page.change({start: 3, removed: ' two', inserted: ''});
  for (let turn = 0; turn < 4; turn += 1) page.undo();
  page.accept(' 2');
  assert.deepEqual(page.texts('left'), ['one two three']);
});

test('a long text that an undone step had replaced is abandoned too', () => {
  const page = new Page();
  page.accept('The lamp went out.');
  page.accept(' Nobody came for a long time, and the sea rose.');
  page.write(' Then morning came.');
  const longest = page.state.text;
  page.change({start: 18, removed: longest.slice(18), inserted: ''}, {kind: 'reenter'});
  page.write(' And that was all.');
  const detour = page.state.text;
  for (let turn = 0; turn < 3; turn += 1) page.undo();
  page.write(' Then night fell.');
  assert.deepEqual(new Set(page.texts('left')), new Set([longest, detour]));
});

test('a text that was left for an earlier one is listed, unless an accepted piece ends it', () => {
  const page = new Page();
  page.accept('Once');
  page.write(' upon a time');
  page.change({start: 4, removed: ' upon a time', inserted: ''}, {kind: 'reenter'});
  page.accept(' more');
  page.change({start: 4, removed: ' more', inserted: ''}, {kind: 'reenter'});
  assert.deepEqual(page.moments().map(({kind, text}) => [kind, text]), [['accepted', ' more'], ['reenter', ' upon a time'], ['accepted', 'Once']]);
  assert.deepEqual(page.texts('reenter'), ['Once upon a time']);
});

test('the list says which accepted pieces have left the text, and which abandoned text is in it again', () => {
  const page = new Page(), says = () => Object.fromEntries(page.moments().map(({text, kind, isGone, isBack}) => [text, isGone ? 'gone' : isBack ? 'back' : kind]));
  page.write('The queen');
  page.accept(' said');
  page.undo();
  page.accept(' read it');
  assert.deepEqual(says(), {' said': 'left', ' read it': 'accepted'});
  page.enter(page.moments().find(({kind}) => kind === 'left'));
  assert.equal(page.state.text, 'The queen said');
  assert.deepEqual(says(), {' said': 'back', ' read it': 'gone'});
  page.undo();
  assert.deepEqual(says(), {' said': 'left', ' read it': 'accepted'});
  page.turn('send', {messages: ['The queen read it']});
  assert.equal(says()[' read it'], 'accepted', 'it stands in a message');
});

test('an abandoned text of a document without steps is listed', () => {
  const page = new Page(), left = [{start: 0, removed: '', inserted: 'Once', marks: [], at: 0, caret: [4, 4], time: 1, context: ''}];
  page.history.load({}, left);
  assert.deepEqual(page.moments().map(({kind, text}) => [kind, text]), [['left', 'Once']]);
});

test('undone removals alone are not kept', () => {
  const page = new Page();
  page.accept('one two');
  page.change({start: 3, removed: ' two', inserted: ''});
  page.undo();
  page.write('!');
  assert.deepEqual(page.history.left, []);
});

test('a text that is abandoned twice is kept once, as it was last', () => {
  const page = new Page();
  page.write('One');
  for (const word of [' two', ' 2', ' two', ' II']) {
    page.accept(word);
    page.undo();
  }
  page.accept('!');
  assert.deepEqual(page.history.left.map(({inserted}) => inserted), [' 2', ' two', ' II']);
});

test('equal texts abandoned at two positions, or two states, are two', () => {
  const page = new Page();
  page.write('ab');
  page.change({start: 0, removed: '', inserted: 'x'}, {kind: 'accept'});
  page.undo();
  page.change({start: 1, removed: '', inserted: 'x'}, {kind: 'accept'});
  page.undo();
  page.write('c');
  page.change({start: 0, removed: '', inserted: 'x'}, {kind: 'accept'});
  page.undo();
  page.write('d');
  assert.deepEqual(page.history.left.map(({start, at}) => [start, at]), [[0, 1], [1, 1], [0, 2]]);
});

test('two abandoned texts that replace different text are two', () => {
  const page = new Page();
  page.write('ab');
  page.change({start: 0, removed: 'a', inserted: 'x'}, {kind: 'accept'});
  page.undo();
  page.change({start: 0, removed: '', inserted: 'x'}, {kind: 'accept'});
  page.undo();
  page.write('c');
  assert.deepEqual(page.texts('left').toSorted(), ['xab', 'xb']);
});

test('a text abandoned after undone steps stays reachable from the new text', () => {
  const page = new Page();
  for (const word of ['one', ' two', ' three']) page.accept(word);
  page.undo();
  page.accept(' drei');
  page.undo();
  page.undo();
  page.accept(' zwei');
  assert.deepEqual(new Set(page.texts('left')), new Set(['one two three', 'one two drei']));
  assert.ok(page.history.left.every(({at}) => at === 1));
});

test('the newest fifty abandoned texts are kept', () => {
  const page = new Page();
  page.write('One');
  for (let index = 0; index < 52; index += 1) {
    page.accept(` ${index}`);
    page.undo();
  }
  page.accept('!');
  assert.deepEqual(page.history.left.map(({inserted}) => inserted), Array.from({length: 50}, (_, index) => ` ${index + 2}`));
});

test('the context of a moment is the last words before it', () => {
  const page = new Page();
  page.write(`${'word '.repeat(20)}end`);
  page.accept(' more');
  const [{before}] = page.moments();
  assert.equal(before, `…${'word '.repeat(8)}end`);
  const short = new Page();
  short.write('a'.repeat(48));
  short.accept('b');
  assert.equal(short.moments()[0].before, 'a'.repeat(48));
});

test('the context of a moment does not include the text after it', () => {
  for (const before of ['Once', `${'word '.repeat(9)}Once`]) {
    const page = new Page();
    page.write(`${before} there was`);
    page.change({start: before.length, removed: '', inserted: ' again'}, {kind: 'accept'});
    assert.ok(page.moments()[0].before.endsWith(' Once') || page.moments()[0].before === 'Once');
  }
});

test('a piece after more than forty-eight characters has an ellipsis before the first whole word', () => {
  const page = new Page();
  page.write(`${'a'.repeat(10)} ${'b'.repeat(40)}`);
  page.accept('c');
  assert.equal(page.moments()[0].before, `…${'b'.repeat(40)}`);
  const long = new Page();
  long.write('a'.repeat(49));
  long.accept('b');
  assert.equal(long.moments()[0].before, `…${'a'.repeat(48)}`);
});

test('the context of a moment cuts no character', () => {
  for (const text of ['🙂'.repeat(30), `a${'🙂'.repeat(30)}`]) {
    const page = new Page();
    page.write(text);
    page.accept('c');
    assert.ok(/^…(🙂)+$/u.test(page.moments()[0].before));
  }
});

test('the newest moments come first', () => {
  const page = new Page();
  for (const word of ['one', ' two', ' three']) page.accept(word);
  page.undo();
  page.accept(' drei');
  page.undo();
  assert.deepEqual(page.moments().map(({kind, text}) => [kind, text]), [
    ['undone', ' drei'], ['left', ' three'], ['accepted', ' two'], ['accepted', 'one'],
  ]);
});

test('the newest two hundred accepted and undone pieces are listed', () => {
  const page = new Page();
  for (let index = 0; index < 205; index += 1) page.accept(`${index} `);
  assert.deepEqual(page.moments().map(({text}) => text), Array.from({length: 200}, (_, index) => `${204 - index} `));
  for (let index = 0; index < 3; index += 1) page.undo();
  const moments = page.moments();
  assert.deepEqual([moments.length, moments.filter(({kind}) => kind === 'undone').length], [200, 3]);
});

test('turns of a conversation are all listed, however many words were accepted since', () => {
  const page = new Page();
  page.accept('Hello');
  const after = {messages: ['Hello']};
  page.turn('send', after);
  for (let index = 0; index < 230; index += 1) page.accept(`${index} `);
  const moments = page.moments(), sent = moments.find(({kind}) => kind === 'send');
  assert.deepEqual(sent, {kind: 'send', at: 1, time: 120_000, before: '', text: 'Hello', earlier: undefined});
  assert.equal(moments.filter(({kind}) => kind === 'accepted').length, 200);
  assert.deepEqual(page.goal(sent), {text: 'Hello', spans: [[0, 5]], earlier: undefined, caret: [5, 5]});
});

test('undoing and redoing a turn restores the conversation before the text', () => {
  const page = new Page(), after = {messages: ['Hello']};
  page.write('Hello');
  page.turn('send', after);
  assert.deepEqual(page.state, {text: '', spans: [], earlier: after});
  page.undo();
  assert.deepEqual(page.state, {text: 'Hello', spans: [], earlier: undefined});
  page.redo();
  assert.deepEqual(page.state, {text: '', spans: [], earlier: after});
});

test('an undone turn that is written over is abandoned with its conversation', () => {
  const page = new Page(), after = {messages: ['Hello']}, later = {messages: ['Hello', 'Hi']};
  page.write('Hello');
  page.turn('send', after);
  page.write('Hi');
  page.turn('send', later);
  for (let turn = 0; turn < 3; turn += 1) page.undo();
  page.write('!');
  const [moment] = page.moments();
  assert.deepEqual([moment.kind, moment.text, moment.earlier], ['left', '', later]);
  assert.deepEqual({...page.goal(moment), caret: 0}, {text: '', spans: [], earlier: later, caret: 0});
});

test('of undone turns that are written over, the last one is abandoned, and no copy of a message', () => {
  const page = new Page(), sent = {messages: [{role: 'user', content: 'Who sleeps here?'}], role: 'assistant'};
  const edited = {messages: [], role: 'user'}, anew = {messages: [{role: 'user', content: 'Who is awake?'}], role: 'assistant'};
  page.write('Who sleeps here?');
  page.turn('send', sent);
  page.turn('back', edited, 'Who sleeps here?');
  page.change({start: 4, removed: 'sleeps here', inserted: 'is awake'}, {kind: 'type'});
  page.turn('send', anew);
  for (let turn = 0; turn < 3; turn += 1) page.undo();
  page.write('The keeper.');
  assert.deepEqual(page.history.left.map(({turn}) => turn?.after), [anew]);
});

test('the moment of a click in the example has the chosen token, and its opening before it', () => {
  const page = new Page();
  page.write('The keeper saw', {kind: 'accept', marks: [['The keeper'.length, 'The keeper saw'.length]]});
  page.accept(' a ship');
  page.change({start: 'The keeper saw'.length, removed: '', inserted: ' first'}, {kind: 'accept', marks: [[0, 6]]});
  assert.deepEqual(page.history.moments(page.state).map(({before, text}) => [before, text]),
    [['The keeper saw', ' first'], ['The keeper saw', ' a ship'], ['The keeper', ' saw']]);
});

test('the moment of an abandoned turn has its whole text', () => {
  const page = new Page(), after = {messages: ['Hello']};
  page.write('Hello');
  page.turn('send', after);
  page.write('Hi there');
  page.undo();
  page.undo();
  page.write('!');
  assert.deepEqual(page.moments().map(({kind, text, earlier}) => [kind, text, earlier]), [['left', 'Hi there', after]]);
});

test('two turns abandoned at one state are two if their conversations differ', () => {
  const page = new Page();
  page.write('Hello');
  for (const message of ['a', 'b', 'b']) {
    page.turn('edit', {messages: [message]});
    page.undo();
  }
  page.write('!');
  assert.equal(page.history.left.length, 3);
  const same = {messages: ['c']};
  for (let turn = 0; turn < 2; turn += 1) {
    page.turn('edit', same);
    page.undo();
  }
  page.write('?');
  assert.equal(page.history.left.length, 4);
});

test('a turn to the same text and messages has no turn fields', () => {
  const messages = {};
  assert.deepEqual(turnFields(messages, messages), {});
  assert.deepEqual(turnFields(messages, null), {turn: {before: messages, after: null}});
});

test('an abandoned text has no turn if its conversation is the present one', () => {
  const page = new Page(), after = {messages: ['Hello']};
  page.write('Hello');
  page.turn('send', after);
  page.write('Hi');
  page.accept(' you');
  page.undo();
  page.write(' all');   // ' you' is left where what stands before the text is the same
  assert.ok(!('turn' in page.history.left[0]));
  for (let turn = 0; turn < 3; turn += 1) page.undo();
  page.write('!');      // from here a turn leads to it
  const [entry] = page.history.left;
  assert.deepEqual(entry.turn, {before: undefined, after});
  assert.deepEqual(page.goal({kind: 'left', index: 0}).text, 'Hi you');
});

test('two thousand steps are kept, and texts abandoned at older ones are dropped', () => {
  const page = new Page();
  page.write('a');
  page.accept('b');
  page.undo();
  page.write('c');
  page.write('d');
  page.accept('e');
  page.undo();
  page.write('f');
  for (let index = 0; index < 1996; index += 1) page.write('x');
  assert.deepEqual([page.history.steps.length, page.history.position, page.history.left.map(({at}) => at)], [2000, 2000, [1, 3]]);
  page.write('x');
  assert.deepEqual([page.history.steps.length, page.history.left.map(({at}) => at)], [2000, [0, 2]]);
  page.write('x');
  assert.deepEqual([page.history.steps.length, page.history.left.map(({at}) => at)], [2000, [1]]);
  assert.equal(page.goal({kind: 'left', index: 0}).text, 'acde');
  while (page.undo());
  assert.equal(page.state.text, 'ac');
});

test('steps of eight million characters are kept, and the last step of any size', () => {
  const page = new Page(), million = 'x'.repeat(1_000_000);
  for (let index = 0; index < 8; index += 1) page.change({start: 0, removed: '', inserted: million});
  assert.equal(page.history.steps.length, 8);
  page.change({start: 0, removed: '', inserted: 'y'});
  assert.equal(page.history.steps.length, 8);
  page.change({start: 0, removed: `y${million.repeat(8)}`, inserted: 'z'});
  assert.equal(page.history.steps.length, 1);
  page.undo();
  assert.equal(page.state.text.length, 8_000_001);
});

test('a saved history goes on where it stood', () => {
  const page = new Page();
  for (const word of ['one', ' two', ' three']) page.accept(word);
  page.undo();
  const other = new Page();
  other.history.load(page.history.state(), [{at: 0, start: 0, removed: '', inserted: 'left', marks: [], caret: [4, 4], time: 1, context: ''}]);
  other.state = page.state;
  assert.ok(other.redo());
  assert.equal(other.state.text, 'one two three');
  assert.deepEqual(other.texts('left'), ['left']);
  page.accept(' zwei');
  assert.equal(other.history.steps.length, 3);
});

test('a history without steps is loaded as an empty one', () => {
  const page = new Page();
  page.write('a');
  page.history.load();
  assert.deepEqual([page.history.state(), page.history.left], [{steps: [], position: 0}, []]);
  page.write('b');
  page.history.load({});
  assert.deepEqual([page.history.state(), page.history.left], [{steps: [], position: 0}, []]);
});

test('the steps of a saved history are its own', () => {
  const page = new Page(), left = [];
  page.write('a');
  const saved = page.history.state();
  page.history.load(saved, left);
  page.write('b');
  page.accept('c');
  page.undo();
  page.write('d');
  assert.deepEqual([saved.steps.length, left.length], [1, 0]);
});

test('a moment that does not fit the text, or does not exist, gives null', () => {
  const page = new Page();
  page.write('one');
  const entry = {at: 1, start: 0, removed: 'two', inserted: '2', marks: [], caret: [1, 1], time: 1, context: ''};
  page.history.load(page.history.state(), [entry]);
  assert.equal(page.goal({kind: 'left', index: 0}), null);
  assert.ok(!page.goal({kind: 'left', index: 1}));
});

test('a moment of a turn whose text is unknown has an empty text', () => {
  const page = new Page();
  page.write('one');
  const turn = {before: undefined, after: {messages: []}};
  const entry = {at: 1, start: 0, removed: 'two', inserted: '2', marks: [], caret: [1, 1], time: 1, context: '', turn};
  page.history.load(page.history.state(), [entry]);
  assert.deepEqual(page.moments(), [{kind: 'left', index: 0, time: 1, before: '', text: '', earlier: turn.after}]);
});

test('the state before all steps has its caret at the start', () => {
  const page = new Page();
  page.write('Hello');
  page.undo();
  page.redo();
  page.turn('send', {messages: []});
  const [sent] = page.moments();
  assert.deepEqual(page.goal({...sent, at: 0}), {text: '', spans: [], earlier: undefined, caret: [0, 0]});
});

test('steps before or after the position can be dropped', () => {
  const page = new Page();
  for (const word of ['one', ' two', ' three']) page.accept(word);
  page.undo();
  page.history.forgetBefore();
  assert.deepEqual([page.history.steps.map(({inserted}) => inserted), page.history.position], [[' three'], 0]);
  page.history.forgetAfter();
  assert.deepEqual([page.history.steps, page.history.position], [[], 0]);
});

test('the authors are the same whatever was looked at before', () => withDice(60, dice => {
  randomly(dice, 20, ({history, state}) => {
    if (dice.chance(0.3)) return;
    const fresh = new EditHistory();
    fresh.load(history.state(), history.left);
    assert.deepEqual(history.authors(state), fresh.authors(state));
    for (const moment of history.moments(state)) assert.deepEqual(history.goalAuthors(moment, state), fresh.goalAuthors(moment, state));
  });
}));

test('a key after an undo does not wait for a long history', () => {
  const page = new Page();
  const start = performance.now();
  for (let step = 0; step < 1003; step += 1) {
    page.write(' typed');
    page.accept(' chosen');
  }
  const began = performance.now(), making = began - start;
  for (let turn = 0; turn < 5; turn += 1) {
    page.undo();
    page.undo();
    page.write(` other ${turn}`);
  }
  const ratio = (performance.now() - began) / making;
  assert.ok(ratio < 60, `15 steps took ${ratio.toFixed(2)} times as long as the 2,006 before`);
  for (const word of [' a', ' few', ' more', ' words', ' at', ' the', ' end']) {
    page.history.authors(page.state);
    page.accept(word);   // drops the oldest step
  }
  const fresh = new EditHistory();
  fresh.load(page.history.state());
  assert.deepEqual(page.history.authors(page.state), fresh.authors(page.state));
});

test('a file with more steps than a history keeps opens with the newest ones, or the first ones that can be redone', () => {
  const step = {start: 0, removed: '', inserted: 'a', before: [0, 0], after: [1, 1], kind: 'paste', time: 0, marks: {from: 0, before: [], after: []}};
  const steps = Array.from({length: 3000}, (_, number) => ({...step, number: number + 1}));
  const opened = (position, left = []) => {
    const history = new EditHistory();
    history.load({steps, position}, left);
    return [history.steps.length, history.position, history.steps[0].number, history.left.map(({at}) => at)];
  };
  const entries = [10, 2500, 3000].map(at => ({at, start: 0, removed: '', inserted: 'b', caret: [1, 1], time: 0, marks: [], context: ''}));
  assert.deepEqual(opened(3000, entries), [2000, 2000, 1001, [1500, 2000]]);
  assert.deepEqual(opened(0, entries), [2000, 0, 1, [10]]);
  assert.deepEqual(opened(2500, entries), [2000, 2000, 501, [2000]]);
});
