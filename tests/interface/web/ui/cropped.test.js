import assert from 'node:assert/strict';
import {test} from 'node:test';

import {markCropped} from '../../../../interface/web/ui/cropped.js';

/** Whether an area says that a part of its drawing is out of sight, with so many pixels outside. */
function isCropped(across, down) {
  let found = null;
  const classList = {toggle: (name, force) => { found = force; }};
  markCropped({scrollWidth: 364 + across, clientWidth: 364, scrollHeight: 256 + down, clientHeight: 256, classList});
  return found;
}

test('a drawing of which only its empty edge is out of sight is not cropped', () => {
  assert.deepEqual([[0, 0], [14, 0], [0, 14], [20, 0], [0, 20]].map(([across, down]) => isCropped(across, down)), [false, false, false, true, true]);
});
