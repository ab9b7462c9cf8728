import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

import {TOPICS, WRITE_TOPICS, controlsTopic} from '../../../../interface/web/core/help_topics.js';

const WRITE = new URL('../../../../interface/tabs/writer/paper.html', import.meta.url);

test('each tab beside Write has a help with its keys, and each page of the Lab', () => {
  assert.deepEqual(Object.keys(TOPICS), ['rewrite', 'assistant', 'highlights', 'internals', 'lesson', 'cache', 'decoding', 'masks', 'speculation']);
  for (const topics of Object.values(TOPICS)) {
    assert.ok(topics.some(({isOfKeys}) => isOfKeys));
    assert.equal(new Set(topics.map(({title}) => title)).size, topics.length, 'each title stands once');
    for (const {lines} of topics) for (const [term, meaning] of lines) assert.ok(term && meaning && !/[.!]$/.test(meaning), term);
  }
});

test('Write explains its words and keys by the lines of the other helps, and has none of its own in its markup', () => {
  const {words, keys} = WRITE_TOPICS, others = TOPICS.rewrite.flatMap(({lines}) => lines).map(String);
  const lines = [...words, ...keys].flatMap(topic => topic.lines), own = lines.filter(line => !others.includes(String(line))).map(([term]) => term);
  assert.deepEqual(own, ['share', 'depth', 'temperature', '← → ↑ ↓', 'Enter', '+ − 0', 'Delete']);
  assert.ok(!readFileSync(WRITE, 'utf8').includes('<dt>'));
  for (const [term, meaning] of lines) assert.ok(term && meaning && !/[.!]$/.test(meaning), term);
});

test('what a finger does stands after what a mouse does, and never alone', () => {
  const lines = [WRITE_TOPICS.words, ...Object.values(TOPICS)].flat().flatMap(topic => topic.lines).map(line => line.join(': '));
  const byFinger = lines.filter(line => /\b(tap|swipe|hold)\b/.test(line) && !line.startsWith('coverage'));
  assert.ok(byFinger.length);
  assert.doesNotMatch(readFileSync(WRITE, 'utf8'), /fingers/, 'nor in a title');
  for (const line of byFinger) assert.match(line, /\b(click|point)\b.*\b(tap|hold)\b/, line);
});

test('the keys of an analysed text name the one that leads to its text field', () => {
  const {lines} = TOPICS.highlights.find(({title}) => title === 'In the analysed text');
  assert.ok(lines.some(([keys, meaning]) => keys === 'Alt ↑' && meaning === 'go to the text field; branches in its place are closed'));
});

test('the tabs with branches explain a fork in the same words', () => {
  const forks = topics => topics.flatMap(({lines}) => lines).filter(([term]) => term === 'fork');
  const [write, ...more] = forks(WRITE_TOPICS.words);
  assert.equal(more.length, 0);
  for (const name of ['rewrite', 'assistant']) assert.deepEqual(forks(TOPICS[name]), [write], name);
});

test('the button of a key is no control: the keys are explained by themselves', () => {
  assert.deepEqual(controlsTopic([['?', 'Help (?)'], ['Copy', 'Copy the text']]).lines, [['Copy', 'Copy the text']]);
});

test('controls are explained once each, also under two names, without their own name, and not at all by that alone', () => {
  const {lines} = controlsTopic([
    ['Depth', 'Depth: how many tokens long each branch is.'], ['Branches', 'How many.'], ['Depth', 'Another.'], ['Copy', 'Copy'], ['Undo', 'Undo (Ctrl+Z)'], ['', 'Nobody.'], ['Send', ''],
    ['Compare both', 'Precisions: both are read.'], ['Depth 5', 'Depth: how many tokens long each branch is.'], ['Pause', 'Send nothing (Alt+P)'],
  ]);
  assert.deepEqual(lines, [
    ['Depth', 'How many tokens long each branch is.'], ['Branches', 'How many.'], ['Compare both', 'Both are read.'], ['Pause', 'Send nothing (Alt+P)'],
  ]);
});
