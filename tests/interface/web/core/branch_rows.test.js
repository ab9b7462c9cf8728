import assert from 'node:assert/strict';
import {test} from 'node:test';

import {coversSettings, shapeRows, shapePinnedRow} from '../../../../interface/web/core/branch_rows.js';
import {withDice} from '../../../support/scripts/dice.js';
import {heated, nucleus, packed, randomRow} from '../../../support/scripts/rows.js';
import {ASKED, assertNear, likelyView, likeliest, oddsAfter, oddsOf, pathOf, rowAfter, textOf, viewOf} from '../../../support/scripts/views.js';

const near = (found, wanted, what) => assertNear(assert, found, wanted, what);
const idsOf = drawn => drawn.rows.map(({ids}) => ids);
const begins = (path, beginning) => beginning.every((id, index) => path[index] === id);

// For each path its shortest beginning that no other has; all of it where another has all of it.
const beginnings = paths => paths.map((path, index) => {
  const others = paths.filter((_, other) => other !== index);
  for (let length = 1; length < path.length; length += 1) if (!others.some(other => begins(other, path.slice(0, length)))) return path.slice(0, length);
  return path;
});

// The mass of all texts that begin as one of these does.
function massOf(found, temperature, topP) {
  const alone = found.filter(own => !found.some(other => other.length < own.length && begins(own, other)));
  return [...new Set(alone.map(String))]
    .reduce((sum, key) => sum + oddsOf(key.split(',').map(Number), temperature, topP), 0);
}

// Paths that share beginnings, some of them the beginning of another.
function randomPaths(dice) {
  const paths = Array.from({length: 1 + dice.upTo(5)}, () => {
    const first = dice.among(likeliest([], 3)), second = dice.among(likeliest([first], 2));
    return pathOf(dice.chance(0.5) ? [first] : [first, second], 1 + dice.upTo(3)).slice(0, 4);
  });
  return [...new Map(paths.map(path => [String(path), path])).values()];
}

test('shares, paths and coverage are those of whole rows, under any temperature and top-p', () => withDice(40, dice => {
  const paths = randomPaths(dice), view = viewOf(paths, {k: paths.length, depth: 4, mode: 'forks'});
  const temperature = dice.among([1, 0.7, 1.4]), topP = dice.among([1, 0.6]);
  const drawn = shapeRows(view, {temperature, top_p: topP}), own = beginnings(paths);
  assert.equal(drawn.rows.length, paths.length);
  for (const row of drawn.rows) {
    const index = paths.findIndex(path => String(path) === String(row.ids));
    near(row.share.p, oddsOf(own[index], temperature, topP), 'share');
    near(row.path.p, oddsOf(row.ids, temperature, topP), 'path');
    assert.equal(row.apart, own[index].length);
    row.pieces.forEach((piece, place) => {
      assert.deepEqual([piece.ids, piece.tokens, piece.text, piece.unsaid], [[row.ids[place]], place + 1, textOf(row.ids[place]), 0]);
      near(piece.odds.p, oddsAfter(row.ids.slice(0, place), row.ids[place], temperature, topP), 'piece');
      near(piece.upTo.p, oddsOf(row.ids.slice(0, place + 1), temperature, topP), 'up to the piece');
    });
  }
  const held = massOf(own, temperature, topP);
  near(drawn.coverage.p, held, 'coverage');
  near(1 - drawn.rest.p, held, 'without the rest');
  const shares = drawn.rows.map(({share}) => share.p);
  assert.deepEqual(shares, shares.toSorted((one, other) => other - one));
  assert.equal(drawn.firsts, own.every(({length}) => length === 1));
  assert.equal(drawn.count, paths.length);
}));

test('at temperature 1 and top-p 1 the odds are raw, whatever is packed', () => {
  const view = {...likelyView(2, 3), nodes: []}, drawn = shapeRows(view);
  near(drawn.rows[0].path.p, oddsOf(drawn.rows[0].ids), 'path');
  assert.equal(drawn.rows[0].raw, false);
});

test('without packed nodes, other temperatures show raw odds and say so', () => {
  const view = {...likelyView(2, 3), nodes: undefined}, drawn = shapeRows(view, {temperature: 0.5});
  near(drawn.rows[0].path.p, oddsOf(drawn.rows[0].ids), 'path');
  assert.equal(drawn.rows[0].raw, true);
});

test('a single unpacked node shows raw odds', () => {
  const view = likelyView(1, 3);
  view.nodes[1] = packed(rowAfter(view.branches[0].ids.slice(0, 1)));
  view.branches[0].at = [0, null, 2];
  const [row] = shapeRows(view, {temperature: 0.5}).rows;
  near(row.figures[0].p, oddsOf(row.ids.slice(0, 1), 0.5), 'the first');
  near(row.figures[1].p, Math.exp(row.branch.logprobs[1]), 'the second');
  assert.deepEqual([row.raw, row.figures[0].raw], [true, undefined]);
});

test('unnamed settings are those of the view\'s request', () => {
  const view = likelyView(2, 3, {temperature: 0.5});
  const {rows, wanted} = shapeRows(view);
  near(rows[0].share.p, oddsOf(rows[0].ids.slice(0, 1), 0.5), 'share');
  assert.deepEqual(wanted, {order: 'share', ...view.asked});
  assert.equal(shapeRows(view, {order: 'path'}).wanted.order, 'path');
});

