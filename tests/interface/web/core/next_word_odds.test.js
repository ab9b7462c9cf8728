import assert from 'node:assert/strict';
import {test} from 'node:test';

import {INITIAL_STATE, reduce} from '../../../../interface/web/core/branch_view_state.js';
import {coversSettings, shapeRows} from '../../../../interface/web/core/branch_rows.js';
import {shareLabel, summarySentence} from '../../../../interface/web/core/branch_sentences.js';
import {formatError, formatKnown} from '../../../../interface/web/core/figures_and_labels.js';
import {assertNear, likelyView, likeliest, oddsOf, rowAfter} from '../../../support/scripts/views.js';

const near = (found, wanted, what) => assertNear(assert, found, wanted, what);

const rounded = figure => Number(figure.toFixed(6));

// A view whose rows begin with words of two tokens, and whose shares are no product of token odds.
function wordView(k = 3, depth = 4, asked = {}) {
  const view = likelyView(k, depth, {odds: 'words', ...asked});
  view.branches.forEach((branch, index) => {
    const text = branch.pieces.slice(0, 2).map(piece => piece.text).join('');
    branch.next_word = {text, tokens: 2, share: 0.3 / (index + 1), error: 0.0002 * (index + 1)};
  });
  view.rest = [
    {ids: [90], logprobs: [-3], at: [], text: ' sea', end: false, next_word: {share: 0.04, error: 0.0004}},
    {ids: [91], logprobs: [-4], at: [], text: ' li', end: false, next_word: {share: 0.01, error: 0.01}},
    {ids: [92], logprobs: [-5], at: [], text: null, end: true, next_word: {share: 0.005, error: 0}},
  ];
  return view;
}

test('with odds of words a share is that of the word, and coverage is their sum', () => {
  const drawn = shapeRows(wordView(), {odds: 'words'});
  assert.deepEqual(drawn.rows.map(row => rounded(row.share.p)), [0.3, 0.15, 0.1]);
  assert.deepEqual(drawn.rows.map(row => row.next_word.tokens), [2, 2, 2]);
  near(drawn.coverage.p, 0.55, 'coverage');
  near(drawn.rest.p, 0.45, 'the rest');
  near(drawn.wordError, 0.0006, 'the error');
  assert.equal(shapeRows(likelyView(3, 4)).wordError, null);
});

test('fewer rows keep their words’ shares, and the others are among the other words', () => {
  const drawn = shapeRows(wordView(), {odds: 'words', k: 1});
  near(drawn.coverage.p, 0.3, 'coverage');
  assert.deepEqual(drawn.others.map(other => rounded(other.odds.p)), [0.15, 0.1, 0.04, 0.02, 0.005], 'a bound counts as half');
  assert.deepEqual(drawn.others.map(other => Boolean(other.odds.bound)), [false, false, false, true, false]);
  assert.deepEqual(drawn.others.map(other => other.end), [false, false, false, false, true]);
  assert.deepEqual([drawn.others[0].text, drawn.others[0].ids.length], [wordView().branches[1].next_word.text, 2]);
});

test('what edited rows leave of a beginning that they share is among the others, unless a row holds its word', () => {
  const view = wordView(), [row, edited, again] = view.branches, [first] = edited.ids;
  const second = rowAfter([first]), [one, other] = likeliest([first], 3).slice(1);
  for (const [branch, id] of [[edited, one], [again, other]]) {
    delete branch.next_word;
    branch.ids = [first, id, ...branch.ids.slice(2)];
    branch.logprobs = [rowAfter([])[first], second[id], ...branch.logprobs.slice(2)];
  }
  again.pieces = [edited.pieces[0], ...again.pieces.slice(1)];
  const drawn = shapeRows(view, {odds: 'words'}), [largest] = drawn.others;
  assert.deepEqual([largest.ids, largest.otherwise], [[first], true]);
  near(largest.odds.p, oddsOf([first]) - oddsOf([first, one]) - oddsOf([first, other]), 'what they leave');
  row.ids = [first, ...row.ids.slice(1)];
  row.pieces = [edited.pieces[0], ...row.pieces.slice(1)];
  assert.ok(!shapeRows(view, {odds: 'words'}).others.some(one => one.otherwise), 'the row’s word holds it');
});

test('a row shows its first word whole, however short rows are', () => {
  const lengths = depth => shapeRows(wordView(), {odds: 'words', depth}).rows.map(row => row.ids.length);
  assert.deepEqual(lengths(1), [2, 2, 2]);
  assert.deepEqual(lengths(3), [3, 3, 3]);
});

