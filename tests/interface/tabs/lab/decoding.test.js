import assert from 'node:assert/strict';
import {test} from 'node:test';

import {changedSentence, csvOf, droppedRows, optionsSentence, textRows} from '../../../../interface/tabs/lab/decoding_sentences.js';
import {drawsSentence, oddsPlot, oddsRows, spreadOf} from '../../../../interface/tabs/lab/odds.js';
import {plotlyFigure} from '../../../../interface/tabs/lab/plots.js';
import {decodingSvg, decodingTree, nodeName, nodeSentence, shownTree, textName} from '../../../../interface/tabs/lab/decoding_tree.js';

const ALL = {greedy: true, sample: true, beam: true, dropped: true};
const COLOURS = {paper: '#fff', ink: '#000', soft: '#666', line: '#eee', accent: '#a00', good: '#00a', faint: '#ccc'};

const text = (method, number, ids, texts, ended = false) => {
  const logprobs = ids.map(() => Math.log(0.5)), total = logprobs.reduce((sum, one) => sum + one, 0);
  return {method, number, token_ids: ids, texts, logprobs, ended, total, average: ids.length ? total / ids.length : null, repetition: 0};
};
const node = (parent, id, said, fate, ended = false) => ({parent, token_id: id, text: said, logprob: Math.log(0.25), ended, fate, reason: `because ${fate}`});
const VIEW = {
  odds: [], others: [0, 0], draws: null,
  texts: [text('greedy', 1, [1, 2], [' a', ' b']), text('sample', 1, [1, 3], [' a', ' c']), text('beam', 1, [1, 2, 9], [' a', ' b', ''], true)],
  tree: [node(null, 1, ' a', 'grew'), node(null, 4, ' d', 'outscored'), node(0, 2, ' b', 'grew'), node(0, 3, ' c', 'overtaken'), node(2, 9, '', 'returned', true)],
};
const childrenOf = ({children}) => children.map(({key}) => key);

test('texts that begin alike share nodes, and each node knows its texts', () => {
  const root = decodingTree('The sea', VIEW), [a, d] = root.children, [b, c] = a.children;
  assert.deepEqual([root.text, childrenOf(root), childrenOf(a), childrenOf(b)], ['The sea', ['1', '4'], ['1 2', '1 3'], ['1 2 9']]);
  assert.deepEqual([...a.texts], ['greedy', 'sample 1', 'beam 1']);
  assert.deepEqual([[...b.methods], [...c.methods], [...d.methods]], [['greedy', 'beam'], ['sample'], []]);
  assert.deepEqual([a.odds, b.children[0].state], [{p: 0.5}, 'end']);
});

test('only paths without a beam that the search did not keep are dropped, with their reason', () => {
  const root = decodingTree('The sea', VIEW), [a, d] = root.children, [b, c] = a.children;
  assert.deepEqual([a.dropped, b.dropped, c.dropped, d.dropped], ['', '', 'because overtaken', 'because outscored']);
  assert.equal(nodeSentence(d), '“d” has a chance of 25\u00a0% here; the beam search dropped it: because outscored.');
  assert.match(nodeSentence(c), /on the path of sample 1; the beam search dropped it: because overtaken\.$/);
  assert.match(nodeSentence(b.children[0]), /^The end of the text has a chance of 50\u00a0% here; on the path of beam 1\.$/);
});

test('the name of a node says its token, its chance and the texts that go through it, or why it was dropped', () => {
  const root = decodingTree('The sea.', VIEW), [a, d] = root.children, [b] = a.children;
  assert.equal(nodeName(root), 'the prompt, The sea, full stop');
  assert.equal(nodeName(a), 'a 50\u00a0%, on the path of greedy, sample 1, beam 1');
  assert.equal(nodeName(d), 'd 25\u00a0%, dropped by the beam search: because outscored');
  assert.equal(nodeName(b.children[0]), 'the end of the text 50\u00a0%, on the path of beam 1');
  const [comma, part] = ['.', ''].map(said => decodingTree('x', {texts: [text('greedy', 1, [7], [said])], tree: []}).children[0]);
  assert.deepEqual([comma, part].map(nodeName), ['full stop 50\u00a0%, on the path of greedy', 'a part of a character 50\u00a0%, on the path of greedy']);
});

