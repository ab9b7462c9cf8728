import assert from 'node:assert/strict';
import {test} from 'node:test';

import {htmlPage} from '../../../../interface/tabs/writer/html_page.js';

test('a page may ask nobody for anything, and only one with a script may run it', () => {
  const plain = htmlPage({title: 'A <title>', body: '<p>x</p>'}), live = htmlPage({title: 'A', body: '<p>x</p>', script: 'run();', style: 'p {}'});
  assert.match(plain, /content="default-src 'none'; style-src 'unsafe-inline'"/);
  assert.match(plain, /<title>A &lt;title&gt;<\/title>/);
  assert.doesNotMatch(plain, /<script/);
  assert.match(live, /content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"/);
  assert.match(live, /<script>\nrun\(\);\n<\/script>/);
  assert.match(live, /\np \{\}\n<\/style>/);
  assert.match(plain, /<main>\n<p>x<\/p>\n<\/main>/);
  assert.match(plain, /prefers-color-scheme: dark/);
});
