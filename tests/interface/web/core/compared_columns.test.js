import assert from 'node:assert/strict';
import {test} from 'node:test';

import {
  EXAMPLE, columnInstructions, columnsFrom, columnsOfRequest, elsewhereSentence, firstsElsewhere, settingsOfColumn, sharedFirsts, temperatureComplaint,
  temperatureFrom, withoutInstructions,
} from '../../../../interface/web/core/compared_columns.js';

const rowOf = (...pieces) => ({ids: pieces.flat(), pieces: pieces.map((ids, index) => ({ids, tokens: pieces.slice(0, index + 1).flat().length}))});

// A view whose branches have one token each, and other beginnings.
function viewOf(branches, rest = []) {
  const entry = ([ids, p]) => ({ids: [ids].flat(), logprobs: [Math.log(p), ...[ids].flat().slice(1).map(() => 0)]});
  return {
    branches: branches.map(([ids, p, healed = false]) => ({
      ...entry([ids, p]), pieces: [{text: `<${ids}>`, tokens: [ids].flat().length, ends: 0}], ended: false, healed,
    })),
    rest: rest.map(([ids, p]) => ({...entry([ids, p]), text: `<${ids}>`, end: false})),
    nodes: [], given: '', seen_from: 0,
    asked: {k: 5, depth: 5, mode: 'likely', until: 'tokens', temperature: 1, top_p: 1, seed: 0},
  };
}
const near = (one, other) => assert.ok(Math.abs(one - other) < 1e-9, `${one} is not ${other}`);

test('columns of a file are two to four, and wrong fields count as none', () => {
  const whole = [{instruction: 'Be short.', temperature: 0.5}, {instruction: '', temperature: null}];
  assert.deepEqual(columnsFrom(JSON.parse(JSON.stringify(whole))), whole);
  assert.deepEqual(columnsFrom([{instruction: 5, temperature: 'hot'}, {instruction: 'a'.repeat(5000), temperature: 3, more: 1}]), [
    {instruction: '', temperature: null}, {instruction: 'a'.repeat(4000), temperature: null},
  ]);
  const columns = columnsFrom([{temperature: 0}, {temperature: 2}, {temperature: -0.1}, {temperature: NaN}]);
  assert.deepEqual(columns.map(column => column.temperature), [0, 2, null, null]);
  for (const wrong of [undefined, null, 'ab', {}, [], [{}], [{}, {}, {}, {}, {}], [{}, null], [{}, 'x'], [{}, []]]) assert.equal(columnsFrom(wrong), null);
  assert.equal(columnsFrom([{}, {}, {}, {}]).length, 4);
});

test('the page’s own instruction fits any text, and no former one of the page counts as a person’s', () => {
  assert.equal(EXAMPLE, 'Continue in a cheerful tone.');
  const columns = [EXAMPLE, 'Continue this as a ghost story.', 'Be short.'].map(instruction => ({instruction, temperature: null}));
  assert.deepEqual(columnInstructions({view: 'compare', columns}), ['', '', 'Be short.']);
});

test('the instructions of columns count where the columns are shown, and those that a person declines are taken out', () => {
  const columns = [{instruction: 'Be short.', temperature: 0.5}, {instruction: ' ', temperature: null}, {instruction: EXAMPLE, temperature: null}];
  const settings = {view: 'compare', k: 3, columns};
  assert.deepEqual(columnInstructions(settings), ['Be short.', '', ''], 'the page’s own example and spaces are nobody’s instruction');
  assert.deepEqual(columnInstructions({...settings, view: 'rows'}), []);
  for (const none of [null, {}, {view: 'compare'}, {view: 'compare', columns: [{}]}]) assert.deepEqual(columnInstructions(none), []);
  const left = withoutInstructions(settings, ['Be short.', 'Other.']);
  assert.deepEqual(left, {view: 'compare', k: 3, columns: [{instruction: '', temperature: 0.5}, columns[1], columns[2]]});
  assert.equal(columns[0].instruction, 'Be short.', 'the settings themselves stay');
  assert.deepEqual(withoutInstructions({k: 3}, ['Be short.']), {k: 3});
});

test('a request has temperatures only where tokens are drawn, and null for an instruction of spaces', () => {
  const columns = [{instruction: ' ', temperature: 0.5}, {instruction: ' Be short.', temperature: null}];
  assert.deepEqual(columnsOfRequest(columns), [{instruction: null, temperature: 0.5}, {instruction: ' Be short.', temperature: null}]);
});

test('the field of a temperature takes numbers from 0 to 2 with a decimal point or comma, or nothing', () => {
  const taken = {'': null, '  ': null, '0': 0, '2': 2, '1.5': 1.5, '1,5': 1.5, ' 0,7 ': 0.7, '.5': 0.5, '1.': 1, '0.25': 0.25};
  for (const [written, value] of Object.entries(taken)) assert.equal(temperatureFrom(written), value, written);
  for (const wrong of ['5', '3', '-1', '2.1', '15', '1,5,0', '1.5.0', '.', ',', 'hot', '1e0', '0x1', '+1', 'Infinity', '1 5']) assert.ok(Number.isNaN(temperatureFrom(wrong)), wrong);
  assert.equal(temperatureComplaint(' 5'), 'Write a number from 0 to 2, such as 0.7, or empty the field: “5” cannot be used, so this column’s rows are hidden.');
});

