import assert from 'node:assert/strict';
import {test} from 'node:test';
import {deflateRawSync, inflateRawSync} from 'node:zlib';

import {MOST_LINK, decodeLink, encodeLink, isLink} from '../../../../interface/tabs/writer/document_link.js';
import {Dice} from '../../../support/scripts/dice.js';

const CHOSEN = {spans: [[0, 4]], accepted: [{start: 0, end: 4, ids: [7], healed: false}], edits: [{row: [3, 4], before: [3], text: ' sea'}]};
const DOCUMENT = {text: 'Once 🙂', settings: {k: 5, odds: 'words'}, seed: 7, instruction: 'Write.', model: 'a/model', ...CHOSEN};

// What a link holds, packed and unpacked by other code.
const fragmentOf = packed => `#t=${deflateRawSync(Buffer.from(packed)).toString('base64url')}`;
const contentOf = fragment => JSON.parse(inflateRawSync(Buffer.from(fragment.slice(3), 'base64url')).toString());
const refusal = fragment => decodeLink(fragment).then(() => 'It was opened.', error => error.message);

const BROKEN = 'This link is broken: part of it is missing or changed. Nothing was opened; ask for it once more.';
const STRANGE = 'This link holds no text that Lookahead can read. Nothing was opened.';
const HUGE = 'This link holds more than a text of 1 MB, so it was not opened. Ask for a file instead.';

test('a link brings the document that was packed into it', async () => {
  const dice = new Dice(1);
  for (let turn = 0; turn < 20; turn += 1) {
    const document = {...DOCUMENT, text: dice.text(300), seed: dice.upTo(1e9)};
    assert.deepEqual(await decodeLink(await encodeLink(document)), document);
  }
});

test('a link holds the document as JSON, deflated, in letters that addresses may hold', async () => {
  const dice = new Dice(2), text = Array.from({length: 400}, () => String.fromCodePoint(32 + dice.upTo(900))).join('');
  const fragment = await encodeLink({...DOCUMENT, text});
  assert.match(fragment, /^#t=[\w-]+$/);
  assert.deepEqual(contentOf(fragment), {version: 1, ...DOCUMENT, text});
});

test('a long text is packed whole', async () => {
  const dice = new Dice(3), text = Array.from({length: 30_000}, () => String.fromCodePoint(32 + dice.upTo(90))).join('');
  assert.equal(contentOf(await encodeLink({text})).text, text);
  assert.equal((await decodeLink(await encodeLink({text}))).text, text);
});

test('a link brings the name that a document was given, and none if it has none', async () => {
  const named = async name => (await decodeLink(await encodeLink({...DOCUMENT, name}))).name;
  assert.deepEqual([await named('My story'), await named(''), await named('n'.repeat(300))], ['My story', undefined, 'n'.repeat(200)]);
  assert.equal((await decodeLink(fragmentOf(JSON.stringify({text: 'a', name: ['x']})))).name, undefined);
});

test('missing fields of a document are null', async () => {
  assert.deepEqual(await decodeLink(await encodeLink({text: ''})), {text: '', settings: null, seed: null, instruction: null, model: null});
});

test('fields of a link with a wrong type are null', async () => {
  const strange = {version: 1, text: 'a', settings: [1], seed: 0.5, instruction: '', model: 7};
  assert.deepEqual(await decodeLink(fragmentOf(JSON.stringify(strange))), {text: 'a', settings: null, seed: null, instruction: null, model: null});
  const {instruction, model} = await decodeLink(fragmentOf(JSON.stringify({text: 'a', instruction: 7, model: 'm'.repeat(201)})));
  assert.deepEqual([instruction, model], [null, 'm'.repeat(200)]);
});

test('a fragment is a link where it begins as one', () => {
  assert.deepEqual(['#t=', '#t=abc', '#', '', '#x#t=abc', 't=abc'].map(isLink), [true, true, false, false, false, false]);
});

test('a fragment that is no link is refused', async () => assert.equal(await refusal('#x=abc'), STRANGE));

test('a link that was cut or changed is refused', async () => {
  const fragment = await encodeLink(DOCUMENT);
  for (const spoiled of ['#t=', '#t=%20', '#t=a', '#t=!', fragment.slice(0, -8), `${fragment}=`, `${fragment} `, `#t= ${fragment.slice(3)}`])
    assert.equal(await refusal(spoiled), BROKEN, spoiled);
  assert.equal(await refusal(fragmentOf('{"text": "a')), BROKEN);
  assert.equal(await refusal(fragmentOf([...Buffer.from('{"text": "'), 0xff, ...Buffer.from('"}')])), BROKEN);
});

test('a link without a text is refused', async () => {
  for (const content of ['{}', '[]', 'null', '"a"', '{"text": 7}']) assert.equal(await refusal(fragmentOf(content)), STRANGE, content);
});

test('a link of a newer version is refused', async () => {
  const newer = 'This link was made by a newer Lookahead than this one, so it was not opened. Ask for a file instead.';
  assert.equal(await refusal(fragmentOf('{"text": "a", "version": 2}')), newer);
  for (const version of ['1', '"2"', 'null']) assert.equal(await refusal(fragmentOf(`{"text": "a", "version": ${version}}`)), 'It was opened.', version);
});

test('a small link that unpacks to more than a megabyte is refused', async () => {
  const most = 1024 * 1024, frame = '{"text":""}'.length;
  assert.equal(await refusal(fragmentOf(`{"text":"${'a'.repeat(most - frame + 1)}"}`)), HUGE);
  assert.equal(await refusal(fragmentOf(`{"text":"${'a'.repeat(most - frame)}"}`)), 'It was opened.');
});

test('a link of more than half a million characters is refused unread', async () => {
  assert.equal(await refusal(`#t=${'a'.repeat(512 * 1024 - 2)}`), HUGE);
  assert.equal(await refusal(`#t=${'a'.repeat(512 * 1024 - 3)}`), BROKEN);
});

test('a browser that cannot pack says so', async t => {
  for (const [name, run] of [['CompressionStream', () => encodeLink(DOCUMENT)], ['DecompressionStream', () => decodeLink(fragmentOf('{}'))]]) {
    const kept = globalThis[name];
    t.after(() => { globalThis[name] = kept; });
    delete globalThis[name];
    await assert.rejects(run(), {message: 'This browser cannot pack a text into a link. Export a file instead.'});
    globalThis[name] = kept;
  }
});

test('the longest link has 8192 characters', () => assert.equal(MOST_LINK, 8192));

test('a link of a replay brings the history and says that it is to be played', async () => {
  const replay = {...DOCUMENT, history: {steps: [], position: 0}, play: true};
  assert.deepEqual(await decodeLink(await encodeLink(replay)), replay);
  for (const play of [1, 'true', false, null]) assert.equal('play' in await decodeLink(fragmentOf(JSON.stringify({text: 'a', play}))), false);
});
