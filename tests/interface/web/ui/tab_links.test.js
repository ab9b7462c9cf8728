import assert from 'node:assert/strict';
import {test} from 'node:test';

import {tabNameOf} from '../../../../interface/web/ui/tab_links.js';

test('a fragment names a tab by its first part', () => {
  assert.deepEqual(['#lab-cache', '#lab-cache?k=5&prompt=a-b'].map(tabNameOf), ['lab', 'lab']);
});

test('a document in a link, and any other fragment, names no tab', () => {
  assert.deepEqual(['', '#', '#t=a-b', '#lab', '#lab-', '#Lab-Cache', '#lab-cache=1'].map(tabNameOf), ['', '', '', '', '', '', '']);
});
