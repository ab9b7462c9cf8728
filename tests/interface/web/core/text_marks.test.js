import assert from 'node:assert/strict';
import {test} from 'node:test';

import {mirrorStart, markedStretches, stripCells} from '../../../../interface/web/core/text_marks.js';
import {withDice} from '../../../support/scripts/dice.js';
import {Owners, randomMarks} from '../../../support/scripts/owners.js';

// A text of pieces that were chosen and typed, with its spans.
function randomText(dice) {
  const owners = new Owners();
  let text = '';
  for (let turn = 0; turn < 4; turn += 1) {
    const inserted = dice.text(6, ['a', 'b', ' ', '\n']);
    owners.change({start: text.length, removed: '', inserted}, randomMarks(dice, inserted.length));
    text += inserted;
  }
  return {text, spans: owners.spans, chosen: owners.cells.map(piece => piece !== null)};
}

// Which characters are underlined: those of runs of chosen ones, without the white space at their ends.
function underlined(text, chosen, start) {
  const found = text.split('').map((_, index) => chosen[index] && index >= start);
  for (let index = start; index < text.length; index += 1) {
    const ahead = /^\s*/.exec(text.slice(index))[0].length, last = chosen.slice(index, index + ahead + 1);
    const first = !found[index - 1];
    if (chosen[index] && ahead && (first || last.length <= ahead || last.includes(false))) found[index] = false;
  }
  return found.slice(start);
}

test('a text is split into chosen stretches, without the spaces around them, and typed ones', () => withDice(400, dice => {
  const {text, spans, chosen} = randomText(dice), start = dice.chance(0.5) ? 0 : dice.upTo(text.length);
  const found = [...markedStretches(text, spans, start)];
  assert.equal(found.map(one => one.text).join(''), text.slice(start));
  assert.deepEqual(found.flatMap(one => one.text.split('').map(() => one.chosen)), underlined(text, chosen, start));
  assert.ok(found.every(one => !one.chosen || one.text));
}));

test('adjacent spans are one stretch', () => {
  assert.deepEqual([...markedStretches('one two!', [[0, 3], [3, 7]])], [
    {text: '', chosen: false}, {text: 'one two', chosen: true}, {text: '!', chosen: false},
  ]);
});

test('two spans with text between them are two stretches', () => {
  assert.deepEqual([...markedStretches('one two', [[0, 3], [4, 7]])].filter(({chosen}) => chosen).map(({text}) => text), ['one', 'two']);
});

test('splitting a text does not change its spans', () => {
  const spans = [[0, 3], [3, 7]];
  for (const part of [markedStretches('one two!', spans), stripCells(8, spans)]) assert.ok([...part].length);
  assert.deepEqual(spans, [[0, 3], [3, 7]]);
});

test('a short text is mirrored as a whole', () => {
  assert.equal(mirrorStart('a'.repeat(20_000)), 0);
  assert.equal(mirrorStart(''), 0);
});

test('the mirror of a long text begins with the first paragraph of its last twenty thousand characters', () => {
  assert.equal(mirrorStart(`${'a'.repeat(10)}\n${'b'.repeat(19_999)}`), 11);
  assert.equal(mirrorStart(`${'a'.repeat(10)}\n${'b'.repeat(5_000)}\n${'c'.repeat(14_998)}`), 11);
  assert.equal(mirrorStart(`${'a'.repeat(9)}\n${'b'.repeat(5_000)}\n${'c'.repeat(14_999)}`), 5011);
});

test('a long text without a short last paragraph is not mirrored', () => {
  assert.equal(mirrorStart('a'.repeat(20_001)), null);
  assert.equal(mirrorStart(`a\n${'b'.repeat(20_000)}`), null);
});

test('the strip of a short text has one cell for each character', () => withDice(300, dice => {
  const {text, chosen, spans} = randomText(dice), cells = [];
  for (const {share, chosen: own} of stripCells(text.length, spans)) cells.push(...Array(share).fill(own));
  assert.deepEqual(cells, chosen);
}));

test('neighbours on the strip differ', () => withDice(200, dice => {
  const {text, spans} = randomText(dice), found = [...stripCells(text.length, spans)];
  found.slice(1).forEach((stripe, index) => assert.notEqual(stripe.chosen, found[index].chosen));
}));

test('the strip of a long text has two hundred cells, and each piece at least one', () => {
  assert.deepEqual([...stripCells(2000, [[4, 5], [1000, 1100], [1104, 1105]])], [
    {share: 10, chosen: true}, {share: 990, chosen: false}, {share: 110, chosen: true}, {share: 890, chosen: false},
  ]);
  assert.deepEqual([...stripCells(2000, [[996, 1004]])], [
    {share: 1000, chosen: false}, {share: 10, chosen: true}, {share: 990, chosen: false},
  ]);
});

test('spans in the same cell of the strip are drawn once', () => {
  assert.deepEqual([...stripCells(20_000, [[100, 101], [103, 104], [110, 260]])], [
    {share: 100, chosen: false}, {share: 200, chosen: true}, {share: 19_700, chosen: false},
  ]);
});

test('the strip of a wholly chosen or typed text has one colour, and that of an empty text none', () => {
  assert.deepEqual([...stripCells(5, [[0, 5]])], [{share: 5, chosen: true}]);
  assert.deepEqual([...stripCells(5, [])], [{share: 5, chosen: false}]);
  assert.deepEqual([...stripCells(0, [])], []);
});