test('at another temperature or top-p shares are those of tokens, and the caption says so', () => {
  for (const settings of [{temperature: 0.5}, {top_p: 0.9}, {temperature: 0}]) {
    const drawn = shapeRows(wordView(), {odds: 'words', ...settings});
    assert.equal(drawn.wordError, null);
    assert.ok(drawn.rows.every(row => row.next_word === undefined));
    const [row] = drawn.rows;
    near(row.share.p, row.figures[0].p, 'a token’s odds');
    const sentence = /comes next: a token, .* Figures and order are those of tokens: word odds need temperature 1 and top-p 1\.$/;
    assert.match(summarySentence({state: 'settled'}, drawn), sentence);
    const shares = drawn.rows.map(({share}) => share.p);
    assert.deepEqual(shares, shares.toSorted((one, other) => other - one), 'rows are in the order of their figures');
  }
  near(shapeRows(wordView(), {odds: 'words', temperature: 0.5}).rows[0].share.p, oddsOf(wordView().branches[0].ids.slice(0, 1), 0.5), 'share');
});

test('at another temperature other words have the odds of their first tokens, an upper bound where more follow', () => {
  const view = wordView(), [one, other] = likeliest([], 5).slice(3);
  view.rest = [[one], [other, 8]].map(ids => ({
    ids, logprobs: [rowAfter([])[ids[0]], -0.5].slice(0, ids.length), at: [0], text: ' sea', end: false, next_word: {share: 0.04, error: 0},
  }));
  const others = shapeRows(view, {odds: 'words', temperature: 0.5}).others;
  [one, other].forEach((id, index) => near(others[index].odds.p, oddsOf([id], 0.5), 'odds'));
  assert.deepEqual(others.map(other => [other.ids.length, Boolean(other.odds.bound)]), [[1, false], [2, true]]);
});

test('where a word steers the rows, shares are those of tokens, whatever the temperature is', () => {
  const steered = settings => summarySentence({state: 'settled'}, shapeRows(likelyView(3, 4, {avoid: 'sea'}), {odds: 'words', avoid: 'sea', ...settings}));
  assert.match(steered({}), /comes next: a token, as the model gives it, .* Each button is a token/);
  assert.doesNotMatch(steered({}), /odds of words/);
});

test('a view has the odds of words or of tokens, and only the mode likely has words', () => {
  const words = wordView(), tokens = likelyView(3, 4), sampled = {...tokens, asked: {...tokens.asked, mode: 'forks'}};
  assert.ok(coversSettings(words, {odds: 'words'}) && coversSettings(words, {}) && !coversSettings(words, {odds: 'tokens'}));
  assert.ok(coversSettings(tokens, {odds: 'tokens'}) && coversSettings(tokens, {}) && !coversSettings(tokens, {odds: 'words'}));
  assert.ok(coversSettings(sampled, {odds: 'words'}));
});

test('at another temperature rows of words are not enough, and rows of tokens are, whatever is chosen', () => {
  const words = wordView(), tokens = likelyView(3, 4), named = {odds: 'words'};
  for (const other of [{temperature: 0.5}, {top_p: 0.9}]) {
    assert.ok(!coversSettings(words, {...named, ...other}));
    assert.ok(coversSettings(tokens, {...named, ...other}));
  }
});

test('at other temperatures a view has rows and odds of tokens, also where the last typed token is re-opened', () => {
  const words = {...wordView(), given: ' a'}, tokens = {...likelyView(3, 4), given: ' a'};
  assert.ok(coversSettings(words, {odds: 'words'}) && !coversSettings(words, {odds: 'words', temperature: 0.5}));
  assert.ok(coversSettings(tokens, {odds: 'words', temperature: 0.5}) && coversSettings(tokens, {odds: 'tokens', temperature: 0.5}));
  assert.ok(!coversSettings(tokens, {odds: 'words', temperature: 1}) && coversSettings(tokens, {odds: 'words', temperature: 0.7}));
});

test('while rows grow, a share that is not known yet has no figure, nor has what the rows hold together', () => {
  const view = wordView();
  const known = [{share: 0.43, error: 0.43}, {share: 0.44, error: 0.43}, {share: 0.2, error: 0}];
  view.branches.forEach((branch, index) => { branch.next_word = {...branch.next_word, ...known[index]}; });
  const figures = growing => {
    const {rows, coverage, rest} = shapeRows(view, {odds: 'words'}, null, growing);
    return [...rows.map(({share}) => share), coverage, rest].map(odds => formatKnown(odds).replaceAll('\u00a0', ' '));
  };
  assert.deepEqual(figures(true), ['…', '…', '20 %', '…', '…']);
  assert.deepEqual(figures(false), ['≤ 86 %', '≥ 1 %', '20 %', '≥ 21 %', '≤ 79 %'], 'once the search has ended, bounds are the result');
  const drawn = shapeRows(view, {odds: 'words'}, null, true);
  assert.deepEqual([drawn.coverage.atLeast, drawn.rest.bound, rounded(drawn.wordError)], [true, true, 0]);
  assert.match(summarySentence({state: 'thinking'}, drawn), /a word \(exact to ±0\.001\u00a0%\), as/);
  for (const row of drawn.rows.slice(0, 2)) assert.match(shareLabel(row), /^The chance of this next word, “.+”, is not known yet$/);
  assert.equal(shapeRows(view, {odds: 'words', order: 'path'}).rows.length, 3);
});

