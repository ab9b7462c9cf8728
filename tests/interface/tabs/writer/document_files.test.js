import assert from 'node:assert/strict';
import {test} from 'node:test';

import {exportDocument, exportReplay, fileName, readDocumentFile} from '../../../../interface/tabs/writer/document_files.js';
import {authorshipJson} from '../../../../interface/tabs/writer/authorship_export.js';
import {documentFrom} from '../../../../interface/tabs/writer/document_record.js';

const fileOf = (content, name, type = '') => new File([content], name, {type});
const refusal = (content, name, type) => readDocumentFile(fileOf(content, name, type)).then(() => 'It was opened.', error => error.message);

const DOCUMENT = {
  ...documentFrom({text: 'Once', spans: [[0, 4]], accepted: [{start: 0, end: 4, ids: [7], healed: false}], name: 'Mine', model: 'a/model', instruction: 'Write.', caret: 2}), settings: {k: 5, seed: 7, odds: 'words'},
};

test('a document that was exported is the same when it is opened', async () => {
  const found = await readDocumentFile(fileOf(exportDocument(DOCUMENT), 'Mine.json'));
  assert.deepEqual(found, DOCUMENT);
});

test('an export says what it is, when it was made, and holds view and tree', () => {
  const before = Date.now(), found = JSON.parse(exportDocument(DOCUMENT, {view: {branches: []}, tree: {id: 1}}));
  assert.deepEqual([found.format, found.version, found.seed, found.view, found.tree], ['lookahead', 1, 7, {branches: []}, {id: 1}]);
  const at = Date.parse(found.exported);
  assert.ok(at >= before && at <= Date.now());
  const {format, version, exported: when, seed, view, tree, ...fields} = found;
  assert.deepEqual(fields, DOCUMENT);
});

test('an export of a document without settings has no seed, no view and no tree', () => {
  const {seed, view, tree} = JSON.parse(exportDocument({...DOCUMENT, settings: null}));
  assert.deepEqual([seed, view, tree], [null, null, null]);
  assert.equal(JSON.parse(exportDocument({...DOCUMENT, settings: {k: 1}})).seed, null);
  assert.equal(JSON.parse(exportDocument({...DOCUMENT, settings: {seed: 0}})).seed, 0);
});

test('an export is written for people to read', () => assert.ok(exportDocument(DOCUMENT).split('\n').length > 10));

test('the seed of a file goes into its settings', async () => {
  const seeded = async value => (await readDocumentFile(fileOf(JSON.stringify({format: 'lookahead', text: 'a', ...value}), 'a.json'))).settings;
  assert.deepEqual(await seeded({seed: 3, settings: {k: 5, seed: 1}}), {odds: 'tokens', k: 5, seed: 3});
  assert.deepEqual(await seeded({seed: 3}), {seed: 3});
  assert.deepEqual(await seeded({seed: '3', settings: {k: 5}}), {odds: 'tokens', k: 5});
  assert.deepEqual(await seeded({seed: 0.5}), null);
});

test('a document without a name is called as its file is', async () => {
  const named = async (name, value = {}) => (await readDocumentFile(fileOf(JSON.stringify({format: 'lookahead', text: 'a', ...value}), name))).name;
  assert.equal(await named('My.own story.json'), 'My.own story');
  assert.equal(await named('story.json', {name: 'Mine'}), 'Mine');
  assert.equal(await named('story', {name: ''}), 'story');
});

test('a plain text is a document of its own, with one kind of line end', async () => {
  const found = await readDocumentFile(fileOf('one\r\ntwo\rthree\n', 'a story.txt', 'text/plain'));
  assert.deepEqual(found, documentFrom({name: 'a story', text: 'one\ntwo\nthree\n'}));
});

test('JSON in a file of another kind is a text', async () => {
  assert.equal((await readDocumentFile(fileOf('{"a": 1}', 'a.txt'))).text, '{"a": 1}');
  assert.equal((await readDocumentFile(fileOf('[1]', 'a.json.txt'))).text, '[1]');
});

