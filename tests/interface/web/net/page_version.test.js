import assert from 'node:assert/strict';
import {test} from 'node:test';

import {isOutdated, isSignedOut} from '../../../../interface/web/net/page_version.js';

// The answer of the server to a request for the page's own script.
const answers = (status, text) => async (address, options) => {
  assert.match(address, /page_version\.js$/);
  assert.equal(options.cache, 'no-store');
  return {status, text: async () => text};
};

for (const [name, status, text, outdated] of [
  ['another version', 404, 'This script belongs to another version of the page. Reload the page.', true],
  ['the same version', 200, "// This script belongs to another version of the page.", false],
  ['an unknown script', 404, 'There is no such script.', false],
  ['a proxy without a server behind it', 404, '<html>Not found</html>', false],
  ['a proxy that waits for the server', 502, 'This script belongs to another version of the page.', false],
]) {
  test(`${name}: ${outdated ? 'outdated' : 'not outdated'}`, async () => {
    assert.equal(await isOutdated(answers(status, text)), outdated);
  });
}

test('a server that does not answer does not make the page outdated', async () => {
  assert.equal(await isOutdated(() => Promise.reject(new Error('no connection'))), false);
});

for (const [name, status, expected] of [['a known sign-in, or no accounts', 200, false], ['an unknown sign-in', 401, true], ['a proxy', 502, false]]) {
  test(`${name}: ${expected ? 'signed out' : 'not signed out'}`, async () => {
    const load = async address => {
      assert.match(address, /\/gradio_api\/login_check$/);
      return {status};
    };
    assert.equal(await isSignedOut(load), expected);
  });
}

test('a server that does not answer has not forgotten the sign-in', async () => {
  assert.equal(await isSignedOut(() => Promise.reject(new Error('no connection'))), false);
});
