import assert from 'node:assert/strict';
import {test} from 'node:test';

import {maskSize, maskSvg, maskTree, nodesUpTo, passSentence, slotRows, slotSentence} from '../../../../interface/tabs/lab/mask_figure.js';

const COLOURS = {paper: '#fff', ink: '#000', soft: '#666', line: '#ddd', faint: '#ccc', accent: '#a00', good: '#0a0'};
const node = (slot, text, parent, position, number, attends) => ({slot, token_id: slot, text, parent, position, number, attends});
const RECORD = {
  nodes: [
    node(0, 'The', null, 0, 1, [0]), node(1, ' sea', 0, 1, 1, [0, 1]), node(2, ' is', 1, 2, 2, [0, 1, 2]), node(3, ' was', 1, 2, 2, [0, 1, 3]),
    node(4, ' <grey>', 2, 3, 3, [0, 1, 2, 4]),
  ],
  leaves: [{token_id: 9, text: '.', parent: 4}, {token_id: 8, text: ' calm', parent: 3}], prompt_tokens: 2, passes: 3,
};
const keys = ({key, children}) => [key, children.map(keys)];

test('the tree has the tokens of all passes, and the last ones of the branches', () => {
  assert.deepEqual(keys(maskTree(RECORD)), ['0', [['1', [['2', [['4', [['leaf 0', []]]]]], ['3', [['leaf 1', []]]]]]]]);
  assert.deepEqual(nodesUpTo(RECORD, 2).map(({slot}) => slot), [0, 1, 2, 3]);
});

test('a pass and a token have a sentence', () => {
  assert.equal(passSentence(RECORD, 1), 'Pass 1 computes the prompt: 2 tokens, each of which attends to itself and to those before it.');
  assert.equal(passSentence(RECORD, 2), 'Pass 2 computes 2 tokens at once, one of each branch: “is”, “was”. Each attends to the prompt and to its own branch.');
  assert.match(passSentence(RECORD, 3), /^Pass 3 computes 1 token at once, .* The last tokens of the branches follow from it; they need no slot\.$/);
  assert.match(passSentence({...RECORD, leaves: []}, 3), /^Pass 3 computes 1 token at once, .* own branch\.$/, 'while passes may still follow');
  assert.equal(slotSentence(RECORD, 3, 3), '“was”, slot 3, position 2, computed in pass 2, attends to 3 of 5 slots: itself and “The”, “sea”.');
  assert.equal(slotSentence(RECORD, 0, 1), '“The”, slot 0, position 0, computed in pass 1, attends to 1 of 2 slots: itself alone.');
  assert.equal(slotSentence(RECORD, 4, 2), '', 'not computed yet');
});

test('the table has a row for each slot', () => {
  assert.deepEqual(slotRows(RECORD)[3], ['3', ' was', '2', '2', '0, 1, 3']);
});

test('the figure has a dot for each slot that is attended to, and marks those of the chosen token', () => {
  const svg = maskSvg(RECORD, {pass: 3, slot: 3, colours: COLOURS, title: 'A "figure"'});
  assert.equal(svg.match(/<circle /g).length, 1 + 2 + 3 + 3 + 4);
  assert.equal(svg.match(/<circle [^>]*fill="#a00"/g).length, 3);
  assert.equal(svg.match(/data-slot="3"/g).length, 3, 'in the tree, the cache and the mask');
  assert.equal(svg.match(/no slot/g).length, 2);
  assert.ok(svg.includes('&lt;grey&gt;') && !svg.includes('<grey>'));
  const early = maskSvg(RECORD, {pass: 1, slot: null, colours: COLOURS, title: 'x'});
  assert.deepEqual([early.match(/<circle /g).length, early.includes('#a00'), early.includes('no slot')], [3, false, false]);
});

const sizeOf = svg => svg.match(/width="([\d.]+)" height="([\d.]+)"/).slice(1).map(Number);

test('what is drawn of a pass stands where it does in the figure of all passes, and no more of the tree is drawn', () => {
  const [one, , all] = [1, 2, 3].map(pass => maskSvg(RECORD, {pass, slot: null, colours: COLOURS, title: 'x'}));
  assert.deepEqual(sizeOf(one), sizeOf(all));
  const labels = svg => svg.match(/<text [^>]*Georgia[^>]*>[^<]*/g);
  assert.deepEqual([labels(one).length, labels(all).length], [2, 7]);
  assert.ok(labels(one).every(label => labels(all).includes(label)));
});

test('the mask stands below the tree, or beside it: then the figure is lower and wider', () => {
  for (const isBeside of [false, true]) {
    const {width, height} = maskSize(RECORD, {isBeside});
    assert.deepEqual(sizeOf(maskSvg(RECORD, {pass: 3, slot: null, colours: COLOURS, title: 'x', isBeside})), [width, height].map(value => Math.round(100 * value) / 100));
  }
  const below = maskSize(RECORD), beside = maskSize(RECORD, {isBeside: true});
  assert.ok(beside.height < below.height && beside.width > below.width);
});