test('at a low temperature what the rows leave is a bound where packed sums are not exact enough to tell', () => {
  for (const temperature of [0.1, 0.2, 0.5]) {
    const view = likelyView(5, 1), drawn = shapeRows(view, {temperature});
    const left = 1 - massOf(idsOf(drawn), temperature, 1);
    assert.ok(drawn.rest.bound ? drawn.coverage.atLeast && left <= drawn.rest.p : Math.abs(drawn.rest.p - left) < 0.002, `${temperature}: ${left}`);
  }
  const cold = shapeRows(likelyView(5, 1), {temperature: 0.1});
  assert.ok(cold.rest.bound && cold.rest.p > 0.0005 && cold.rest.p < 0.002, 'not 0, and no figure of its own');
  const greedy = shapeRows(likelyView(5, 1), {temperature: 0});
  assert.deepEqual([greedy.coverage.p, greedy.coverage.atLeast], [1, undefined], 'temperature 0 is exact');
});

test('a top-p that includes tokens that are not kept gives bounds for share, coverage and the rest', () => {
  const drawn = shapeRows(likelyView(2, 2), {temperature: 2, top_p: 0.999});
  assert.ok(drawn.rows[0].share.bound && drawn.coverage.bound && drawn.rest.atLeast);
  const known = shapeRows(likelyView(2, 2), {top_p: 0.5});
  assert.ok(!known.rows[0].share.bound && !known.coverage.bound && !known.rest.atLeast);
});

test('rows are ordered by share, by the whole row, or by the alphabet', () => {
  const view = likelyView(12), byOdds = depth => idsOf(shapeRows(view)).toSorted((one, other) => oddsOf(other.slice(0, depth)) - oddsOf(one.slice(0, depth)));
  assert.notDeepEqual(byOdds(1), byOdds(5));
  assert.deepEqual(idsOf(shapeRows(view, {order: 'share'})), byOdds(1));
  assert.deepEqual(idsOf(shapeRows(view, {order: 'path'})), byOdds(5));
  const texts = drawn => drawn.rows.map(({pieces}) => pieces.map(({text}) => text).join(''));
  assert.deepEqual(texts(shapeRows(view, {order: 'alphabet'})), texts(shapeRows(view)).toSorted(new Intl.Collator().compare));
});

test('alphabetical order compares the whole text of a row', () => {
  const view = viewOf(likeliest([], 2).map(id => pathOf([id], 2)), {k: 2, depth: 2}), [first, second] = view.branches;
  [first.pieces[0].text, first.pieces[1].text, second.pieces[0].text, second.pieces[1].text] = ['a', 'b', 'aa', ''];
  assert.deepEqual(idsOf(shapeRows(view, {order: 'alphabet'})), [second.ids, first.ids]);
  [first.pieces[1].text, second.pieces[0].text] = ['a', 'ab'];
  assert.deepEqual(idsOf(shapeRows(view, {order: 'alphabet'})), [first.ids, second.ids]);
});

test('alphabetical order ignores white space before a row', () => {
  const view = likelyView(2, 1);
  [view.branches[0].pieces[0].text, view.branches[1].pieces[0].text] = ['b', ' c'];
  assert.deepEqual(idsOf(shapeRows(view, {order: 'alphabet'})), view.branches.map(({ids}) => ids));
  [view.branches[0].pieces[0].text, view.branches[1].pieces[0].text] = [' b', 'a'];
  assert.deepEqual(idsOf(shapeRows(view, {order: 'alphabet'})), view.branches.map(({ids}) => ids).toReversed());
});

test('rows that top-p excludes are ordered by their raw odds', () => {
  const view = viewOf(likeliest([], 4).toReversed().map(id => pathOf([id], 3)), {k: 4, depth: 3, mode: 'forks'});
  for (const [order, depth] of [['share', 1], ['path', 3]]) {
    const found = idsOf(shapeRows(view, {temperature: 0, order})).slice(1);
    assert.deepEqual(found, found.toSorted((one, other) => oddsOf(other.slice(0, depth)) - oddsOf(one.slice(0, depth))), order);
  }
});

test('a shortened row has the odds of its remaining tokens, in any order', () => {
  const view = likelyView(12), cut = shapeRows(view, {depth: 2, temperature: 0, order: 'path'}).rows;
  const found = cut.slice(1).map(({ids}) => ids);
  assert.deepEqual(found, found.toSorted((one, other) => oddsOf(other) - oddsOf(one)));
  shapeRows(view, {depth: 2}).rows.forEach(({ids, path, rawPath}) => {
    near(path.p, oddsOf(ids), 'path');
    near(Math.exp(rawPath), oddsOf(ids), 'raw path');
  });
});

test('a smaller number and depth give fewer and shorter rows, and the others include the missing rows', () => {
  const view = likelyView(), drawn = shapeRows(view, {k: 3, depth: 2});
  assert.deepEqual(idsOf(drawn), view.branches.slice(0, 3).map(({ids}) => ids.slice(0, 2)));
  assert.deepEqual(drawn.rows.map(({pieces}) => pieces.length), [2, 2, 2]);
  const others = drawn.others.map(({ids}) => ids[0]);
  assert.deepEqual(others, likeliest([], 13).slice(3));
  assert.deepEqual(drawn.others[0], {
    ids: view.branches[3].ids.slice(0, 1), logprobs: view.branches[3].logprobs.slice(0, 1), at: [0],
    text: textOf(view.branches[3].ids[0]), end: false, odds: drawn.others[0].odds, raw: view.branches[3].logprobs[0],
  });
  near(drawn.others[0].odds.p, oddsOf(view.branches[3].ids.slice(0, 1)), 'of the other');
  assert.equal(drawn.rows[0].ended, false);
});

