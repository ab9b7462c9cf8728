import assert from 'node:assert/strict';
import {test} from 'node:test';
import {spokenText} from '../../../../interface/web/core/figures_and_labels.js';
import {drawingSentence, figuresSentence, nodeLabel, nodeName, nodeSentence, placePhrase, thicknessSentence} from '../../../../interface/web/core/tree_sentences.js';

const node = (state, text, more = {}) => ({key: 'k', text, state, odds: {p: 0.15}, children: [], rest: null, ...more});

test('labels are short: of the present text the end, of others the beginning', () => {
  assert.equal(nodeLabel(node('ahead', ' saw')), 'saw');
  assert.equal(nodeLabel(node('typed', 'The old lighthouse keeper opened the door')), '…keeper opened the door');
  assert.equal(nodeLabel(node('chosen', 'x'.repeat(25))), `…${'x'.repeat(23)}`);
  assert.equal(nodeLabel(node('left', ' looked down at the grey and empty sea')), 'looked down at the gre…');
  assert.equal(nodeLabel(node('typed', 'The old lighthouse keeper', {here: true})), '…keeper');
  assert.equal(nodeLabel(node('ahead', 'x'.repeat(24))), 'x'.repeat(24));
});

test('a node that continues the word before it is told from one that begins a word', () => {
  const house = node('ahead', 'house'), word = node('ahead', ' house');
  assert.deepEqual([nodeLabel(house, ' ice'), nodeLabel(word, ' ice'), nodeLabel(house, ' ice '), nodeLabel(house)], ['·house', 'house', 'house', 'house']);
  assert.equal(nodeName(house, 'The ice'), 'ice, continued by house 15\u00a0%');
  assert.equal(nodeName(word, 'The ice'), 'house 15\u00a0%');
  assert.match(nodeSentence(house, 'The ice'), /^“ice·house” 15.% after/);
  assert.match(nodeSentence(word, 'The ice'), /^“house” 15.% after/);
  assert.equal(nodeLabel(node('ahead', ','), ' ice'), ',', 'a sign is read as joined');
  assert.equal(nodeLabel(node('typed', 'the keeper opened the heavy old door'), 'o'), '…the heavy old door', 'its beginning is cut off');
  assert.equal(nodeLabel(node('rest', ''), ' ice'), 'other tokens');
});

test('labels have signs for what cannot be seen, and words for what is no text', () => {
  assert.equal(nodeLabel(node('ahead', ' ')), '␣');
  assert.equal(nodeLabel(node('ahead', '\n')), '↵');
  assert.equal(nodeLabel(node('typed', 'one\n\ntwo')), 'one two');
  assert.equal(nodeLabel(node('rest', '')), 'other tokens');
  assert.equal(nodeLabel(node('end', '')), 'end');
  assert.equal(nodeLabel(node('typed', '')), 'start');
  assert.equal([...nodeLabel(node('seen', '🙂'.repeat(30)))].length, 24);
});

test('names for screen readers say the text, what it is, and its odds', () => {
  assert.equal(nodeName(node('ahead', ' saw')), 'saw 15\u00a0%');
  assert.equal(nodeName(node('ahead', ',')), 'comma 15\u00a0%');
  assert.equal(nodeName(node('ahead', '\n')), 'line break 15\u00a0%');
  assert.equal(nodeName(node('chosen', ' saw', {odds: null})), 'saw, chosen');
  assert.equal(nodeName(node('left', ' saw')), 'saw 15\u00a0%, left behind');
  assert.equal(nodeName(node('seen', ' saw')), 'saw 15\u00a0%, seen, not taken');
  assert.equal(nodeName(node('rest', '')), 'other tokens 15\u00a0%');
  assert.equal(nodeName(node('end', '')), 'the text’s end 15\u00a0%');
  assert.equal(nodeName(node('typed', 'he', {odds: null, here: true})), 'he, typed, the end of your text');
  assert.equal(nodeName(node('typed', '', {odds: null})), 'the start');
  assert.equal(nodeName(node('ahead', ' saw', {inert: true})), 'saw 15\u00a0%, of an older text');
});

test('a token has the same name as in its row, with the spaces, line breaks and tabs at its ends', () => {
  for (const text of [' the', ' ', ' .', '." ', '.\n', '\n\nThe', '\tone', 'a\nb', '…']) {
    assert.equal(nodeName(node('ahead', text)), `${spokenText(text).trim()} 15\u00a0%`);
  }
  assert.equal(nodeName(node('ahead', ' looked down at the grey and empty sea')), 'looked down at the gre, ellipsis 15\u00a0%', 'a long one is cut as its label is');
});

