import assert from 'node:assert/strict';
import {test} from 'node:test';
import {changeBetween} from '../../../../interface/web/core/difference.js';
import {EditHistory, stateAfter, stateBefore} from '../../../../interface/web/core/history.js';
import {destinationOf, pastTexts} from '../../../../interface/web/core/past_texts.js';
import {withDice} from '../../../support/scripts/dice.js';

// A document that is written at its end, with every text that it has had, kept as whole strings.
class Writer {
  history = new EditHistory();
  state = {text: '', spans: []};
  time = 0;

  #add(change, kind, more = {}, goal = undefined) {
    const {start, removed, inserted} = change, spans = this.state.spans;
    const step = {start, removed, inserted, before: [this.state.text.length, this.state.text.length], after: [start + inserted.length, start + inserted.length],
      kind, time: this.time += 1e6, ...more};
    const next = this.history.add(step, this.state, {marks: kind === 'accept' ? [[0, inserted.length]] : [], goal});
    this.state = {text: this.state.text.slice(0, start) + inserted + this.state.text.slice(start + removed.length), spans: next};
    assert.ok(spans !== undefined);
  }

  type(text) { this.#add({start: this.state.text.length, removed: '', inserted: text}, 'type'); }

  accept(text, logprobs = [-1], healed = false, gap = '') {
    const start = this.state.text.length, caret = start + text.length;
    this.#add({start, removed: '', inserted: text + gap}, 'accept', {ids: [1], logprobs, healed, after: [caret, caret]});
  }

  remove(count) {
    const start = this.state.text.length - count;
    this.#add({start, removed: this.state.text.slice(start), inserted: ''}, 'delete');
  }

  undo() {
    const step = this.history.undo();
    if (step) this.state = stateBefore(this.state, step);
  }

  redo() {
    const step = this.history.redo();
    if (step) this.state = stateAfter(this.state, step);
  }

  // Go to a text of the history as one new step.
  go(text) {
    const goal = this.history.goal(this.to(text).moment, this.state), change = changeBetween(this.state.text, text);
    this.#add(change, 'reenter', {}, goal.spans);
  }

  get texts() { return pastTexts(this.history, this.state); }

  to(text) { return destinationOf(text, this.history, this.state); }
}

const textsOf = writer => [...new Set(writer.texts.map(({text}) => text))].sort();

test('the texts before and after each choice are kept, with what it was added to and its odds', () => {
  const writer = new Writer();
  writer.type('Once');
  writer.accept(' upon', [-1, -0.5]);
  writer.accept(' a');
  writer.type(' time');
  assert.deepEqual(textsOf(writer), ['Once', 'Once upon', 'Once upon a']);
  const {base, p} = writer.texts.find(one => one.text === 'Once upon' && one.base !== undefined);
  assert.equal(base, 'Once');
  assert.ok(Math.abs(p - Math.exp(-1.5)) < 1e-12);
});

test('a space behind an accepted text and the caret is not part of the text that was reached', () => {
  const writer = new Writer();
  writer.accept('Once', [-1], false, ' ');
  const texts = writer.texts.map(({text}) => text);
  assert.ok(texts.includes('Once') && !texts.includes('Once '), JSON.stringify(texts));
});

test('a piece that completed a typed word has no odds of its own, nor has one whose odds are not known', () => {
  for (const [logprobs, healed] of [[[-1], true], [null, false], [[], false]]) {
    const writer = new Writer();
    writer.type('On');
    writer.accept('ce', logprobs, healed);
    assert.equal(writer.texts.find(one => one.base === 'On').p, null);
  }
});

test('undone texts and abandoned ones are kept', () => {
  const writer = new Writer();
  writer.type('Once');
  writer.accept(' upon');
  writer.accept(' a');
  writer.undo();
  assert.ok(textsOf(writer).includes('Once upon a'));
  writer.accept(' the');
  assert.ok(textsOf(writer).includes('Once upon a'), 'it was abandoned');
  assert.deepEqual(writer.to('Once upon a'), {moment: {kind: 'left', index: 0}});
});

test('the texts on the way to the present one are told from those that were undone', () => {
  const writer = new Writer();
  writer.type('Once');
  writer.accept(' was dust');
  writer.undo();
  writer.accept(' was dusting the keys');
  const taken = new Set(writer.texts.filter(one => one.taken).map(({text}) => text));
  assert.deepEqual(textsOf(writer).map(text => [text, taken.has(text)]), [['Once', true], ['Once was dust', false], ['Once was dusting the keys', true]]);
});