test('of a share that stays unknown, the most that it can be is shown', () => {
  const view = wordView(), known = [{share: 0.5, error: 0}, {share: 0.1, error: 0.1}, {share: 0.02, error: 0.01}];
  view.branches.forEach((branch, index) => { branch.next_word = {...branch.next_word, ...known[index]}; });
  const drawn = shapeRows(view, {odds: 'words'}), shown = drawn.rows.map(({share}) => formatKnown(share).replaceAll('\u00a0', ' '));
  assert.deepEqual(shown, ['50 %', '≤ 20 %', '≥ 1 %']);
  near(drawn.coverage.p, 0.51, 'coverage counts the least that each can be');
  assert.match(shareLabel(drawn.rows[1]), /^≤\u00a020\u00a0% chance of this next word, “/);
  assert.match(summarySentence({state: 'settled'}, drawn), /exact to ±0\.001\u00a0%; ≤ means at most; ≥ means at least\), as/);
  view.branches[1].next_word = {...view.branches[1].next_word, share: 0.5, error: 0.5};
  assert.equal(formatKnown(shapeRows(view, {odds: 'words'}).rows[1].share), '…', 'at most 100 % says nothing');
});

test('shares of words that exceed 100 % together by their errors are the least that they can be', () => {
  const view = wordView(2);
  view.branches.forEach(branch => Object.assign(branch.next_word, {share: 0.5005, error: 0.001}));
  const {coverage, rows} = shapeRows(view, {odds: 'words'});
  assert.deepEqual(rows.map(({share}) => [rounded(share.p), share.atLeast]), [[0.4995, true], [0.4995, true]]);
  near(coverage.p, 0.999, 'coverage');
});

test('the share of a pinned row among words is not known before the first view after it', () => {
  const {branches: [, pinned]} = likelyView(3, 4);
  const [first, ofTokens] = [wordView(), likelyView(3, 4)].map(view => [
    {type: 'show', detail: {revision: 1, view}}, {type: 'show', detail: {revision: 2, view: null, pinned}},
  ].reduce(reduce, INITIAL_STATE).drawn.rows[0]);
  assert.equal(formatKnown(first.share), '…', 'its first token may begin several words');
  assert.match(formatKnown(ofTokens.share), /%$/);
  assert.match(shareLabel(first), /^The chance of .* is not known yet$/);
});

test('a pinned row that continues a growing one has the odds of its word', () => {
  const view = wordView(), [{ids, logprobs, pieces}] = view.branches;
  view.branches[0] = {...view.branches[0], ids: ids.slice(0, 2), logprobs: logprobs.slice(0, 2), pieces: pieces.slice(0, 2)};
  const pinned = {ids, logprobs, pieces, ended: false, healed: false}, [row] = shapeRows(view, {odds: 'words'}, pinned, true).rows;
  assert.deepEqual([row.pinned, row.extra, row.ids.length, row.share, row.next_word.text], [true, false, 4, {p: 0.3}, view.branches[0].next_word.text]);
});

test('a share is said to be of a word, and how well it is known', () => {
  const drawn = shapeRows(wordView(), {odds: 'words'});
  assert.match(summarySentence({state: 'settled'}, drawn), /^A row’s share is the chance that its part in bold comes next: a word \(exact to ±0\.1\u00a0%\), as the model gives it\./);
  const label = (word, letters) => shareLabel({share: {p: 0.12}, apart: 1, pieces: [], next_word: word}, letters).replaceAll('\u00a0', ' ');
  assert.equal(label({text: ' careful', tokens: 1, share: 0.12, error: 0}), '12 % chance of this next word, “careful”');
  assert.equal(label({text: 'mbed', tokens: 1, share: 0.12, error: 0}, 'cli'), '12 % chance of this next word, “climbed”');
  assert.equal(label({text: ',', tokens: 1, share: 0.12, error: 0}), '12 % chance of this next sign, comma');
  assert.equal(label({text: '\n\n', tokens: 1, share: 0.12, error: 0}), '12 % chance of these next signs, line break, line break');
  assert.equal(label({text: '', tokens: 0, share: 0.12, error: 0}), '12 % chance that the text ends here');
  const error = figure => formatError(figure).replaceAll('\u00a0', ' ');
  assert.deepEqual([0.0009, 0.001, 0.0012, 0.02].map(error), ['±0.1 %', '±0.1 %', '±0.2 %', '±2 %']);
  assert.deepEqual([0.0002, 0.0001, 0.00003, 0.00001, 1.2e-6, 0].map(error), ['±0.1 %', '±0.01 %', '±0.01 %', '±0.001 %', '±0.001 %', '±0.001 %'],
    'beside small shares a small error is told');
});