test('a document of Lookahead is recognised in a file of any name', async () => {
  assert.equal((await readDocumentFile(fileOf('{"format": "lookahead", "text": "b"}', 'a.txt'))).text, 'b');
});

test('JSON that is no document of Lookahead is refused', async () => {
  const sentence = '“a.json” is JSON, but not a document of Lookahead. Nothing was opened.';
  for (const content of ['{"cells": []}', '[1, 2]', 'null', '7']) assert.equal(await refusal(content, 'a.json'), sentence, content);
  assert.equal(await refusal('{}', 'A.JSON'), sentence.replace('a.json', 'A.JSON'));
  assert.equal(await refusal('{}', 'a', 'application/json'), sentence.replace('a.json', 'a'));
});

test('broken JSON is refused', async () => {
  const sentence = '“a.json” is broken: it is not whole JSON. Nothing was opened.';
  for (const content of ['{"format": "lookahead", "text": "ab', '']) assert.equal(await refusal(content, 'a.json'), sentence);
});

test('a document without a text, or of a newer version, is refused', async () => {
  assert.equal(await refusal('{"format": "lookahead", "text": 7}', 'a.json'), '“a.json” is a document of Lookahead without a text. Nothing was opened.');
  assert.equal(await refusal('{"format": "lookahead", "text": "", "version": 2}', 'a.json'), '“a.json” was made by a newer Lookahead than this one. Nothing was opened.');
  assert.equal(await refusal('{"format": "lookahead", "text": "", "version": "2"}', 'a.json'), 'It was opened.');
  assert.equal(await refusal('{"format": "lookahead", "text": "", "version": 1}', 'a.json'), 'It was opened.');
});

test('a file that is not UTF-8 text is refused', async () => {
  const sentence = '“a.txt” is not a text in UTF-8. Nothing was opened; save it as UTF-8 text, or export it again.';
  for (const bytes of [[0xff, 0xfe, 97], [97, 0, 98], [0xc3]]) assert.equal(await refusal(new Uint8Array(bytes), 'a.txt'), sentence);
});

test('more than five megabytes are refused', async () => {
  const most = 5 * 1024 * 1024;
  assert.equal(await refusal('a'.repeat(most + 1), 'a.txt'), '“a.txt” is larger than 5 MB, so it was not opened.');
  assert.equal(await refusal('a'.repeat(most), 'a.txt'), 'It was opened.');
});

test('a file that cannot be read is refused', async () => {
  const gone = {name: 'a.txt', size: 1, arrayBuffer: () => Promise.reject(new Error('gone'))};
  await assert.rejects(readDocumentFile(gone), {message: '“a.txt” could not be read. Nothing was opened.'});
});

test('a file is named after its document, without what file systems refuse', () => {
  assert.equal(fileName('My story', 'json'), 'My story.json');
  assert.equal(fileName('At dusk.… authorship', 'md'), 'At dusk authorship.md');
  assert.equal(fileName('a/b\\c:d*e?f"g<h>i|j', 'txt'), 'a b c d e f g h i j.txt');
  assert.equal(fileName('a\u202etxt.exe\u0000\n\u2028b', 'txt'), 'a txt.exe b.txt');
  assert.equal(fileName('The old… authorship', 'md'), 'The old authorship.md');
  assert.equal(fileName(`${'word '.repeat(11)}lighthouse keeper`, 'md'), `${'word '.repeat(11).trim()}.md`, 'a long name ends with a whole word');
  assert.equal(fileName('x'.repeat(80), 'md'), `${'x'.repeat(60)}.md`);
  assert.equal(fileName('The old…', 'md'), 'The old.md');
  assert.equal(fileName('..hidden', 'txt'), 'hidden.txt');
  assert.equal(fileName(' ..a  b', 'txt'), 'a b.txt');
  assert.equal(fileName('a..b', 'txt'), 'a..b.txt');
  assert.equal(fileName('...', 'txt'), 'lookahead.txt');
  assert.equal(fileName(' / ', 'json'), 'lookahead.json');
});

