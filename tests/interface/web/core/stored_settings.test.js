import assert from 'node:assert/strict';
import {test} from 'node:test';

import {settingsFrom} from '../../../../interface/web/core/stored_settings.js';

test('stored settings are used as they are', () => {
  const stored = {k: 20, depth: 1, length: 'word'};
  assert.deepEqual(settingsFrom(stored), stored);
  assert.deepEqual(settingsFrom({k: 1, depth: 40, length: 'tokens'}), {k: 1, depth: 40, length: 'tokens'});
});

test('each setting that is missing or invalid is left out, and the others are used', () => {
  assert.deepEqual(settingsFrom({length: 'word'}), {length: 'word'});
  assert.deepEqual(settingsFrom({k: 0, depth: 3, length: 'line'}), {depth: 3});
  assert.deepEqual(settingsFrom({k: 21, depth: 41, words: true}), {});
  assert.deepEqual(settingsFrom({k: 2.5, depth: '7', length: ['word']}), {});
});

test('what is no object holds no settings', () => {
  for (const value of [null, undefined, 5, 'word', [], [{k: 3}]]) assert.deepEqual(settingsFrom(value), {});
});
