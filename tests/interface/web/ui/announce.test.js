import assert from 'node:assert/strict';
import {test} from 'node:test';

import {announce, announcedIn} from '../../../../interface/web/ui/announce.js';

test('a sentence leaves its region once it was heard, and is not announced again before another one', t => {
  t.mock.timers.enable({apis: ['setTimeout']});
  const region = {textContent: ''}, shown = () => region.textContent;
  announce(region, 'Five rows.');
  t.mock.timers.tick(4999);
  assert.equal(shown(), 'Five rows.');
  t.mock.timers.tick(1);
  assert.deepEqual([shown(), announcedIn(region)], ['', 'Five rows.']);
  announce(region, 'Five rows.');
  assert.equal(shown(), '');
  announce(region, 'Five rows.', {again: true});
  assert.equal(shown(), 'Five rows.', 'as after a second press of a button');
  t.mock.timers.tick(3000);
  announce(region, 'Four rows.');
  t.mock.timers.tick(3000);
  assert.equal(shown(), 'Four rows.', 'each has its own time');
  t.mock.timers.tick(2000);
  assert.equal(shown(), '');
});