test('the name of a file has at most sixty characters, none of them half', () => {
  assert.equal(fileName('🙂'.repeat(61), 'txt'), `${'🙂'.repeat(60)}.txt`);
  assert.equal(fileName(`${'a'.repeat(59)} b`, 'txt'), `${'a'.repeat(59)}.txt`);
});

const STEP = {start: 0, removed: '', inserted: 'Once', before: [0, 0], after: [4, 4], kind: 'type', time: 5, number: 1, marks: {from: 0, before: [], after: []}};
const PLAYED = {...DOCUMENT, history: {steps: [STEP, {...STEP, start: 4, inserted: '!', number: 2}], position: 1, authors: []}, left: [{secret: 1}]};

test('a replay opens as the document up to its present text, to be played', async () => {
  const found = await readDocumentFile(fileOf(exportReplay(PLAYED), 'Mine.json'));
  assert.deepEqual(found, {...DOCUMENT, caret: 4, left: [], history: {steps: [STEP], position: 1, authors: []}, play: true});
  assert.equal((await readDocumentFile(fileOf(exportDocument(DOCUMENT), 'a.json'))).play, undefined);
});

test('a replay holds no undone step, no abandoned text and no time', () => {
  const first = exportReplay(PLAYED), now = Date.now;
  assert.doesNotMatch(first, /secret|exported/);
  Date.now = () => 1;
  assert.equal(exportReplay(structuredClone(PLAYED)), first);
  Date.now = now;
  assert.equal(JSON.parse(exportReplay({...PLAYED, settings: null})).seed, null);
});

const AUTHORED = {
  name: 'Mine', text: 'Once upon a time', model: 'a/model',
  authors: [
    {length: 4, author: 'typed', step: 1}, {length: 7, author: 'chosen', step: 2, model: 'a/model', logprob: Math.log(0.25)},
    {length: 5, author: 'chosen', step: 3, model: 'b/model', logprob: null},
  ],
};
const opened = (change = {}) => readDocumentFile(fileOf(JSON.stringify({...JSON.parse(authorshipJson(AUTHORED)), ...change}), 'a.json'));

test('a file of who wrote what opens as a document with these authors', async () => {
  const found = await opened();
  assert.deepEqual([found.name, found.text, found.model], ['Mine', AUTHORED.text, 'a/model']);
  assert.deepEqual([found.spans, found.history], [[[4, 11], [11, 16]], {steps: [], position: 0, authors: AUTHORED.authors}]);
  assert.equal(authorshipJson({...found, instruction: null, authors: found.history.authors}), authorshipJson(AUTHORED), 'and is written as the same file again');
  assert.deepEqual([found.instruction, found.instructed], ['', false]);
  const told = await opened({instruction: 'Be brief.'});
  assert.deepEqual([told.instruction, told.instructed], ['Be brief.', true], 'the page asks before it is used');
});

test('of such a file whose pieces are not its text, the text alone opens', async () => {
  const {pieces} = JSON.parse(authorshipJson(AUTHORED)), plain = documentFrom({name: 'Mine', text: AUTHORED.text, model: 'a/model'});
  for (const wrong of [undefined, 'Once', [], pieces.slice(1), [null, ...pieces], [{...pieces[0], text: 'Twice'}, ...pieces.slice(1)]])
    assert.deepEqual(await opened({pieces: wrong}), plain, JSON.stringify(wrong));
  assert.deepEqual((await opened({pieces: [{...pieces[0], author: 'nobody'}, ...pieces.slice(1)]})).history, plain.history);
});

test('such a file without a text, or of a newer version, is refused', async () => {
  await assert.rejects(opened({text: 7}), {message: '“a.json” is a document of Lookahead without a text. Nothing was opened.'});
  await assert.rejects(opened({version: 2}), {message: '“a.json” was made by a newer Lookahead than this one. Nothing was opened.'});
});