test('a sentence says what a click does, and never that it does what it does not', () => {
  assert.match(nodeSentence(node('ahead', ' saw')), /^“saw” 15.% after the text before it\. Choose it to insert the text up to here\.$/);
  assert.match(nodeSentence(node('ahead', ' saw'), '', true), /^“saw” 15.% after the text before it\. Zoom in with “\+”, then tap it to insert the text up to here\.$/);
  const parted = {children: [node('ahead', ' a'), node('ahead', ' b'), node('end', ''), node('rest', '')]};
  assert.match(nodeSentence(node('ahead', ' saw', parted)), /before it\. A fork: 3 branches part here\. Choose it to insert/);
  assert.equal(nodeSentence(node('typed', 'he', {here: true, ...parted})), 'Here your text ends. A fork: 3 branches part here.');
  assert.doesNotMatch(nodeSentence(node('ahead', ' saw', {children: parted.children.slice(2)})), /fork/);
  assert.match(nodeSentence(node('seen', ' saw')), /^“saw” was seen and not taken\. 15.% .* Choose it to go back to where it was seen\.$/);
  assert.match(nodeSentence(node('left', ' saw', {odds: null})), /^“saw” was left behind\. Choose it to go there; nothing is lost\.$/);
  assert.match(nodeSentence(node('chosen', ' saw', {odds: null})), /^“saw” was chosen\. Choose it to go back to here; nothing is lost\.$/);
  assert.match(nodeSentence(node('typed', '', {odds: null})), /^The start\. Choose it to go back to here/);
  assert.equal(nodeSentence(node('typed', 'he', {here: true})), 'Here your text ends.');
  for (const state of ['rest', 'end']) assert.doesNotMatch(nodeSentence(node(state, '')), /click|choose/i);
  assert.match(nodeSentence(node('typed', `${'a'.repeat(50)}${'b'.repeat(50)}`)), /^“…a{10}b{50}” was typed/);
});

test('the sentence of a drawing counts what it shows', () => {
  const nodes = [['ahead', 3], ['left', 1], ['seen', 2], ['typed', 4]].flatMap(([state, count]) => Array.from({length: count}, () => ({node: node(state, 'x')})));
  assert.equal(drawingSentence(nodes), '3 branches: 3 tokens in all; 1 text left behind, 2 beginnings seen and not taken.');
  assert.equal(drawingSentence(nodes.slice(0, 1)), '1 branch: 1 token.');
  const chosen = count => Array.from({length: count}, () => ({node: node('chosen', ' a few words')}));
  assert.equal(drawingSentence(chosen(2)), 'No branches yet; 2 choices.', 'a choice may have several words');
  assert.equal(drawingSentence([...chosen(1), ...nodes.slice(4, 5)]), 'No branches yet; 1 choice, 1 beginning seen and not taken.');
  const inner = {node: node('ahead', 'x', {children: [node('end', '')]})}, end = {node: node('end', '')};
  assert.equal(drawingSentence([inner, end, ...nodes.slice(0, 1)]), '2 branches: 2 tokens in all.');
  const fork = {node: node('typed', 'x', {children: [node('ahead', 'a'), node('end', ''), node('rest', '')]})};
  assert.equal(drawingSentence([fork, end, ...nodes.slice(0, 1)]), '2 branches part at 1 fork: 1 token in all.');
  const atEnd = {node: {...fork.node, here: true}};
  assert.equal(drawingSentence([atEnd, fork, end, ...nodes.slice(0, 1)]).split(':')[0], '2 branches go on from the end of your text and part at 1 fork');
  assert.equal(drawingSentence(nodes.slice(6)), 'No branches yet.');
});

test('a river of the session says which of its widths are no chances', () => {
  for (const drawing of [{river: false, session: true}, {river: true, session: false}]) assert.equal(figuresSentence(drawing), 'All figures are of tokens, not of words.');
  assert.match(figuresSentence({river: true, session: true}), /tokens, not of words\. After each text that you wrote, chose or left behind, the river has its full width again, whatever .* is the chance of all tokens since then\.$/);
});

test('What the thickness of a line means is said of a tree and of a river', () => {
  assert.equal(thicknessSentence({river: false}), 'The thicker a line, the likelier.');
  assert.equal(thicknessSentence({river: true}), 'Width: the chance of the whole path.');
});

test('a node of a branch says after which words it stands, and the text itself does not', () => {
  const laid = (one, parent) => ({node: one, parent});
  const root = laid(node('typed', 'The old keeper'), null), here = laid(node('typed', ' saw', {here: true}), root);
  const first = laid(node('ahead', ' the'), here), second = laid(node('ahead', ' sea'), first), third = laid(node('ahead', ','), second);
  assert.deepEqual([root, here, first, second, third].map(placePhrase), ['', '', 'after your text', 'after “the”', 'after “the sea”']);
  assert.equal(placePhrase(laid(node('ahead', ' who'), third)), 'after “the sea, comma”');
  assert.equal(placePhrase(laid(node('left', ' went'), root)), 'after “The old keeper”', 'in a session');
  const long = laid(node('ahead', ' lighthouse above the harbour'), third);
  assert.equal(placePhrase(laid(node('end', ''), long)), 'after “above the harbour”', 'the last words alone');
});
