import assert from 'node:assert/strict';
import {test} from 'node:test';

import {afterPaint} from '../../../../interface/web/ui/events.js';

test('what waits for a paint comes after a slow one, and where nothing is painted after the time that is given', t => {
  t.mock.timers.enable({apis: ['setTimeout']});
  const painted = 300, called = [];
  globalThis.requestAnimationFrame = run => setTimeout(run, painted);
  afterPaint(() => called.push('early'));
  afterPaint(() => called.push('after the paint'), 2000);
  t.mock.timers.tick(100);
  assert.deepEqual(called, ['early']);
  t.mock.timers.tick(200);
  t.mock.timers.tick(1);
  assert.deepEqual(called, ['early', 'after the paint']);
  globalThis.requestAnimationFrame = () => 0;
  afterPaint(() => called.push('in the background'), 2000);
  t.mock.timers.tick(1999);
  assert.equal(called.length, 2);
  t.mock.timers.tick(1);
  assert.deepEqual(called.slice(2), ['in the background']);
  delete globalThis.requestAnimationFrame;
});