test('a column draws at most five rows, at its own temperature or at the page’s', () => {
  const settings = {k: 20, depth: 3, temperature: 0.7};
  assert.deepEqual(settingsOfColumn(settings, {instruction: '', temperature: null}), {k: 5, depth: 3, temperature: 0.7});
  assert.deepEqual(settingsOfColumn({...settings, k: 3}, {instruction: '', temperature: 0}), {k: 3, depth: 3, temperature: 0});
  assert.equal(settingsOfColumn({}, {instruction: '', temperature: null}).k, 5);
});

test('first tokens of several columns have a letter, the same for the same token', () => {
  const columns = [[rowOf([7], [8]), rowOf([3]), rowOf([4])], [rowOf([4], [9]), rowOf([5])], [rowOf([7]), rowOf([4]), rowOf([7, 1])]];
  assert.deepEqual(sharedFirsts(columns), [['a', '', 'b'], ['b', ''], ['a', 'b', '']]);
});

test('rows in which the text ends at once have a letter too', () => {
  const end = {...rowOf(), ended: true};
  assert.deepEqual(sharedFirsts([[end, rowOf([7])], [rowOf([5]), end]]), [['a', ''], ['', 'a']]);
});

test('where a column ends the text first, that is its first choice', () => {
  const ending = (...branches) => { const view = viewOf(branches); Object.assign(view.branches[0], {pieces: [], ended: true}); return view; };
  const columns = [ending([0, 0.7], [2, 0.2]), ending([0, 0.4], [2, 0.3]), viewOf([[2, 0.5]])].map(view => ({view, settings: {}}));
  const [first, second, third] = firstsElsewhere(columns);
  assert.deepEqual(first.map(({column, text, same}) => [column, text, same]), [[1, null, true], [2, '<2>', false]]);
  near(first[0].odds.p, 0.7);
  near(first[1].odds.p, 0.2);
  near(second[0].odds.p, 0.4);
  assert.deepEqual(third.map(({text, odds}) => [text, odds.bound]), [[null, true], [null, true]]);
});

test('a token that begins two rows of one column alone has no letter, and neither has a row without a token', () => {
  assert.deepEqual(sharedFirsts([[rowOf([7], [8]), rowOf([7], [9]), rowOf()], [rowOf([5]), rowOf()]]), [['', '', ''], ['', '']]);
  assert.deepEqual(sharedFirsts([[], [rowOf([5])]]), [[], ['']]);
});

test('each column shows its odds of the first choices of the others', () => {
  const columns = [viewOf([[1, 0.5], [2, 0.2]], [[3, 0.1]]), viewOf([[3, 0.6], [1, 0.3]]), viewOf([[1, 0.9]])].map(view => ({view, settings: {}}));
  const [first, second, third] = firstsElsewhere(columns);
  assert.deepEqual(first.map(({column, text, same}) => [column, text, same]), [[1, '<3>', false], [2, '<1>', true]]);
  near(first[0].odds.p, 0.1);
  near(first[1].odds.p, 0.5);
  assert.ok(first.every(({odds}) => !odds.bound));
  assert.deepEqual(second.map(({column}) => column), [0, 2]);
  near(second[0].odds.p, 0.3);
  assert.deepEqual(third.map(({same}) => same), [true, false]);
});

test('odds of a token that a view does not hold are a bound: those of its least likely one', () => {
  const [first] = firstsElsewhere([viewOf([[1, 0.5]], [[2, 0.04], [5, 0.02]]), viewOf([[9, 0.6]])].map(view => ({view, settings: {}})));
  near(first[0].odds.p, 0.02);
  assert.equal(first[0].odds.bound, true);
});

test('where the typed token is replaced, a bound is taken among beginnings of the same length', () => {
  const [first] = firstsElsewhere([
    viewOf([[1, 0.5, true], [[4, 2], 0.2, true]], [[[4, 3], 0.1], [7, 0.01]]), viewOf([[[4, 9], 0.6, true], [1, 0.1, true]]),
  ].map(view => ({view, settings: {}})));
  near(first[0].odds.p, 0.1);
  assert.equal(first[0].odds.bound, true);
});

test('the likeliest first choice counts, whatever the order of the rows', () => {
  const settings = {order: 'alphabet'}, views = [viewOf([[1, 0.2], [2, 0.7]]), viewOf([[2, 0.9]])];
  assert.deepEqual(firstsElsewhere(views.map(view => ({view, settings}))).map(([one]) => one.same), [true, true]);
});

test('columns without rows, and first choices of several tokens, have no entry', () => {
  const views = [viewOf([[1, 0.5]]), null, viewOf([]), viewOf([[[5, 6], 0.5]])];
  assert.deepEqual(firstsElsewhere(views.map(view => ({view, settings: {}}))).map(entries => entries.length), [0, 0, 0, 1]);
});

test('the sentence about another column says of which column the odds are, whether the choices are the same or not', () => {
  const said = [true, false].map(same => elsewhereSentence({column: 1, same}).join('“the”'));
  assert.deepEqual(said, ['Column 2 also puts “the” first; here its chance is ', 'Column 2 puts “the” first; here its chance is ']);
});
