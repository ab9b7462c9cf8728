// What people saved with earlier versions opens in this one. `fixtures/5b825e5/README.md` says how the files were made.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';

import {applyChange, inverseChange} from '../../../../interface/web/core/difference.js';
import {EditHistory} from '../../../../interface/web/core/history.js';
import {choiceOf} from '../../../../interface/web/core/choice.js';
import {decodeLink} from '../../../../interface/tabs/writer/document_link.js';
import {documentFrom} from '../../../../interface/tabs/writer/document_record.js';
import {readDocumentFile} from '../../../../interface/tabs/writer/document_files.js';
import {shapeRows} from '../../../../interface/web/core/branch_rows.js';

const FOLDER = join(import.meta.dirname, '../../fixtures/5b825e5');
const TEXT = 'The old lighthouse 🗼 stood\non the edge and it had';
const SETTINGS = {
  seed: 123456, k: 4, depth: 6, temperature: 0.8, top_p: 0.9, mode: 'sampled', until: 'tokens', order: 'path',
  banned: [{id: 436, text: ' was'}],
};
const INSTRUCTION = 'Tell a quiet story for children.';
const saved = name => readFileSync(join(FOLDER, name), 'utf-8');
const opened = (name, type) => readDocumentFile(new File([saved(name)], name, {type}));

function assertIsTheDocument(found) {
  assert.equal(found.text, TEXT);
  assert.equal(found.caret, TEXT.length);
  assert.deepEqual(found.spans.map(([start, end]) => TEXT.slice(start, end)), [' the edge', ' had']);
  assert.deepEqual(found.settings, {...SETTINGS, odds: 'tokens'});
  assert.deepEqual([found.instruction, found.instructed], [INSTRUCTION, true]);
  assert.equal(found.model, 'SmolLM2-135M-Instruct');
  assert.equal(found.name, 'Lighthouse “one”: ü');
}

function assertHistoryWorks({text, spans, history, left}) {
  assert.deepEqual(history.steps.map(({kind}) => kind), ['type', 'type', 'accept', 'type', 'accept']);
  assert.deepEqual(history.steps.filter(({ids}) => ids).map(({ids}) => ids), [[258, 260, 5595], [357, 761]]);
  assert.equal(history.steps.toReversed().reduce((after, step) => applyChange(after, inverseChange(step)), text), '');
  const kept = new EditHistory();
  kept.load(history, left);
  const moments = kept.moments({text, spans});
  assert.deepEqual(moments.map(({kind, text}) => [kind, text]), [['accepted', ' had'], ['left', '\n'], ['accepted', ' the edge']]);
  const [, leftBehind] = moments;
  assert.equal(kept.goal(leftBehind, {text, spans}).text, 'The old lighthouse 🗼 stood\non the edge\n');
}

test('an exported document opens with its text, settings and instruction', async () => {
  assertIsTheDocument(await opened('document.json', 'application/json'));
});

test('the history of an exported document can be undone and gone back to', async () => {
  assertHistoryWorks(await opened('document.json', 'application/json'));
});

test('the branches of an exported document can be drawn and chosen', () => {
  const {view} = JSON.parse(saved('document.json')), {rows, coverage} = shapeRows(view);
  assert.equal(rows.length, 4);
  assert.ok(coverage.p > 0 && coverage.p < 1);
  for (const [index, row] of rows.entries()) assert.equal(choiceOf(row, index, 0).text, row.pieces[0].text);
});

test('the tree of an exported document spells its text', () => {
  const {tree} = JSON.parse(saved('document.json')), written = tree.trunk.map(({text}) => text).join('');
  assert.ok(written.length > 0 && TEXT.endsWith(written), written);
});

test('an exported text opens as it was written', async () => {
  const found = await opened('document.txt', 'text/plain');
  assert.deepEqual([found.text, found.name], [TEXT, 'document']);
});

test('a link opens with its text, settings, seed, instruction and model', async () => {
  const found = await decodeLink(saved('link.txt').trim());
  assert.deepEqual(found, {
    text: TEXT, settings: {...SETTINGS, odds: 'tokens'}, seed: 123456, instruction: INSTRUCTION, model: 'SmolLM2-135M-Instruct',
  });
});

test('a record of the browser opens as the document it was', () => {
  const {records} = JSON.parse(saved('browser_storage.json')).indexedDB.stores;
  const [second, first] = records.map(documentFrom);
  assertIsTheDocument(first);
  assertHistoryWorks(first);
  assert.equal(second.text, 'A second text.');
});
