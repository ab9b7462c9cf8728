import assert from 'node:assert/strict';
import {test} from 'node:test';
import {EditHistory, stateAfter, stateBefore} from '../../../../interface/web/core/history.js';
import {destinationOf, pastTexts} from '../../../../interface/web/core/past_texts.js';
import {withDice} from '../../../support/scripts/dice.js';

// A document that is written at its end, with every text that it has had, kept as whole strings.
class Writer {
  history = new EditHistory();
  state = {text: '', spans: []};
  time = 0;

  #add(change, kind, more = {}) {
    const {start, removed, inserted} = change, spans = this.state.spans;
    const step = {start, removed, inserted, before: [this.state.text.length, this.state.text.length], after: [start + inserted.length, start + inserted.length],
      kind, time: this.time += 1e6, ...more};
    const next = this.history.add(step, this.state, {marks: kind === 'accept' ? [[0, inserted.length]] : []});
    this.state = {text: this.state.text.slice(0, start) + inserted + this.state.text.slice(start + removed.length), spans: next};
    assert.ok(spans !== undefined);
  }

  type(text) { this.#add({start: this.state.text.length, removed: '', inserted: text}, 'type'); }

  accept(text, logprobs = [-1], healed = false) { this.#add({start: this.state.text.length, removed: '', inserted: text}, 'accept', {ids: [1], logprobs, healed}); }

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
  assert.deepEqual(writer.to('Once upon a'), {index: 0});
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
  assert.deepEqual(writer.to('Once'), {at: 1});
  assert.deepEqual(writer.to('Once upon a'), {at: 3});
  assert.deepEqual(writer.to(''), {at: 0});
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
        if ('at' in found) assert.equal(writer.history.goal({kind: 'accepted', at: found.at}, writer.state).text, then);
        else if ('index' in found) assert.equal(writer.history.goal({kind: 'left', index: found.index}, writer.state).text, then);
        else assert.equal(found.text, then);
      }
      assert.equal(writer.history.position, present);
    }
  });
});