test('rows of a tree are neither fewer nor shorter', () => {
  for (const mode of ['forks', 'best_first']) {
    assert.deepEqual(idsOf(shapeRows(likelyView(3, 3, {mode}), {k: 1, depth: 1})), likelyView(3, 3).branches.map(({ids}) => ids));
  }
  assert.deepEqual(idsOf(shapeRows(likelyView(3, 3, {mode: 'every_level'}), {k: 1, depth: 2})), likelyView(3, 2).branches.map(({ids}) => ids));
});

test('a branch without tokens is not drawn', () => {
  const view = likelyView(2, 2);
  view.branches.unshift({ids: [], logprobs: [], at: [], pieces: [], ended: false, healed: false});
  const drawn = shapeRows(view);
  assert.deepEqual([idsOf(drawn), drawn.count], [view.branches.slice(1).map(({ids}) => ids), 2]);
  const none = shapeRows({...view, branches: view.branches.slice(0, 1)});
  assert.ok(none.rows.length === 0 && none.others.every(({ids}) => ids.length));
});

test('rows end with the word, the clause, the sentence or the line that is asked for', () => {
  const view = likelyView(1, 5);
  view.branches[0].pieces.forEach((piece, index) => { piece.ends = [0, 1, 0, 2, 4][index]; });
  const lengths = Object.fromEntries(['word', 'clause', 'sentence', 'line', 'tokens']
    .map(until => [until, shapeRows(view, {until, depth: 3}).rows[0].ids.length]));
  assert.deepEqual(lengths, {word: 2, clause: 4, sentence: 5, line: 5, tokens: 3});
  assert.equal(shapeRows(view, {until: 'word'}).rows[0].open, false);
});

test('a row that does not reach the requested end is open, and an ended row is not', () => {
  const view = viewOf([pathOf(likeliest([], 1), 3)], {k: 1});
  assert.equal(shapeRows(view, {until: 'sentence'}).rows[0].open, true);
  assert.equal(shapeRows(view, {until: 'sentence'}).rows[0].ids.length, 3);
  assert.equal(shapeRows(view, {until: 'word'}).rows[0].open, false);
  assert.equal(shapeRows(view, {until: 'tokens'}).rows[0].open, false);
  const ended = viewOf([pathOf(likeliest([], 1), 3)], {k: 1, ended: [0]});
  assert.equal(shapeRows(ended, {until: 'sentence'}).rows[0].open, false);
});

test('an open row that has as many tokens as it may have says how many, and others do not', () => {
  const limitOf = (asked, settings = {until: 'sentence'}) => shapeRows(viewOf([pathOf(likeliest([], 1), 3)], {k: 1, ...asked}), settings).rows[0].limit;
  assert.equal(limitOf({until: 'sentence', depth: 3}), 3);
  assert.equal(limitOf({until: 'sentence', depth: 4}), 0);
  assert.equal(limitOf({until: 'sentence', depth: 2, healed: true}), 2);
  assert.equal(limitOf({until: 'sentence', depth: 3, healed: true}), 0);
  assert.equal(limitOf({until: 'sentence', depth: 3, ended: [0]}), 0);
  assert.equal(limitOf({until: 'word', depth: 3}, {until: 'word'}), 0, 'it has reached its end');
  assert.equal(limitOf({until: 'tokens', depth: 3}, {oneWord: true}), 0);
  assert.equal(limitOf({until: 'tokens', depth: 3}, {}), 0);
});

test('a row that would repeat itself says so where all of it is shown, and needs no further tokens', () => {
  const view = viewOf([pathOf(likeliest([], 1), 3)], {k: 1, depth: 8, until: 'sentence'});
  view.branches[0].repeats = true;
  const [row] = shapeRows(view, {until: 'sentence'}).rows;
  assert.deepEqual([row.repeats, row.open, row.limit], [true, false, 0]);
  assert.ok(coversSettings(view, {until: 'tokens', depth: 6}), 'it would not grow further');
  assert.equal(shapeRows(view, {until: 'tokens', depth: 2}).rows[0].repeats, false, 'its end is not shown');
  assert.equal(shapeRows(view, {until: 'tokens', depth: 3}).rows[0].repeats, true);
  view.branches[0].repeats = undefined;
  assert.deepEqual([shapeRows(view).rows[0].repeats, coversSettings(view, {until: 'tokens', depth: 6})], [false, false]);
});

