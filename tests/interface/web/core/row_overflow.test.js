import assert from 'node:assert/strict';
import {test} from 'node:test';
import {hiddenPart} from '../../../../interface/web/core/row_overflow.js';

const part = (scrollLeft, scrollWidth, clientWidth = 200) => hiddenPart({scrollLeft, scrollWidth, clientWidth});

test('a row that is longer than its room goes on, and at its end leads back', () => {
  assert.deepEqual([part(0, 300), part(60, 300), part(100, 300)], ['on', 'on', 'back']);
  assert.deepEqual([part(0, 200), part(0, 150)], [null, null]);
});

test('a few pixels of the fade at the end do not count', () => {
  assert.deepEqual([part(0, 208), part(0, 209), part(8, 208), part(9, 209)], [null, 'on', null, 'back']);
});

test('rows from right to left have negative positions', () => {
  assert.deepEqual([part(-60, 300), part(-100, 300)], ['on', 'back']);
});
