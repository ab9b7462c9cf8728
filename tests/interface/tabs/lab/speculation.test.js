import assert from 'node:assert/strict';
import {test} from 'node:test';

import {acceptedIn, addedNodeSentence, countsOf, csvOf, drafterRows, drafterSentence, initialsSentence, passSentence, passesSentence, rejectionSentence, tokenRows, tokenSentence, verdictSentence} from '../../../../interface/tabs/lab/speculation_sentences.js';
import {draftSvg, draftTree, keySentence, keysOf} from '../../../../interface/tabs/lab/speculation_tree.js';

const COLOURS = {paper: '#fff', ink: '#000', soft: '#666', line: '#eee', accent: '#a00', good: '#00a', faint: '#ccc'};
const node = (text, parent, depth, drafters, accepted) => ({token_id: 7, text, parent, depth, drafters, odds: 0.5 ** depth, accepted});
const added = (text, kind) => ({token_id: 9, text, kind});
const VIEW = {
  drafters: ['suffix', 'model'], draft_model: 'small', prompt_tokens: 2, ended: true,
  passes: [
    {number: 1, before: 0, nodes: [node(' a', null, 1, ['suffix', 'model'], true), node(' x', 0, 2, ['model'], false), node(' y', 1, 3, ['model'], false)], added: added(' b', 'correction')},
    {number: 2, before: 2, nodes: [node(' c', null, 1, ['model'], true)], added: added(' d', 'bonus')},
    {number: 3, before: 4, nodes: [], added: added('', 'alone')},
  ],
  token_ids: [7, 9, 7, 9, 9], texts: [' a', ' b', ' c', ' d', ''], plain_token_ids: [7, 9, 7, 9, 9], plain_texts: [' a', ' b', ' c', ' d', ''], plain_passes: 5, equal: true,
};

test('each pass says what every drafter wrote and what the model agreed to', () => {
  assert.equal(passSentence(VIEW, 1), 'Pass 1: The suffix drafter wrote 1 token, the model agreed to 1; the small model wrote 3 tokens, the model agreed to 1. There the model chose “b”: the correction. The text has 2 tokens after 1 pass.');
  assert.match(passSentence(VIEW, 2), /^Pass 2: The small model wrote 1 token, the model agreed to 1\. All drafted tokens of a path were right, so the model added “d”: the bonus token\. The text has 4 tokens after 2 passes\.$/);
  assert.equal(passSentence(VIEW, 3), 'Pass 3: No token was drafted. The model chose the end of the text by itself. The text has 5 tokens after 3 passes.');
  assert.equal(passSentence(VIEW, 4), '');
});

test('tokens are counted for each drafter that proposed them', () => {
  assert.deepEqual([acceptedIn(VIEW.passes[0]), countsOf(VIEW.passes, 'suffix'), countsOf(VIEW.passes, 'model')], [1, {proposed: 1, accepted: 1}, {proposed: 4, accepted: 2}]);
  assert.deepEqual(drafterRows(VIEW, 1), [['suffix', '1', '1', '100\u00a0%'], ['model', '3', '1', '33\u00a0%']]);
  assert.deepEqual(drafterRows({...VIEW, drafters: ['recycled']}, 3), [['recycled', '0', '0', '–']]);
  assert.equal(initialsSentence(VIEW), 'Proposed by: S suffix, M model.');
  assert.match(drafterSentence(VIEW), /^suffix: .* model: the smaller model small\./);
  assert.match(drafterSentence({...VIEW, draft_model: null}), /No smaller model drafts here\./);
  assert.match(drafterSentence(VIEW), /Here 3 % is assumed, so that the same run always gives the same result; when a program writes with this library, that time is measured\.$/);
});

