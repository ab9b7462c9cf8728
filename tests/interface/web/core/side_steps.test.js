// Steps beside the text are undone and redone in the order in which they were made among the steps of the text.
import assert from 'node:assert/strict';
import test from 'node:test';
import {SideSteps} from '../../../../interface/web/core/side_steps.js';

/** A document as one list of all steps, in the order in which they were made: the reference. */
class Reference {
  done = [];
  undone = [];

  add(step) {
    this.done.push(step);
    this.undone = [];
  }

  undo() { return this.#move(this.done, this.undone); }

  redo() { return this.#move(this.undone, this.done); }

  #move(from, to) {
    if (from.length) to.push(from.pop());
    return to.at(-1);
  }
}

/** The same with the text's steps apart, as the page has them. */
class Document {
  text = [];
  position = 0;
  numbers = 0;
  side = new SideSteps();

  get at() { return this.text[this.position - 1]?.number ?? 0; }

  write(name) {
    this.side.forgetUndone();
    this.text.length = this.position;
    this.text.push({name, number: ++this.numbers});
    this.position += 1;
  }

  ban(name) { this.side.add(this.at, name); }

  undo() { return this.side.undo(this.at) ?? (this.position ? this.text[--this.position].name : undefined); }

  redo() { return this.side.redo(this.at) ?? (this.position < this.text.length ? this.text[this.position++].name : undefined); }
}

test('whatever is written and banned, the last action is undone first and redone last', () => {
  let seed = 7;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let round = 0; round < 200; round += 1) {
    const reference = new Reference(), document = new Document();
    // A ban after an undo leaves the text's undone steps, which the reference does not: there it ends the undone ones too.
    for (let step = 0; step < 30; step += 1) {
      const verb = ['write', 'ban', 'undo', 'redo'][Math.floor(random() * 4)], name = `${verb} ${step}`;
      if (verb === 'write' || (verb === 'ban' && !reference.undone.length)) {
        document[verb](name);
        reference.add(name);
      } else if (verb === 'undo' && reference.done.length) {
        assert.equal(document.undo(), reference.undo());
      } else if (verb === 'redo' && reference.undone.length) {
        assert.equal(document.redo(), reference.redo());
      }
    }
  }
});

test('where nothing is left, there is nothing to undo or redo', () => {
  const side = new SideSteps();
  assert.deepEqual([side.undo(0), side.redo(0), side.canUndo(0), side.canRedo(0)], [null, null, false, false]);
  side.add(3, 'ban');
  assert.deepEqual([side.undo(2), side.canUndo(2), side.canUndo(3), side.canRedo(3)], [null, false, true, false]);
  assert.deepEqual([side.undo(3), side.canUndo(3), side.canRedo(3)], ['ban', false, true]);
  side.forgetUndone();
  assert.equal(side.redo(3), null);
  side.add(3, 'another');
  side.add(3, 'one more');
  side.undo(3);
  const kept = JSON.parse(JSON.stringify(side.state())), reopened = new SideSteps();
  reopened.load(kept);
  assert.deepEqual([reopened.redo(3), reopened.undo(3), reopened.undo(3)], ['one more', 'one more', 'another']);
  side.load();
  assert.equal(side.undo(3), null);
});

test('a step of a text that was left by another path does not hide the ones before it', () => {
  const side = new SideSteps();
  side.add(1, 'here');
  side.add(2, 'there');
  assert.equal(side.undo(1), 'here');
});
