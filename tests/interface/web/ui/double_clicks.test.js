import assert from 'node:assert/strict';
import {test} from 'node:test';

import {DoubleClicks} from '../../../../interface/web/ui/double_clicks.js';

const tapAt = (timeStamp, more = {}) => ({clientX: 100, clientY: 100, timeStamp, detail: 1, pointerType: 'touch', ...more});

test('the second tap of a double tap begins at most 300 ms after the first one, however long the finger rests then', () => {
  const taps = new DoubleClicks();
  assert.equal(taps.isSecond(tapAt(0)), false);
  taps.begin(tapAt(0));
  assert.equal(taps.isSecond(tapAt(300)), true);
  assert.equal(taps.isSecond(tapAt(301)), false);
  assert.equal(taps.isSecond(tapAt(420), 280), true);
  assert.equal(taps.isSecond(tapAt(420), 310), false);
  assert.equal(taps.isSecond(tapAt(200, {clientX: 130})), false);
});
