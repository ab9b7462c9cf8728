import assert from 'node:assert/strict';
import {test} from 'node:test';

import {tokenToBan, choiceOf, choiceOfOther, gapBehind, nextWordEnd, textUpTo} from '../../../../interface/web/core/choice.js';
import {shapeRows} from '../../../../interface/web/core/branch_rows.js';
import {withDice} from '../../../support/scripts/dice.js';
import {likelyView, likeliest, pathOf, viewOf} from '../../../support/scripts/views.js';

// The row of a view, as the page draws it for a revision of the text.
const rowOf = (view, index, settings = {}) => ({...shapeRows(view, settings).rows[index], revision: 7});

test('a choice inserts the texts of all pieces up to the one that is chosen, and accepts their tokens', () => withDice(50, dice => {
  const view = likelyView(3, 5), index = dice.upTo(2), row = rowOf(view, index), token = dice.upTo(4), branch = view.branches[index];
  const choice = choiceOf(row, index, token);
  assert.equal(choice.text, branch.pieces.slice(0, token + 1).map(({text}) => text).join(''));
  assert.equal(textUpTo(row, token), choice.text);
  assert.deepEqual(choice.ids, branch.ids.slice(0, token + 1));
  assert.deepEqual(choice.logprobs, branch.logprobs.slice(0, token + 1));
  assert.deepEqual([choice.revision, choice.branch, choice.token, choice.healed], [7, index, token, false]);
}));

test('the remainder of a branch is its other tokens and pieces, with the nodes of their odds', () => withDice(50, dice => {
  const view = likelyView(3, 5), index = dice.upTo(2), token = dice.upTo(3), branch = view.branches[index];
  const {rest} = choiceOf(rowOf(view, index), index, token), used = token + 1;
  assert.deepEqual(rest.ids, branch.ids.slice(used));
  assert.deepEqual(rest.logprobs, branch.logprobs.slice(used));
  assert.deepEqual(rest.pieces, branch.pieces.slice(used).map(piece => ({...piece, tokens: piece.tokens - used})));
  assert.deepEqual(rest.at.map(place => rest.nodes[place]), branch.at.slice(used).map(place => view.nodes[place]));
  assert.deepEqual([rest.ended, rest.healed], [false, false]);
}));

test('the remainder of a branch that would repeat itself says so', () => {
  const view = likelyView(1, 4);
  assert.ok(!('repeats' in choiceOf(rowOf(view, 0), 0, 1).rest));
  view.branches[0].repeats = true;
  assert.equal(choiceOf(rowOf(view, 0), 0, 1).rest.repeats, true);
});

test('the remainder includes pieces that are not shown', () => {
  const view = likelyView(1, 5), {rest} = choiceOf(rowOf(view, 0, {depth: 2}), 0, 1);
  assert.deepEqual(rest.ids, view.branches[0].ids.slice(2));
});

test('a choice of a whole branch has no remainder', () => {
  assert.equal(choiceOf(rowOf(likelyView(1, 3), 0), 0, 2).rest, null);
  const ended = viewOf([pathOf(likeliest([], 1), 3)], {k: 1, ended: [0]});
  assert.equal(choiceOf(rowOf(ended, 0), 0, 1).rest, null);
  const {rest} = choiceOf(rowOf(ended, 0), 0, 0);
  assert.deepEqual([rest.ended, rest.ids.length, rest.pieces.length], [true, 2, 1]);
});

test('what the person has written into a row is marked in a choice of it, and in what is left of it', () => {
  const view = likelyView(1, 4);
  view.branches[0].edited = [1, 3];
  const row = rowOf(view, 0), lengths = row.pieces.map(({text}) => text.length), from = lengths[0];
  assert.deepEqual([choiceOf(row, 0, 0).written, choiceOf(row, 0, 0).rest.edited], [[], [0, 2]]);
  assert.deepEqual([choiceOf(row, 0, 1).written, choiceOf(row, 0, 1).rest.edited], [[[from, from + lengths[1]]], [0, 1]]);
  const whole = choiceOf(row, 0, 3);
  assert.deepEqual(whole.written, [[from, from + lengths[1]], [from + lengths[1], from + lengths[1] + lengths[2]]]);
  assert.ok(!('edited' in choiceOf(row, 0, 2).rest));
});

test('what was written into a row before its last change is marked too', () => {
  const view = likelyView(1, 4);
  Object.assign(view.branches[0], {edited: [3, 4], earlier_edits: [[1, 2]]});
  const row = rowOf(view, 0), ends = row.pieces.map((_, index) => row.pieces.slice(0, index + 1).map(({text}) => text).join('').length);
  assert.deepEqual(choiceOf(row, 0, 3).written, [[ends[0], ends[1]], [ends[2], ends[3]]]);
  const {rest} = choiceOf(row, 0, 0);
  assert.deepEqual([rest.edited, rest.earlier_edits], [[2, 3], [[0, 1]]]);
  assert.ok(!('earlier_edits' in choiceOf(row, 0, 1).rest));
});

test('a choice has the log-probability of each stretch that is the row\'s own', () => {
  const view = likelyView(1, 5), [branch] = view.branches;
  branch.logprobs = [-1, -2, -4, -8, -16];
  branch.edited = [1, 3];
  const row = rowOf(view, 0);
  assert.deepEqual(row.pieces.map(({tokens}) => tokens), [1, 2, 3, 4, 5]);
  assert.deepEqual([0, 1, 2, 3, 4].map(token => choiceOf(row, 0, token).chosenLogprobs), [[-1], [-1], [-1], [-1, -8], [-1, -24]]);
  delete branch.edited;
  assert.deepEqual(choiceOf(rowOf(view, 0), 0, 4).chosenLogprobs, [-31]);
});

