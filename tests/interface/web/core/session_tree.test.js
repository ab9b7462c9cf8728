import assert from 'node:assert/strict';
import {test} from 'node:test';
import {branchTree} from '../../../../interface/web/core/branch_tree.js';
import {SeenViews} from '../../../../interface/web/core/seen_views.js';
import {sessionTree} from '../../../../interface/web/core/session_tree.js';
import {withDice} from '../../../support/scripts/dice.js';
import {allNodes, drawnOf} from '../../../support/scripts/trees.js';
import {likelyView, oddsOf, textOf, viewOf} from '../../../support/scripts/views.js';

const NOTHING = branchTree({rows: []}, {text: '', revision: 1});
const near = (found, wanted) => assert.ok(Math.abs(found - wanted) < 1e-9, `${found}, and not ${wanted}`);
const treeOf = ({text = '', spans = [], past = [], seen = [], ahead = NOTHING, hides = undefined}) =>
  sessionTree({text, spans, past: past.map(one => (typeof one === 'string' ? {text: one} : one)), seen, ahead, hides});

// The full texts of all nodes that stood, from the root down.
function fullTexts(node, before = '') {
  const full = before + node.text;
  const own = ['typed', 'chosen', 'left'].includes(node.state) ? [[full, node]] : [];
  return [...own, ...node.children.flatMap(child => fullTexts(child, full))];
}

const seenOf = (text, view) => {
  const seen = new SeenViews();
  seen.add(text, drawnOf(view));
  return seen.list;
};

test('each text hangs below the longest other one that it begins with', () => {
  withDice(60, dice => {
    const texts = Array.from({length: 12}, () => dice.text(6, ['a', 'b', ' '])), text = dice.among(texts);
    const all = new Set(['', ...texts]), found = new Map(fullTexts(treeOf({text, past: texts})));
    assert.deepEqual(new Set(found.keys()), all);
    for (const [full, node] of found) {
      const longest = [...all].filter(other => other !== full && full.startsWith(other)).sort((one, other) => other.length - one.length)[0];
      assert.equal(node.text, full.slice(longest?.length ?? 0));
      assert.equal(node.state === 'left', !text.startsWith(full), full);
      assert.equal(node.goal, full === text ? undefined : full);
      assert.equal(Boolean(node.here), full === text);
    }
  });
});

test('what was chosen in the present text is marked, also where only a part of it was', () => {
  const tree = treeOf({text: 'Once upon a', spans: [[4, 9]], past: ['Once', 'Once upon', 'Once said']});
  const states = Object.fromEntries(fullTexts(tree).map(([full, node]) => [full, node.state]));
  assert.deepEqual(states, {'': 'typed', Once: 'typed', 'Once upon': 'chosen', 'Once upon a': 'typed', 'Once said': 'left'});
});

test('branches that were shown hang below the text that they followed, without what was accepted', () => {
  const view = likelyView(4, 3), taken = textOf(view.branches[1].ids[0]), text = `Once${taken}`;
  const tree = treeOf({text, spans: [[4, text.length]], past: ['Once', text], seen: seenOf('Once', view)});
  const [once] = tree.children, seen = once.children.filter(({state}) => state === 'seen');
  assert.deepEqual(new Set(seen.map(node => node.text)), new Set([0, 2, 3].map(row => textOf(view.branches[row].ids[0]))));
  for (const node of seen) near(node.odds.p, oddsOf([Number(node.text.slice(2))]));
  assert.ok(seen.every(({goal, reached}) => goal === 'Once' && !reached));
  const chosen = once.children.find(({state}) => state === 'chosen');
  near(chosen.odds.p, oddsOf([view.branches[1].ids[0]]));
  near(once.children.reduce((all, {odds}) => all + odds.p, 0), 1);
  assert.equal(once.children.at(-1).state, 'rest');
});

test('an accepted piece of several tokens has the odds of its whole path, and replaces its beginning', () => {
  const view = viewOf([[1, 2, 3], [4, 5, 6]]), text = `Once${textOf(1)}${textOf(2)}`;
  const [once] = treeOf({text, past: ['Once', text], seen: seenOf('Once', view)}).children;
  near(once.children.find(({goal, here}) => here && goal === undefined).odds.p, oddsOf([1, 2]));
  assert.deepEqual(once.children.filter(({state}) => state === 'seen').map(node => node.text), [textOf(4)]);
  near(once.rest, 1 - oddsOf([1, 2]) - oddsOf([4]));
});

const statesOf = tree => Object.fromEntries(fullTexts(tree).map(([full, node]) => [full, node.state]));

test('an undone text does not cut the accepted piece that begins with it', () => {
  const past = [{text: 'Once', taken: true}, {text: 'Once was dusting the keys', base: 'Once', p: 0.1, taken: true}, {text: 'Once was dust'}, {text: 'Once was dust off'}];
  const text = 'Once was dusting the keys', tree = treeOf({text: `${text} and`, spans: [[4, text.length]], past}), [once] = tree.children;
  assert.deepEqual(once.children.map(({text: own, state}) => [own, state]), [[' was dust', 'left'], [' was dusting the keys', 'chosen']]);
  assert.deepEqual(once.children[0].children.map(({text: own, state}) => [own, state]), [[' off', 'left']]);
  assert.equal(once.children[1].odds.p, 0.1);
  const again = [...past, {text: 'Once was dust', taken: true}, {text, base: 'Once was dust', p: 0.5, taken: true}];
  assert.deepEqual(statesOf(treeOf({text, spans: [[4, text.length]], past: again})), {
    '': 'typed', Once: 'typed', 'Once was dust': 'chosen', 'Once was dust off': 'left', [text]: 'chosen',
  }, 'a text that stood on the way is no undone one');
});