test('where a click takes one word a row holds its first word, as one piece', () => {
  const view = likelyView(1, 4);
  view.branches[0].pieces.forEach((piece, index) => { piece.ends = Number(index === 2); });
  const [row] = shapeRows(view, {oneWord: true, depth: 1}).rows, ids = view.branches[0].ids.slice(0, 3);
  assert.deepEqual(row.ids, ids);
  const [piece] = row.pieces;
  assert.deepEqual([row.pieces.length, piece.text, piece.tokens, piece.ends, piece.ids, piece.unsaid], [1, ids.map(textOf).join(''), 3, 1, ids, 0]);
  near(piece.odds.p, oddsOf(ids), 'of the word');
  assert.deepEqual(piece.upTo, piece.odds);
  view.branches[0].pieces.forEach(piece => { piece.ends = 0; });
  assert.equal(shapeRows(view, {oneWord: true}).rows[0].open, true);
  [view.branches[0].pieces[0].ends, view.branches[0].pieces[1].ends] = [0, 1];
  assert.deepEqual(shapeRows(view, {oneWord: true}).rows[0].pieces.map(({text}) => text), [ids.slice(0, 2).map(textOf).join('')]);
  const one = likelyView(1, 1), [alone] = shapeRows(one, {oneWord: true}).rows;
  assert.deepEqual([alone.pieces.length, alone.pieces[0].text], [1, textOf(one.branches[0].ids[0])]);
});

test('a row that is cut within a character drops that piece', () => {
  const view = likelyView(1, 4), [branch] = view.branches;
  branch.pieces = [{text: ' a', tokens: 1, ends: 0}, {text: '🙂', tokens: 3, ends: 1}, {text: '!', tokens: 4, ends: 3}];
  const [cut] = shapeRows(view, {depth: 2}).rows;
  assert.deepEqual([cut.pieces.map(({text}) => text), cut.unsaid, cut.ids.length], [[' a'], 1, 2]);
  const [row] = shapeRows(view).rows;
  assert.deepEqual(row.pieces.map(({ids}) => ids), [branch.ids.slice(0, 1), branch.ids.slice(1, 3), branch.ids.slice(3)]);
  assert.deepEqual([row.unsaid, row.pieces.map(({unsaid}) => unsaid)], [0, [0, 0, 0]]);
  near(row.pieces[1].odds.p, oddsOf(branch.ids.slice(0, 3)) / oddsOf(branch.ids.slice(0, 1)), 'of the character');
});

test('tokens without text before an ASCII piece are counted', () => {
  const view = likelyView(1, 4), [branch] = view.branches;
  branch.pieces = [{text: ' a', tokens: 1, ends: 0}, {text: 'b', tokens: 4, ends: 1}];
  assert.deepEqual(shapeRows(view).rows[0].pieces.map(({unsaid}) => unsaid), [0, 2]);
  branch.pieces[1].text = '\0\x7f';
  assert.equal(shapeRows(view).rows[0].pieces[1].unsaid, 2);
  for (const text of ['é', 'a\x80', '\x80a']) {
    branch.pieces[1].text = text;
    assert.equal(shapeRows(view).rows[0].pieces[1].unsaid, 0, JSON.stringify(text));
  }
});

test('a one-word row keeps the count of tokens without text', () => {
  const view = likelyView(1, 3);
  view.branches[0].pieces = [{text: 'b', tokens: 3, ends: 1}];
  assert.equal(shapeRows(view, {oneWord: true}).rows[0].pieces[0].unsaid, 2);
});

test('the last token of a row that ended is its ending, with its odds', () => {
  const path = pathOf(likeliest([], 1), 3), view = viewOf([path], {k: 1, ended: [0]});
  const [row] = shapeRows(view).rows;
  assert.deepEqual([row.ended, row.pieces.length, row.unsaid], [true, 2, 0]);
  near(row.end.p, oddsOf(path) / oddsOf(path.slice(0, 2)), 'of the ending');
  const [cut] = shapeRows(view, {depth: 2}).rows;
  assert.deepEqual([cut.ended, cut.end, cut.pieces.length], [false, null, 2]);
});

// What is left of a row's pieces where the first token inserts nothing: it is the typed one.
const withTyped = branch => ({...branch, pieces: branch.pieces.slice(1)});

for (const mode of ['likely', 'sampled', 'every_level', 'forks', 'best_first', 'diverse', 'surprising']) {
  test(`a row that continues a word has as many buttons as its depth says: ${mode}`, () => {
    const view = viewOf(likeliest([], 3).map(id => pathOf([id], 4)), {k: 3, depth: 3, mode, healed: true});
    view.branches[1] = withTyped(view.branches[1]);
    view.branches[2].healed = false;
    view.branches[2].ids.pop();
    const {rows} = shapeRows(view, {order: 'none'});
    const found = view.branches.map(branch => rows.find(row => row.branch === branch));
    assert.deepEqual(found.map(({pieces, ids, healed}) => [pieces.length, ids.length, healed]), [[3, 3, true], [3, 4, true], [3, 3, false]]);
  });
}

test('rows of a tree that continue a word are not cut before the token that sets them apart', () => {
  const first = likeliest([], 1)[0], [one, other] = likeliest([first, 1, 2], 2), paths = [[first, 1, 2, one], [first, 1, 2, other]];
  const {rows} = shapeRows(viewOf(paths, {k: 2, depth: 3, mode: 'forks', healed: true}));
  assert.deepEqual(rows.map(({ids}) => ids.length), [4, 4]);
});

