import assert from 'node:assert/strict';
import {test} from 'node:test';

import {tabNamesOf} from '../../../../interface/web/ui/tab_links.js';

test('a fragment names a tab and the one in it', () => {
  assert.deepEqual(['#lab-cache', '#lab-cache?k=5&prompt=a-b'].map(tabNamesOf), [['lab', 'cache'], ['lab', 'cache']]);
});

test('a document in a link, and any other fragment, names no tab', () => {
  assert.deepEqual(['', '#', '#t=a-b', '#lab', '#lab-', '#Lab-Cache', '#lab-cache=1'].map(tabNamesOf), [[], [], [], [], [], [], []]);
});
