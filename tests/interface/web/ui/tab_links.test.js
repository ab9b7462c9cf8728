import assert from 'node:assert/strict';
import {test} from 'node:test';

import {addressAfterClick, tabNamesOf} from '../../../../interface/web/ui/tab_links.js';

test('a fragment names a tab and the one in it', () => {
  assert.deepEqual(['#lab-cache', '#lab-cache?k=5&prompt=a-b'].map(tabNamesOf), [['lab', 'cache'], ['lab', 'cache']]);
});

test('a document in a link, and any other fragment, names no tab', () => {
  assert.deepEqual(['', '#', '#t=a-b', '#lab', '#lab-', '#Lab-Cache', '#lab-cache=1'].map(tabNamesOf), [[], [], [], [], [], [], []]);
});

test('after a click on another tab the address names that one, and after other clicks it stays', () => {
  const address = '#lab-cache?prompt=a';
  assert.equal(addressAfterClick(address, 'lesson', true), '#lab-lesson');
  assert.equal(addressAfterClick(address, 'write', false), '');
  for (const clicked of ['', 'lab', 'cache']) assert.equal(addressAfterClick(address, clicked, clicked === 'cache'), null);
  for (const fragment of ['', '#t=a-b']) assert.equal(addressAfterClick(fragment, 'lesson', true), null);
});