test('a healed token that replaces typed text is not counted as a token without text', () => {
  const path = pathOf(likeliest([], 1), 3), view = viewOf([path], {k: 1, healed: true});
  view.branches[0].pieces = [{text: 'b', tokens: 2, ends: 0}, {text: 'c', tokens: 3, ends: 1}];
  assert.deepEqual(shapeRows(view).rows[0].pieces.map(({unsaid}) => unsaid), [0, 0]);
  view.branches[0].pieces = [{text: 'b', tokens: 3, ends: 0}];
  assert.equal(shapeRows(view).rows[0].pieces[0].unsaid, 1);
  view.branches[0].pieces = [{text: 'a', tokens: 1, ends: 0}, {text: 'b', tokens: 3, ends: 0}];
  assert.equal(shapeRows(view).rows[0].pieces[1].unsaid, 1);
});

test('a healed row that ends at once has no tokens without text', () => {
  const path = pathOf(likeliest([], 1), 2), view = viewOf([path], {k: 1, healed: true, ended: [0]});
  view.branches[0].pieces = [];
  const [row] = shapeRows(view).rows;
  assert.deepEqual([row.ended, row.unsaid, row.pieces], [true, 0, []]);
  const plain = viewOf([path.slice(0, 1)], {k: 1, ended: [0]});
  assert.equal(shapeRows(plain).rows[0].unsaid, 0);
  const open = viewOf([path], {k: 1, healed: true});
  open.branches[0].pieces = [];
  assert.equal(shapeRows(open).rows[0].unsaid, 2);
});

test('the typed characters are part of the drawn view', () => {
  assert.equal(shapeRows({...likelyView(1, 1), given: 'lig'}).given, 'lig');
  assert.equal(shapeRows({...likelyView(1, 1), given: undefined}).given, '');
});

// What is left of a branch that was accepted up to some of its tokens.
const leftOf = (branch, tokens, nodes) => ({
  ids: branch.ids.slice(tokens), logprobs: branch.logprobs.slice(tokens), ended: branch.ended, healed: false, nodes, at: branch.at?.slice(tokens),
  pieces: branch.pieces.filter(piece => piece.tokens > tokens).map(piece => ({...piece, tokens: piece.tokens - tokens})),
});

test('a pinned row is first, does not count, and is marked as extra', () => {
  const view = likelyView(), plain = shapeRows(view), strange = leftOf(viewOf([pathOf([17, 18], 4)]).branches[0], 0);
  const drawn = shapeRows(view, {}, strange);
  assert.deepEqual(idsOf(drawn), [strange.ids, ...idsOf(plain)]);
  assert.deepEqual(drawn.rows.map(({pinned, extra}) => [pinned, extra]), [[true, true], ...Array(5).fill([false, false])]);
  assert.deepEqual([drawn.coverage, drawn.count, drawn.rest], [plain.coverage, 5, plain.rest]);
  near(drawn.rows[0].share.p, Math.exp(strange.logprobs[0]), 'share of the pinned row');
});

test('a pinned row has the share of what sets it apart from all others', () => {
  const [first] = likeliest([], 1), view = viewOf([pathOf([first], 3)], {k: 1, depth: 3}), second = likeliest([first], 3)[2];
  const pinned = leftOf(viewOf([[first, second, 1]]).branches[0], 0), [top, other] = shapeRows(view, {}, pinned).rows;
  near(top.share.p, Math.exp(pinned.logprobs[0] + pinned.logprobs[1]), 'share of both tokens');
  near(other.share.p, oddsOf([first]), 'share of the other row');
});

test('a row that continues the pinned one is the pinned row', () => {
  const view = likelyView(), plain = shapeRows(view), pinned = leftOf(view.branches[3], 0);
  pinned.ids.length = pinned.pieces.length = 3;
  const drawn = shapeRows(view, {}, pinned);
  assert.deepEqual(idsOf(drawn), [3, 0, 1, 2, 4].map(index => view.branches[index].ids));
  assert.deepEqual(drawn.rows.map(({pinned, extra}) => [pinned, extra]), [[true, false], ...Array(4).fill([false, false])]);
  assert.deepEqual([drawn.coverage, drawn.count], [plain.coverage, 5]);
  for (const index of [0, 2]) {
    const [top, ...others] = shapeRows(view, {}, leftOf(view.branches[index], 0)).rows;
    assert.deepEqual([top.branch === view.branches[index], others.length], [true, 4]);
  }
});

test('while rows grow, the pinned row replaces a shorter one of the same path; later it is extra', () => {
  const view = likelyView(5, 1), full = likelyView(), pinned = leftOf(full.branches[2], 0);
  view.asked.depth = 5;
  const growing = shapeRows(view, {}, pinned, true);
  assert.deepEqual([growing.rows.length, growing.rows[0].ids, growing.rows[0].pinned, growing.rows[0].extra], [5, pinned.ids, true, false]);
  const grown = shapeRows(view, {}, pinned);
  assert.deepEqual([grown.rows.length, grown.rows[0].ids, grown.rows[0].extra], [6, pinned.ids, true]);
});

test('a row of another path is not replaced by the pinned one while rows grow', () => {
  const view = likelyView(2, 2), pinned = leftOf(viewOf([pathOf([17], 4)]).branches[0], 0);
  assert.equal(shapeRows(view, {}, pinned, true).rows.length, 3);
});