test('methods and dropped paths are shown or not, and what leads to a shown node is', () => {
  const root = decodingTree('The sea', VIEW);
  assert.deepEqual(childrenOf(shownTree(root, ALL)), ['1', '4']);
  assert.deepEqual(childrenOf(shownTree(root, {...ALL, dropped: false})), ['1']);
  const sampled = shownTree(root, {...ALL, greedy: false, beam: false, dropped: false});
  assert.deepEqual([childrenOf(sampled), childrenOf(sampled.children[0])], [['1'], ['1 3']]);
  const dropped = shownTree(root, {greedy: false, sample: false, beam: false, dropped: true});
  assert.deepEqual([childrenOf(dropped), childrenOf(dropped.children[0])], [['1', '4'], ['1 3']]);
});

test('the drawing has a group for each node, and a line for each method whose text passes', () => {
  const svg = decodingSvg(decodingTree('a < b & "c"', VIEW), {shown: ALL, colours: COLOURS, title: 'Texts <after> "a"'});
  assert.equal(svg.match(/<g data-key=/g).length, 6);
  assert.deepEqual(['#a00', '#666', '#00a', '#ccc'].map(colour => svg.split(`stroke="${colour}"`).length - 1), [2, 2, 3, 1]);
  assert.ok(svg.includes('a &lt; b &amp; ') && !svg.includes('<after>'));
  const few = decodingSvg(decodingTree('x', VIEW), {shown: {...ALL, beam: false, dropped: false}, colours: COLOURS, title: 'x'});
  assert.deepEqual([few.match(/<g data-key=/g).length, few.includes('#00a')], [4, false]);
  const widthIn = room => Number(/width="([\d.]+)"/.exec(decodingSvg(decodingTree('x', VIEW), {shown: ALL, colours: COLOURS, title: 'x', room}))[1]), wide = widthIn();
  assert.ok(widthIn(wide - 5) <= wide - 5, 'columns are closer where the drawing fits then');
});

test('a text that adds no whole character has a sign, and the prompt is cut', () => {
  const root = decodingTree('x'.repeat(50), {texts: [text('greedy', 1, [7], [''])], tree: []});
  assert.deepEqual([root.children[0].text, root.text], ['◌', `…${'x'.repeat(30)}`]);
});

test('texts are rows with their name, totals and repetition', () => {
  assert.deepEqual(VIEW.texts.map(textName), ['greedy', 'sample 1', 'beam 1']);
  assert.deepEqual(textRows(VIEW)[2], ['beam 1', 'a b [end]', '−2.08', '−0.69', '0\u00a0%']);
  assert.equal(textRows({...VIEW, texts: [text('sample', 2, [], [])]})[0][3], '–');
  assert.deepEqual(droppedRows(VIEW), [['d', '25\u00a0%', 'because outscored'], ['a c', '25\u00a0%', 'because overtaken']]);
});

test('the file of texts has a line for each, quoted', () => {
  const [heads, first] = csvOf({...VIEW, texts: [text('greedy', 1, [1], [' "a",\n b'])]}).split(/\n(?=greedy)/);
  assert.equal(heads, 'method,number,tokens,total,average,repetition,text');
  assert.ok(first.startsWith('greedy,1,1,') && first.endsWith(',0," ""a"",\n b"\n'));
});

const odds = (raw, processed, said = ' a') => ({id: 1, text: said, raw, processed});