test('a remainder has no nodes if any of them is unknown', () => {
  for (const spoil of [view => { view.nodes = undefined; }, view => { view.nodes[2] = undefined; }, view => { view.branches[0].at = undefined; }]) {
    const view = likelyView(1, 4);
    spoil(view);
    const {rest} = choiceOf(rowOf(view, 0), 0, 0);
    assert.deepEqual([rest.nodes, rest.at, rest.ids.length], [undefined, undefined, 3]);
  }
});

test('a piece of several tokens is accepted with all of them', () => {
  const view = likelyView(1, 4), [branch] = view.branches;
  branch.pieces = [{text: ' a', tokens: 1, ends: 0}, {text: '🙂', tokens: 3, ends: 1}, {text: '!', tokens: 4, ends: 3}];
  const choice = choiceOf(rowOf(view, 0), 0, 1);
  assert.deepEqual([choice.text, choice.ids, choice.rest.pieces], [' a🙂', branch.ids.slice(0, 3), [{text: '!', tokens: 1, ends: 3}]]);
});

test('a choice of a healed row says that its first token replaces the typed one', () => {
  const choice = choiceOf(rowOf(viewOf([pathOf(likeliest([], 1), 3)], {k: 1, healed: true}), 0), 0, 1);
  assert.deepEqual([choice.healed, choice.rest.healed], [true, false]);
});

test('a choice of another beginning has its own tokens and no remainder', () => {
  const [other] = shapeRows(likelyView(1, 1)).others;
  assert.deepEqual(choiceOfOther(other, 4, {revision: 7, healed: true}), {
    revision: 7, branch: null, token: 4, text: other.text, ids: other.ids, healed: true, logprobs: other.logprobs, rest: null, written: [], chosenLogprobs: [],
  });
});

test('the next word is complete with the first piece that ends one', () => {
  const pieces = (...ends) => ({pieces: ends.map(one => ({ends: one}))});
  assert.equal(nextWordEnd(pieces(0, 0, 1, 1)), 2);
  assert.equal(nextWordEnd(pieces(1, 1)), 0);
  assert.equal(nextWordEnd(pieces(0, 4)), 1);
});

test('if no piece completes a word, the next word is the whole row', () => {
  assert.equal(nextWordEnd({pieces: [{ends: 0}, {ends: 0}, {ends: 0}]}), 2);
  assert.equal(nextWordEnd({pieces: [{ends: 0}]}), 0);
});

test('a row without pieces has no next word', () => assert.equal(nextWordEnd({pieces: []}), -1));

const plainView = {branches: [{healed: false}], given: ''}, healedView = {branches: [{healed: false}, {healed: true}], given: 'lig'};

test('a token can be banned', () => {
  assert.deepEqual(tokenToBan({text: ' sea', ids: [12]}, true, {view: plainView}), {own: ' sea', id: 12, bannable: true, unbannable: ''});
  assert.deepEqual(tokenToBan({text: ' sea', ids: [12]}, false, {view: healedView}), {own: ' sea', id: 12, bannable: true, unbannable: ''});
});

test('a character of several tokens cannot be banned', () => {
  assert.deepEqual(tokenToBan({text: '🙂', ids: [12, 13]}, true, {view: plainView}), {own: '🙂', id: 13, bannable: false, unbannable: 'This is made of several tokens, and only one token can be banned.'});
  assert.equal(tokenToBan({text: '🙂', ids: [12, 13]}, false, {view: healedView}).bannable, false);
});

test('a ban of a healed token names it with the typed characters', () => {
  assert.deepEqual(tokenToBan({text: 'hthouse', ids: [12]}, true, {view: healedView}), {own: 'lighthouse', id: 12, bannable: true, unbannable: ''});
});

test('a ban of the token after the healed one names its own text', () => {
  assert.deepEqual(tokenToBan({text: 'ht', ids: [12, 13]}, true, {view: healedView}), {own: 'ht', id: 13, bannable: true, unbannable: ''});
  assert.equal(tokenToBan({text: 'ht', ids: [12, 13, 14]}, true, {view: healedView}).bannable, false);
});

test('nothing of a stored view can be banned', () => {
  const {bannable, unbannable} = tokenToBan({text: ' sea', ids: [12]}, true, {stored: true, view: plainView});
  assert.deepEqual([bannable, unbannable], [false, 'The recorded example cannot be changed: choose one of its tokens, or write something.']);
});

test('a space keeps an accepted word apart from the word behind the caret', () => {
  for (const [before, accepted, after] of [
    ['He ', 'is', 'walked'], ['He', ' is', 'walked'], ['', 'Once', 'upon'], ['Two:\n', '7', '8'], ['He ', 'said,', 'walked'],
  ]) assert.equal(gapBehind(before, accepted, after), ' ', JSON.stringify([before, accepted, after]));
});

test('no space is put where one stands, before a sign, within a word, or where words have none between them', () => {
  for (const [before, accepted, after] of [
    ['He ', 'is', ' walked'], ['He ', 'is', ''], ['He ', 'is', ', and'], ['He ', 'is ', 'walked'], ['He w', 'al', 'ked'],
    ['He ', '“', 'walked'], ['well', '-', 'known'], ['', '我', '们'], ['3', '.', '14'],
  ]) assert.equal(gapBehind(before, accepted, after), '', JSON.stringify([before, accepted, after]));
});