test('a pinned row shows the odds of its own nodes, else raw ones', () => {
  const view = likelyView(2, 4), [branch] = view.branches, wanted = {...ASKED, temperature: 0.5};
  const own = leftOf(branch, 1);
  near(shapePinnedRow(own, wanted).path.p, Math.exp(own.logprobs.reduce((sum, one) => sum + one, 0)), 'raw');
  assert.equal(shapePinnedRow(own, wanted).raw, true);
  const nodes = branch.at.slice(1).map(index => view.nodes[index]), brought = {...own, nodes, at: nodes.map((_, index) => index)};
  near(shapePinnedRow(brought, wanted).path.p, oddsOf(branch.ids, 0.5) / oddsOf(branch.ids.slice(0, 1), 0.5), 'heated');
  assert.equal(shapePinnedRow(brought, wanted).nodes, nodes);
});

test('a pinned row is shortened like other rows', () => {
  const pinned = leftOf(likelyView(1, 5).branches[0], 1);
  assert.equal(shapePinnedRow(pinned, {...ASKED, depth: 2}).ids.length, 2);
  const {share, pinned: isPinned, extra, apart} = shapePinnedRow(pinned, ASKED);
  assert.deepEqual([isPinned, extra, apart], [true, true, 1]);
  near(share.p, Math.exp(pinned.logprobs[0]), 'share');
});

test('a view covers fewer and shorter rows, another order and other odds', () => {
  const view = likelyView();
  assert.ok(coversSettings(view, {}) && coversSettings(view, {k: 3, depth: 2, temperature: 0.3, top_p: 0.5, order: 'path', seed: 9}));
  assert.ok(coversSettings(view, {k: 5, depth: 5, mode: 'likely', until: 'tokens'}));
  assert.ok(!coversSettings(view, {k: 6}) && !coversSettings(view, {depth: 6}) && !coversSettings(view, {mode: 'sampled'}));
});

test('where the last typed token is re-opened, a view covers any temperature and top-p', () => {
  const view = {...likelyView(), given: ' a'};
  for (const other of [{temperature: 0.5}, {top_p: 0.9}, {temperature: 2, top_p: 0.5}]) assert.ok(coversSettings(view, other), JSON.stringify(other));
  for (const other of [{k: 6}, {mode: 'sampled'}]) assert.ok(!coversSettings(view, other), JSON.stringify(other));
});

// Branches that begin with a token that replaces the typed one, or with the typed one and a token after it, and their odds.
function replacingView(dice, {changed = false} = {}) {
  const typed = 7, starting = [typed, 11, 12, 13, 14, 15], allowed = new Set(starting);
  const raw = randomRow(dice, {vocabulary: 80}), sum = Math.log(starting.reduce((all, id) => all + Math.exp(raw[id]), 0));
  const first = raw.map((logprob, id) => (allowed.has(id) ? logprob - sum : -Infinity)), after = randomRow(dice, {vocabulary: 80});
  const ways = [
    ...starting.slice(1).map(id => ({ids: [id], logprobs: [first[id]], at: [0]})),
    ...after.map((logprob, id) => ({ids: [typed, id], logprobs: [first[typed], logprob], at: [0, 1]})),
  ];
  const total = ({logprobs}) => logprobs.reduce((all, one) => all + one, 0);
  ways.sort((one, other) => total(other) - total(one));
  const branch = ({ids, logprobs, at}) => ({
    ids, logprobs, at, pieces: [{text: String(ids.at(-1)), tokens: ids.length, ends: 1}], ended: false, healed: true, repeats: false,
  });
  const rest = ({ids, logprobs, at}) => ({ids, logprobs, at, text: String(ids.at(-1)), end: false});
  const nodes = [packed(first.filter(Number.isFinite)), packed(after)];
  const view = {
    branches: ways.slice(0, 5).map(branch), rest: ways.slice(5, 20).map(rest), nodes, given: ' t', seen_from: 0, asked: {...ASKED},
    typed: {id: typed, logprob: first[typed], at: [0, 1]},
  };
  if (changed) {
    view.nodes.push(nodes[0]);
    view.branches[0] = {...view.branches[0], at: [2, ...view.branches[0].at.slice(1)]};
  }
  return {view, joint: ways.map(total), ways, first, after};
}

test('temperature and top-p act on all ways to go on from the typed text together, and keep their order', () => withDice(30, dice => {
  const {view, joint, ways} = replacingView(dice, {changed: dice.chance(0.5)});
  for (const [temperature, topP] of [[0.5, 1], [2, 1], [1.4, 0.7], [1, 0.5], [0, 1]]) {
    const {odds, margin} = nucleus(joint, temperature, topP);
    if (margin < 0.01) continue;
    const drawn = shapeRows(view, {temperature, top_p: topP});
    assert.deepEqual(idsOf(drawn), view.branches.map(({ids}) => ids), 'in the order of the odds at temperature 1');
    drawn.rows.forEach((row, index) => {
      near(row.share.p, odds[index], `share at ${temperature}, ${topP}`);
      near(row.pieces[0].odds.p, odds[index], 'piece');
    });
    near(drawn.coverage.p, odds.slice(0, 5).reduce((all, one) => all + one, 0), 'coverage');
    for (const other of drawn.others) near(other.odds.p, odds[ways.findIndex(({ids}) => String(ids) === String(other.ids))], 'everything else');
  }
}));

