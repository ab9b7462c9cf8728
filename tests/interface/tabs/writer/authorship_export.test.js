import assert from 'node:assert/strict';
import {test} from 'node:test';

import {authorshipFields, authorshipHtml, authorshipJson, authorshipMarkdown} from '../../../../interface/tabs/writer/authorship_export.js';

const DOCUMENT = {
  name: 'Mine <1>', text: 'Once upon a\n<time>', model: 'a/model',
  authors: [
    {length: 4, author: 'typed', step: 1}, {length: 7, author: 'chosen', step: 2, model: 'a/model', logprob: Math.log(0.25)},
    {length: 7, author: 'pasted', step: 3},
  ],
};

test('the JSON has a piece for every character, with what is known of it', () => {
  const {format, version, name, model, text, characters, pieces} = JSON.parse(authorshipJson(DOCUMENT));
  assert.deepEqual([format, version, name, model, text], ['lookahead-authorship', 1, 'Mine <1>', 'a/model', DOCUMENT.text]);
  assert.deepEqual(characters, {chosen: 7, pasted: 7, typed: 4});
  assert.equal(pieces.map(piece => piece.text).join(''), text);
  assert.deepEqual(pieces[1], {start: 4, end: 11, text: ' upon a', author: 'chosen', order: 2, model: 'a/model', probability: 0.25});
});

test('the Markdown has what was chosen in bold and a table of all pieces', () => {
  const lines = authorshipMarkdown(DOCUMENT).split('\n');
  assert.equal(lines[0], '# Mine \\<1\\>');
  assert.equal(lines[2], 'Once <b>upon a</b>\\');
  assert.equal(lines[3], '<i>\\<time\\></i>');
  assert.ok(lines.includes('| 2 | chosen | upon a | a/model | 25 % |'));
  assert.ok(lines.includes('| 3 | pasted | ↵\\<time\\> | – | – |'));
});

test('nothing of a text is Markdown', () => {
  const linesOf = text => authorshipMarkdown({...DOCUMENT, text, authors: [{length: text.length, author: 'typed', step: 1}]}).split('\n');
  const first = text => linesOf(text)[2];
  assert.equal(first('# no *head* _x_ `c` [l](u) <b> & ~~s~~ $m$ a|b \\'), '\\# no \\*head\\* \\_x\\_ \\`c\\` \\[l\\](u) \\<b\\> \\& \\~\\~s\\~\\~ \\$m\\$ a\\|b \\\\');
  assert.deepEqual(['1. one', '12) two', '- dash', '+ plus', '=== ', '1984', 'a - b', '3.5'].map(first), ['1\\. one', '12\\) two', '\\- dash', '\\+ plus', '\\=== ', '1984', 'a - b', '3\\.5']);
  assert.equal(first('    code'), '&nbsp;&nbsp;&nbsp;&nbsp;code');
  assert.equal(first('\tcode'), '&nbsp;&nbsp;&nbsp;&nbsp;code');
  assert.deepEqual(linesOf('a\nb\n\nc').slice(2, 6), ['a\\', 'b', '', 'c']);
});

test('the page shows each piece as text, with its author, and runs no script', () => {
  const page = authorshipHtml(DOCUMENT);
  assert.match(page, /<article class="text" dir="auto"><span class="typed" title="typed · order 1">Once<\/span><span class="chosen" title="chosen · order 2 · 25\u00a0% chance of the whole piece · a\/model"> upon a<\/span><span class="pasted" title="pasted · order 3">\n&lt;time&gt;<\/span><\/article>/);
  assert.match(page, /<h1 dir="auto">Mine &lt;1&gt;<\/h1>/);
  assert.doesNotMatch(page, /<script|<time>/);
  assert.match(page, /<li><span class="chosen">chosen<\/span> 39\u00a0%: chosen among the model’s branches<\/li>/);
  assert.match(page, /<tr><td>2<\/td><td>chosen<\/td><td class="piece" dir="auto">upon a<\/td><td>25\u00a0%<\/td><td>a\/model<\/td><\/tr>/);
});

test('the instruction in force is part of each export, as text; without one nothing is said of it', () => {
  const told = {...DOCUMENT, instruction: 'Be <b>brief</b>.\nAlways.'};
  assert.equal(JSON.parse(authorshipJson(told)).instruction, told.instruction);
  assert.equal(JSON.parse(authorshipJson(DOCUMENT)).instruction, null);
  assert.ok(authorshipMarkdown(told).replaceAll('\u00a0', ' ').split('\n').includes('When this was saved, the model was told: “Be \\<b\\>brief\\</b\\>.↵Always.”'));
  assert.match(authorshipHtml(told), /the model was told: “Be &lt;b&gt;brief&lt;\/b&gt;\.\nAlways\.”/);
  for (const write of [authorshipMarkdown, authorshipHtml]) {
    for (const instruction of [undefined, null]) assert.doesNotMatch(write({...DOCUMENT, instruction}), /was told/);
  }
});

test('each export says what is left out of the odds', () => {
  assert.match(JSON.parse(authorshipJson(DOCUMENT)).notes.probability, /at temperature 1 and top-p 1, with banned tokens and an avoided word left out$/);
  for (const write of [authorshipMarkdown, authorshipHtml])
    assert.match(write(DOCUMENT), /Odds are those at temperature 1 and top-p 1, whatever was set; banned tokens and an avoided word are left out\./);
});

test('each chosen piece has the instruction that it was chosen under, whatever was set later', () => {
  const authors = DOCUMENT.authors.map(run => (run.author === 'chosen' ? {...run, instruction: 'Be <brief>.'} : run)), told = {...DOCUMENT, authors};
  const {instruction, notes, pieces} = JSON.parse(authorshipJson(told));
  assert.deepEqual([instruction, pieces[1].instruction, 'instruction' in pieces[0]], [null, 'Be <brief>.', false]);
  assert.match(notes.instruction, /when the piece was chosen/);
  assert.ok(authorshipMarkdown(told).replaceAll('\u00a0', ' ').split('\n').includes('| 2 | chosen | upon a | a/model, told “Be \\<brief\\>.” | 25 % |'));
  const page = authorshipHtml(told);
  assert.match(page, /title="chosen · order 2 · 25\u00a0% chance of the whole piece · a\/model · told “Be &lt;brief&gt;\.”"/);
  assert.match(page, /<td>a\/model, told “Be &lt;brief&gt;\.”<\/td>/);
  assert.equal(authorshipFields(JSON.parse(authorshipJson(told))).history.authors[1].instruction, 'Be <brief>.');
});

test('two exports of one document are the same, whenever they are made', () => {
  for (const write of [authorshipHtml, authorshipJson, authorshipMarkdown]) {
    const now = Date.now, first = write(DOCUMENT);
    Date.now = () => 1;
    assert.equal(write(structuredClone(DOCUMENT)), first);
    Date.now = now;
  }
});

test('an empty text is exported too', () => {
  const empty = {name: 'Untitled', text: '', model: null, authors: []};
  assert.deepEqual(JSON.parse(authorshipJson(empty)).pieces, []);
  assert.match(authorshipMarkdown(empty), /^# Untitled\n/);
  assert.match(authorshipHtml(empty), /<article class="text" dir="auto"><\/article>/);
});
