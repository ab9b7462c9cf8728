import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

import {BRANCH_KEYS, TEXT_KEYS, TOPICS, controlsTopic} from '../../../../interface/web/core/help_topics.js';

const WRITE = new URL('../../../../interface/tabs/writer/paper.html', import.meta.url);

test('each tab beside Write has a help with its keys, and each page of the Lab', () => {
  assert.deepEqual(Object.keys(TOPICS), ['rewrite', 'assistant', 'highlights', 'internals', 'lesson', 'cache', 'decoding', 'masks', 'speculation']);
  for (const topics of Object.values(TOPICS)) {
    assert.ok(topics.some(({isOfKeys}) => isOfKeys));
    assert.equal(new Set(topics.map(({title}) => title)).size, topics.length, 'each title stands once');
    for (const {lines} of topics) for (const [term, meaning] of lines) assert.ok(term && meaning && !/[.!]$/.test(meaning), term);
  }
});

test('keys of a text and of branches have the words of the help of Write', () => {
  const plain = readFileSync(WRITE, 'utf8').replace(/<dt>(.*?)<\/dt><dd>(.*?)<\/dd>/g, (_, term, meaning) => `\n${bare(term).replace(/ ?… ?/g, '…')}: ${bare(meaning)}\n`);
  for (const {lines} of [TEXT_KEYS, BRANCH_KEYS]) for (const [term, meaning] of lines) {
    assert.ok(plain.includes(`\n${term.replace(' … ', '…')}: ${meaning}\n`), `${term}: ${meaning}`);
  }
});

const bare = text => text.replace(/<[^>]*>/g, '').trim();

test('controls are explained once each, also under two names, without their own name, and not at all by that alone', () => {
  const {lines} = controlsTopic([
    ['Depth', 'Depth: how many tokens long each branch is.'], ['Branches', 'How many.'], ['Depth', 'Another.'], ['Copy', 'Copy'], ['Undo', 'Undo (Ctrl+Z)'], ['', 'Nobody.'], ['Send', ''],
    ['Compare both', 'Precisions: both are read.'], ['Depth 5', 'Depth: how many tokens long each branch is.'], ['Pause', 'Send nothing (Alt+P)'],
  ]);
  assert.deepEqual(lines, [
    ['Depth', 'How many tokens long each branch is.'], ['Branches', 'How many.'], ['Compare both', 'Both are read.'], ['Pause', 'Send nothing (Alt+P)'],
  ]);
});
