import assert from 'node:assert/strict';
import {test} from 'node:test';

import {isPlainObject} from '../../../../interface/web/core/json_values.js';

test('an object is plain if it is neither null nor a list', () => {
  assert.deepEqual([{}, [], null, undefined, 'x', 1].map(isPlainObject), [true, false, false, false, false, false]);
});