test('each token says who proposed it and what became of it', () => {
  assert.match(tokenSentence(VIEW.passes[0], 0), /^“a”, token 1 of a draft, was proposed by the suffix drafter and the small model, with an estimated chance of 50\u00a0% .*; accepted: the model chose the same token\.$/);
  assert.match(tokenSentence(VIEW.passes[0], 1), /rejected: the model chose another token here\.$/);
  assert.match(tokenSentence(VIEW.passes[0], 2), /rejected, because a token before it was rejected\.$/);
  assert.match(addedNodeSentence(VIEW, 3), /^The end of the text: the model’s own token\./);
  assert.deepEqual(tokenRows(VIEW, 1).map(([token, depth, , , verdict]) => [token.trim(), depth, verdict]), [['a', '1', '✓ accepted'], ['x', '2', '✗ rejected'], ['y', '3', '✗ rejected'], ['b', '2', '+ correction']]);
  assert.deepEqual(tokenRows(VIEW, 3), [['end', '1', 'the model itself', '–', '+ no draft']]);
});

test('the verdict compares texts and passes', () => {
  assert.equal(verdictSentence(VIEW), 'Both texts are equal, token for token.');
  assert.equal(verdictSentence({...VIEW, equal: false}), 'The texts differ.');
  assert.equal(passesSentence(VIEW), '5 tokens in 3 passes with drafts, in 5 without.');
});

test('the draft is a tree below the end of the text, and the model’s own token follows what it accepted', () => {
  const root = draftTree(VIEW, 1, 'The sea'), [a] = root.children, [own, x] = a.children;
  assert.deepEqual([root.text, a.note, own.note, x.note, x.children[0].note], ['The sea', '✓ S, M', '+ correction', '✗ M', '✗ M']);
  assert.deepEqual([root.children.length, own.text, own.here], [1, ' b', true]);
  assert.equal(draftTree(VIEW, 2, 'x'.repeat(40)).text, `…${'x'.repeat(26)} a b`);
  assert.equal(draftTree(VIEW, 3, '').children[0].text, 'end');
  assert.deepEqual([keysOf(VIEW, 1), keysOf(VIEW, 3)], [['0', '1', '2', 'added'], ['added']]);
  assert.equal(keySentence(VIEW, 1, 'added'), addedNodeSentence(VIEW, 1));
});

test('the drawing tells accepted from rejected by lines and signs, and escapes texts', () => {
  const svg = draftSvg(VIEW, {number: 1, prompt: 'a < b', chosen: '1', colours: COLOURS});
  assert.equal(svg.match(/<g data-key=/g).length, 4);
  assert.deepEqual(['stroke-dasharray="5 4"', 'stroke-dasharray="1 5"', 'stroke="#00a"', 'font-weight="700"'].map(part => svg.split(part).length - 1), [2, 1, 1, 1]);
  assert.ok(svg.includes('a &lt; b') && svg.includes('1 of 3 drafted tokens are accepted'));
});

test('the file has a line for each drafted token and for each token of the model', () => {
  const lines = csvOf({passes: [{...VIEW.passes[0], nodes: [node('"a",', null, 1, ['suffix', 'model'], true)]}]}).trimEnd().split('\n');
  assert.deepEqual(lines, ['pass,token_id,depth,drafters,estimated_chance,verdict,text', '1,7,1,suffix+model,0.5,accepted,"""a"","', '1,9,2,,,correction," b"']);
});

test('draws say how often a drafted token was accepted', () => {
  const view = {odds: [{id: 1, text: 'a', raw: 0.5, processed: 0.5}], others: [0.5, 0.5], draws: {number: 1000, counts: [510]}, drafted: 1000, accepted: 480};
  assert.match(rejectionSentence(view), /1 of 1 frequencies lie within.* In 1,000 of 1,000 draws tokens were drafted, and in 480 one of them was accepted\.$/);
  assert.match(rejectionSentence({...view, drafted: 0}), /No drafter proposes a token after this prompt/);
  assert.equal(rejectionSentence({...view, draws: null}), '');
});