test('the options’ effect on the odds is one sentence', () => {
  assert.equal(optionsSentence({odds: [odds(0.5, 0.5), odds(0.2, 0.2)]}), 'The options leave the chances as the model gives them.');
  assert.equal(optionsSentence({odds: [odds(0.77058, 0.77057)]}), 'The options leave the chances as the model gives them.', 'but for rounding in float32');
  assert.equal(optionsSentence({odds: [odds(0.5, 0.75), odds(0.2, 0.25)]}), 'With the options, the chance of the likeliest token, “a”, changes from 50\u00a0% to 75\u00a0%.');
  assert.match(optionsSentence({odds: [odds(0.5, 1), odds(0.2, 0)]}), /to 100\u00a0%, and 1 of the 2 tokens shown cannot be drawn\.$/);
});

test('a changed form gets a sentence that says which part is of the run before', () => {
  assert.match(changedSentence({form: true, run: false}), /^The tree and the texts are of the run before; the plot has what the form has now\./);
  assert.equal(changedSentence({form: true, run: true}), changedSentence({form: true, run: false}));
  assert.match(changedSentence({form: false, run: true}), /^This is the result of the run before/);
  assert.match(changedSentence({form: false, run: false}), /^The tree and the texts are of the run before, and the plot is of what the form had after it/);
});

test('the legend says what the lines through the diamonds are', () => {
  const view = {...VIEW, odds: [odds(0.5, 0.5)], draws: {number: 100, counts: [50]}};
  assert.deepEqual(oddsPlot(view).lines.map(({name}) => name), ['the model’s chances', 'with the options', 'drawn ± 2 standard deviations']);
  assert.deepEqual(oddsPlot(view).lines[2].spread, [0.1]);
  assert.equal(oddsPlot({...view, draws: null}).lines.length, 2);
});

test('an axis of few depths has a label at each, and none between two', () => {
  const palette = {dark: false, ink: '#000', soft: '#666', line: '#eee', lines: ['#a00']};
  globalThis.document = {documentElement: null};
  globalThis.getComputedStyle = () => ({getPropertyValue: () => ''});
  const axisOf = last => {
    const x = Array.from({length: last}, (_, index) => index + 1);
    return plotlyFigure({title: '', unit: 'seconds', table: '', x, lines: [{name: 'time', y: x}]}, palette).layout.xaxis;
  };
  for (const last of [1, 2, 9]) assert.equal(axisOf(last).dtick, 1);
  assert.equal(axisOf(40).dtick, undefined);
});

test('the axis of chances is in per cent, and all letters of a plot have 14 pixels', () => {
  const palette = {dark: false, ink: '#000', soft: '#666', line: '#eee', lines: ['#a00']};
  globalThis.document = {documentElement: null};
  globalThis.getComputedStyle = () => ({getPropertyValue: () => ''});
  const {font, xaxis, yaxis, legend, hoverlabel} = plotlyFigure(oddsPlot({...VIEW, odds: [odds(0.5, 0.5)]}), palette).layout;
  for (const {size} of [font, xaxis.title.font, yaxis.title.font, legend.font, hoverlabel.font]) assert.equal(size, 14);
  assert.deepEqual([yaxis.tickformat, yaxis.hoverformat], ['.3~p', '.3~p'], 'Plotly writes 0.5 as 50%');
});

test('frequencies are compared with the odds by their standard deviation', () => {
  assert.equal(spreadOf(0.5, 10_000), 0.01);
  const view = {...VIEW, odds: [odds(0.5, 0.5), odds(0.3, 0.3), odds(0.1, 0)], others: [0.1, 0.2], draws: {number: 10_000, counts: [5_099, 3_200, 0]}};
  assert.match(drawsSentence(view), /^10,000 tokens are drawn: 1 of 2 frequencies lie within/);
  assert.equal(drawsSentence({...view, draws: null}), '');
  assert.deepEqual(oddsRows(view).map(row => row[3]), ['51\u00a0%', '32\u00a0%', '0\u00a0%', '17\u00a0%']);
  assert.deepEqual(oddsRows({...view, draws: null})[3], ['all others', '10\u00a0%', '20\u00a0%', '–']);
});