test('a view of an earlier version, which does not say which token is re-opened, has the odds of each token by itself', () => withDice(5, dice => {
  const {view, first, after} = replacingView(dice), {typed, ...earlier} = view;
  const replacing = heated(first, 2), following = heated(after, 2);
  for (const {ids, share} of shapeRows(earlier, {temperature: 2}).rows)
    near(share.p, ids[0] === typed.id ? replacing[typed.id] * following[ids[1]] : replacing[ids[0]], 'share');
}));

test('a view covers the settings it was drawn with', () => {
  const view = likelyView(5, 5, {mode: 'sampled', temperature: 0.8, top_p: 0.9, seed: 3});
  assert.ok(coversSettings(view, {k: 2, depth: 3, temperature: 0.8, top_p: 0.9, seed: 3}));
  for (const other of [{temperature: 1}, {top_p: 1}, {seed: 4}, {k: 6}]) assert.ok(!coversSettings(view, other), JSON.stringify(other));
});

test('a tree covers its own rows alone, those of every level also shorter ones that still part', () => {
  for (const mode of ['forks', 'best_first']) {
    const view = likelyView(5, 5, {mode});
    assert.ok(coversSettings(view, {temperature: 0.2, order: 'alphabet'}));
    assert.ok(!coversSettings(view, {depth: 3}) && !coversSettings(view, {k: 3}) && !coversSettings(view, {k: 6}) && !coversSettings(view, {until: 'word'}));
  }
  const firsts = likeliest([], 2), paths = firsts.flatMap(first => likeliest([first], 2).map(second => pathOf([first, second], 5)));
  const levels = viewOf(paths, {k: 2, mode: 'every_level'});
  assert.ok(coversSettings(levels, {depth: 3}) && coversSettings(levels, {depth: 5}));
  assert.ok(!coversSettings(levels, {depth: 2}) && !coversSettings(levels, {depth: 6}) && !coversSettings(levels, {k: 1}));
  assert.ok(coversSettings(viewOf([], {mode: 'every_level'}), {depth: 1}));
});

test('a row of “best first” that was not followed to its depth says so, once the search has ended', () => {
  const first = pathOf(likeliest([], 1), 5), [ids, ...others] = [likeliest([], 2)[1], first];
  const view = viewOf([...others, pathOf([ids], 2)], {k: 2, depth: 5, mode: 'best_first'}), marks = (...more) => shapeRows(view, ...more).rows.map(({unfollowed}) => unfollowed);
  assert.deepEqual(marks(), [false, true]);
  assert.deepEqual(marks({}, null, true), [false, false], 'while rows grow');
  view.branches[1].repeats = true;
  assert.deepEqual(marks(), [false, false]);
  const likely = viewOf([...others, pathOf([ids], 2)], {k: 2, depth: 5});
  assert.deepEqual(shapeRows(likely).rows.map(({unfollowed}) => unfollowed), [false, false]);
});

test('rows up to an end are covered by longer rows that reach it or have ended', () => {
  const view = likelyView(2, 3);
  view.branches.forEach(({pieces}) => pieces.forEach((piece, index) => { piece.ends = [0, 2, 0][index]; }));
  assert.ok(coversSettings(view, {until: 'word'}) && coversSettings(view, {until: 'clause'}) && !coversSettings(view, {until: 'sentence'}));
  view.branches[1].ended = true;
  assert.ok(!coversSettings(view, {until: 'sentence'}) && !coversSettings(view, {until: 'line'}));
  view.branches[0].pieces[2].ends = 4;
  assert.ok(coversSettings(view, {until: 'sentence'}) && coversSettings(view, {until: 'line'}));
  view.branches[1].ended = false;
  assert.ok(!coversSettings(view, {until: 'sentence'}) && coversSettings(view, {until: 'sentence', k: 1}));
});

test('a view up to an end covers the same end at any depth, and tokens as far as its rows reach', () => {
  const view = likelyView(2, 3, {until: 'word', depth: 40});
  assert.ok(coversSettings(view, {until: 'word', depth: 41}));
  assert.ok(coversSettings(view, {until: 'tokens', depth: 3}) && !coversSettings(view, {until: 'tokens', depth: 4}));
  view.branches[0].ended = true;
  assert.ok(!coversSettings(view, {until: 'tokens', depth: 4}) && coversSettings(view, {until: 'tokens', depth: 4, k: 1}));
  const healed = viewOf([pathOf(likeliest([], 1), 3)], {k: 1, until: 'word', healed: true});
  assert.ok(coversSettings(healed, {until: 'tokens', depth: 3}) && !coversSettings(healed, {until: 'tokens', depth: 4}));
  healed.branches[0] = withTyped(healed.branches[0]);
  assert.ok(coversSettings(healed, {until: 'tokens', depth: 2}) && !coversSettings(healed, {until: 'tokens', depth: 3}));
});

test('banned tokens have odds only as the model gives them', () => {
  const view = {...viewOf([pathOf(likeliest([], 1), 2)], {k: 1}), without: [{id: 7, text: ' from', probability: 0.37}]};
  assert.deepEqual(shapeRows(view).without, [{text: ' from', odds: {p: 0.37}}]);
  assert.deepEqual(shapeRows(view, {temperature: 0.5}).without, [{text: ' from', odds: null}]);
  assert.deepEqual(shapeRows(view, {top_p: 0.9}).without, [{text: ' from', odds: null}]);
  assert.deepEqual(shapeRows(viewOf([pathOf(likeliest([], 1), 2)], {k: 1})).without, []);
});

