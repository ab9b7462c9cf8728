import assert from 'node:assert/strict';
import {test} from 'node:test';
import {hiddenPart} from '../../../../interface/web/core/row_overflow.js';

const part = (scrollLeft, scrollWidth, clientWidth = 200) => hiddenPart({scrollLeft, scrollWidth, clientWidth});

test('a row that is longer than its room goes on, and at its end leads back', () => {
  assert.deepEqual([part(0, 300), part(60, 300), part(100, 300)], ['on', 'on', 'back']);
  assert.deepEqual([part(0, 200), part(0, 150)], [null, null]);
});

test('the empty room at the end does not count', () => {
  assert.deepEqual([part(0, 228), part(0, 229), part(28, 256), part(28, 257)], [null, 'on', 'back', 'on']);
});

test('a row that has been scrolled a little at its end leads back: its first token may be cut', () => {
  assert.deepEqual([part(0.5, 228), part(1, 228), part(20, 248), part(-20, 248)], [null, 'back', 'back', 'back']);
});

test('rows from right to left have negative positions', () => {
  assert.deepEqual([part(-60, 300), part(-100, 300)], ['on', 'back']);
});