test('a text that was left by going back to an earlier one is not on the way to the present one', () => {
  const writer = new Writer();
  writer.type('Once');
  writer.accept(' was dust');
  writer.go('Once');
  writer.accept(' was dusting the keys');
  const takenOf = () => textsOf(writer).filter(text => writer.texts.some(one => one.text === text && one.taken));
  assert.deepEqual(textsOf(writer), ['Once', 'Once was dust', 'Once was dusting the keys']);
  assert.deepEqual(takenOf(), ['Once', 'Once was dusting the keys']);
  writer.go('Once was dust');
  writer.accept('ing the keys');
  assert.deepEqual(takenOf(), ['Once', 'Once was dust', 'Once was dusting the keys']);
});

test('undo after going to a text brings back the text before, and redo goes there again', () => {
  withDice(40, dice => {
    const writer = new Writer();
    for (let count = 0; count < 20; count += 1) {
      const verb = dice.among(['type', 'accept', 'accept', 'undo', 'redo']);
      if (verb === 'type' || verb === 'accept') writer[verb](` ${dice.text(3)}`);
      else writer[verb]();
      const {state} = writer, others = writer.texts.filter(({text}) => text !== state.text && writer.to(text).moment);
      if (!others.length) continue;
      const {text} = dice.among(others), spans = writer.history.goal(writer.to(text).moment, state).spans;
      writer.go(text);
      assert.deepEqual([writer.state.text, writer.state.spans], [text, spans]);
      writer.undo();
      assert.deepEqual([writer.state.text, writer.state.spans], [state.text, state.spans]);
      writer.redo();
      assert.deepEqual([writer.state.text, writer.state.spans], [text, spans]);
    }
  });
});

test('typed words that were removed are kept, and letters are not', () => {
  const writer = new Writer();
  writer.type('Once upon a tmie');
  writer.remove(4);
  assert.deepEqual(textsOf(writer), []);
  writer.remove(7);
  assert.deepEqual(textsOf(writer), ['Once upon a ']);
});

test('a text of the history is restored by its position, before or after the present one', () => {
  const writer = new Writer();
  writer.type('Once');
  writer.accept(' upon');
  writer.accept(' a');
  writer.undo();
  assert.deepEqual(writer.to('Once'), {moment: {kind: 'accepted', at: 1}});
  assert.deepEqual(writer.to('Once upon a'), {moment: {kind: 'accepted', at: 3}});
  assert.deepEqual(writer.to(''), {moment: {kind: 'accepted', at: 0}});
});

test('the beginning of a text is written by a step of its own, with the marks that it had', () => {
  const writer = new Writer();
  writer.type('Once');
  writer.accept(' upon a time');
  assert.deepEqual(writer.to('Once upon'), {text: 'Once upon', spans: [[4, 9]], of: null});
  writer.undo();
  assert.deepEqual(writer.to('Once upon'), {text: 'Once upon', spans: [[4, 9]], of: {kind: 'accepted', at: 2}});
  writer.accept(' more');
  assert.deepEqual(writer.to('Once upon'), {text: 'Once upon', spans: [[4, 9]], of: {kind: 'left', index: 0}});
  assert.equal(writer.to('Twice'), null);
});

test('every text that a random session has had before its caret can be restored', () => {
  withDice(40, dice => {
    const writer = new Writer(), had = new Set(['']);
    for (let count = 0; count < 25; count += 1) {
      const verb = dice.among(['type', 'accept', 'accept', 'undo', 'redo', 'remove']);
      if (verb === 'type') writer.type(dice.text(4) || 'x');
      else if (verb === 'accept') writer.accept(` ${dice.text(3)}`);
      else if (verb === 'remove' && writer.state.text) writer.remove(1);
      else if (verb !== 'remove') writer[verb]();
      had.add(writer.state.text);
      const present = writer.history.position;
      for (const {text} of writer.texts) assert.ok(had.has(text), JSON.stringify(text));
      for (const [index] of writer.history.steps.entries()) {
        const then = writer.history.goal({kind: 'accepted', at: index}, writer.state).text, found = writer.to(then);
        assert.equal(found.moment ? writer.history.goal(found.moment, writer.state).text : found.text, then);
      }
      assert.equal(writer.history.position, present);
    }
  });
});