test('banned tokens that are not likely here are named by the page that knows them', () => {
  const view = {...viewOf([pathOf(likeliest([], 1), 2)], {k: 1, banned: 2}), without: [{id: 7, text: ' from', probability: 0.37}]};
  const named = texts => shapeRows(view, {banned_texts: texts}).without;
  assert.deepEqual(named([' from', ' a']), [{text: ' from', odds: {p: 0.37}}, {text: ' a', odds: null}]);
  assert.deepEqual(named([' from', '']), [{text: ' from', odds: {p: 0.37}}]);
  assert.deepEqual(named([' from', ' a', ' the']), [{text: ' from', odds: {p: 0.37}}], 'the view is from before a ban');
});

test('banned tokens have no odds where they are unlikely, and are not named where they have no text', () => {
  const without = [{id: 7, text: ' from', probability: 0.001}, {id: 8, text: ' to', probability: 0.00099}, {id: 9, text: '', probability: 0.5}];
  const view = {...viewOf([pathOf(likeliest([], 1), 2)], {k: 1}), without};
  for (const settings of [{}, {temperature: 0.5}]) assert.deepEqual(shapeRows(view, settings).without.map(({text}) => text), [' from', ' to']);
  assert.deepEqual(shapeRows(view).without.map(({odds}) => odds), [{p: 0.001}, null]);
});

test('the pieces of a word and of a change are marked, and such rows are never cut', () => {
  const paths = [pathOf(likeliest([], 1), 4), pathOf(likeliest([], 2).slice(1), 4)], view = viewOf(paths, {k: 2, depth: 4, mode: 'likely'});
  view.branches[0].word = [1, 3];
  view.branches[1].edited = [0, 1];
  const [first, second] = [0, 1].map(index => shapeRows(view, {depth: 1}).rows.find(row => row.branch === view.branches[index]));
  const covers = (row, start, end) => row.pieces.map(({tokens, ids}) => tokens > start && tokens - ids.length < end);
  assert.deepEqual(first.pieces.map(piece => piece.isWord), covers(first, 1, 3));
  assert.deepEqual(second.pieces.map(piece => piece.isEdited), covers(second, 0, 1));
  assert.ok(first.pieces.some(piece => piece.isWord) && !first.pieces[0].isWord);
  assert.deepEqual([first.ids, second.ids], view.branches.map(branch => branch.ids));
});

test('in the order of shares a changed row stays in the place of the row that it replaces', () => {
  const view = viewOf([likeliest([], 3)[2], likeliest([], 1)[0], likeliest([], 2)[1]].map(path => pathOf([path], 2)), {k: 3, mode: 'likely'});
  const [last, first, middle] = view.branches;
  const shown = order => shapeRows(view, {order}).rows.map(({branch}) => branch);
  assert.deepEqual(shown('share'), [first, middle, last]);
  last.edited = [0, 1];
  assert.deepEqual(shown('share'), [last, first, middle]);
  assert.deepEqual(shown('path'), [first, middle, last]);
});

test('a view is of one word to go towards or to avoid, and a search is not cut to fewer rows', () => {
  const paths = [pathOf(likeliest([], 1), 4), pathOf(likeliest([], 2).slice(1), 4)], view = viewOf(paths, {k: 2, depth: 4, mode: 'likely'});
  assert.ok(coversSettings(view, {towards: '', avoid: ''}));
  assert.ok(!coversSettings(view, {towards: 'sea'}));
  assert.ok(!coversSettings(view, {avoid: 'sea'}));
  view.asked.avoid = 'sea';
  assert.ok(coversSettings(view, {avoid: 'sea', k: 1}));
  assert.ok(!coversSettings(view, {avoid: ''}));
  Object.assign(view.asked, {avoid: undefined, towards: 'sea'});
  assert.ok(coversSettings(view, {towards: 'sea'}));
  assert.ok(!coversSettings(view, {towards: 'sea', k: 1}));
  assert.ok(!coversSettings(view, {towards: 'sea', depth: 2}));
  assert.equal(shapeRows(view, {towards: 'sea', k: 1}).rows.length, 2);
});

test('a row that leads to a word is set apart by the whole path to it', () => {
  const paths = [pathOf(likeliest([], 1), 4), pathOf(likeliest([], 2).slice(1), 3)], view = viewOf(paths, {k: 2, depth: 4, mode: 'likely'});
  for (const branch of view.branches) branch.word = [branch.ids.length - 1, branch.ids.length];
  const drawn = shapeRows(view);
  for (const row of drawn.rows) near(row.share.p, oddsOf(row.ids, 1, 1), 'share');
  near(drawn.coverage.p, oddsOf(paths[0], 1, 1) + oddsOf(paths[1], 1, 1), 'coverage');
});

test('where the rows hold all that top-p leaves, their shares have a sum of 1 and nothing else is left', () => {
  for (const [temperature, topP] of [[1.5, 0.3], [1.5, 0.5], [1.5, 0.7], [2, 0.5]]) {
    const {coverage, rest, rows} = shapeRows(likelyView(12, 2), {temperature, top_p: topP});
    assert.ok(Math.abs(rows.reduce((sum, {share}) => sum + share.p, 0) - 1) < 1e-9, 'the sum');
    assert.deepEqual([coverage.p, rest.p], [1, 0], `top-p ${topP} at ${temperature}`);
  }
});