test('what was taken after an undone part of it is not counted twice', () => {
  const view = viewOf([[1, 2, 3], [4, 5, 6]]), short = `Once${textOf(1)}`, text = `${short}${textOf(2)}`;
  const past = [{text: 'Once', taken: true}, {text, base: 'Once', taken: true}, {text: short}], [once] = treeOf({text, spans: [[4, text.length]], past, seen: seenOf('Once', view)}).children;
  const odds = Object.fromEntries(once.children.map(({state, odds: {p}}) => [state, p]));
  near(odds.left, oddsOf([1]));
  near(odds.chosen, oddsOf([1, 2]));
  near(odds.rest, 1 - oddsOf([1]) - oddsOf([4]));
});

test('an accepted piece that no row showed, as one of another column, is the beginning that it takes', () => {
  const view = viewOf([[1, 2, 3], [4, 5, 6]]), text = `Once${textOf(1)} elsewhere`, p = oddsOf([1]);
  const past = [{text: 'Once', taken: true}, {text, base: 'Once', p: 0.3, taken: true}], seen = seenOf('Once', view);
  const [once] = treeOf({text, spans: [[4, text.length]], past, seen}).children;
  assert.deepEqual(once.children.map(({state}) => state).sort(), ['chosen', 'rest', 'seen']);
  const chosen = once.children.find(({state}) => state === 'chosen');
  near(chosen.odds.p, p);
  assert.equal(chosen.odds.bound, true, 'no view tells how likely all of it is');
  near(once.rest, 1 - p - oddsOf([4]));
  const longer = `Once${textOf(1)}9`, [other] = treeOf({text: longer, past: [past[0], {...past[1], text: longer}], seen}).children;
  assert.deepEqual(other.children.map(({text: own, odds}) => [own, Boolean(odds)]).filter(([own]) => own === `${textOf(1)}9`), [[`${textOf(1)}9`, false]], 'its word is another one');
});

test('typed text that no row showed has no odds, and a view of it none but its own', () => {
  const [once] = treeOf({text: 'Once else', past: ['Once', 'Once else'], seen: seenOf('Once', likelyView(2, 2))}).children;
  assert.equal(once.children.find(({here}) => here).odds, null);
});

test('an accepted piece has its own odds where its view was dropped', () => {
  const past = [{text: 'Once'}, {text: 'Once upon', base: 'Once', p: 0.25}, {text: 'Once said', base: '', p: 0.5}, {text: 'Once ran', base: 'Once', p: null}];
  const [once] = treeOf({text: 'Once upon', past}).children;
  assert.deepEqual(once.children.map(({text, odds}) => [text, odds]), [[' ran', null], [' said', null], [' upon', {p: 0.25, raw: true}]]);
});

test('the present branches hang below the end of the text, beside abandoned texts', () => {
  const ahead = branchTree(drawnOf(likelyView(3, 2)), {text: 'Once', revision: 3});
  const [once] = treeOf({text: 'Once', past: ['Once', 'Once upon'], seen: seenOf('Once', likelyView(5, 2)), ahead}).children;
  assert.ok(once.here);
  assert.deepEqual(once.children.map(({state}) => state), ['ahead', 'ahead', 'ahead', 'rest', 'left']);
  near(once.rest, ahead.rest);
});

test('no two nodes have one key', () => {
  withDice(20, dice => {
    const texts = Array.from({length: 8}, () => dice.text(4, ['a', ' w1', ' ']));
    const seen = new SeenViews();
    for (const text of texts) seen.add(text, drawnOf(likelyView(3, 2)));
    const ahead = branchTree(drawnOf(likelyView(3, 3)), {text: texts[0], revision: 3});
    const keys = allNodes(treeOf({text: texts[0], past: texts, seen: seen.list, ahead})).map(({key}) => key);
    assert.equal(new Set(keys).size, keys.length);
  });
});

test('where rows are hidden, neither what was seen there nor odds are shown', () => {
  const past = [{text: 'Once upon', base: 'Once', p: 0.5}, {text: 'Once upon a', base: 'Once upon', p: 0.9}];
  const seen = [...seenOf('Once upon a', viewOf([[' time', 0.5]]))];
  const tree = hides => treeOf({text: 'Once upon', past: ['Once', ...past], seen, hides});
  const odds = hides => Object.fromEntries(fullTexts(tree(hides)).map(([full, node]) => [full, node.odds?.p ?? null]));
  const states = hides => allNodes(tree(hides)).map(({state}) => state);
  assert.deepEqual(odds(), {'': null, Once: null, 'Once upon': 0.5, 'Once upon a': 0.9});
  assert.ok(states().includes('seen'));
  assert.deepEqual(odds(text => text !== 'Once'), {'': null, Once: null, 'Once upon': 0.5, 'Once upon a': null});
  assert.deepEqual(odds(() => true), {'': null, Once: null, 'Once upon': null, 'Once upon a': null});
  assert.ok(!states(() => true).some(state => ['seen', 'rest'].includes(state)));
});
