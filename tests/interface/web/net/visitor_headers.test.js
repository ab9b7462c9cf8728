import assert from 'node:assert/strict';
import {test} from 'node:test';

import {visitorHeaders} from '../../../../interface/web/net/visitor_headers.js';

// A page in a frame of a site that answers with this, or not at all.
function framed(answer, more = {}) {
  const asked = [];
  const parent = {
    postMessage(message, origin, [port]) {
      asked.push([message, origin]);
      if (answer !== undefined) port.postMessage(answer);
      else port.close();
    },
  };
  return {asked, page: {parent, location: {hostname: 'ada-lookahead.hf.space'}, supports_zerogpu_headers: true, ...more}};
}

test('in the frame of a Space the site around it is asked for the headers', async () => {
  const {page, asked} = framed({'x-ip-token': 'abc'});
  assert.deepEqual(await visitorHeaders(page), {'x-ip-token': 'abc'});
  assert.deepEqual(asked, [['zerogpu-headers', 'https://huggingface.co']]);
});

test('nobody is asked outside of a frame, on another host, or if the site has not offered it', () => {
  const {page} = framed({});
  const alone = {...page, parent: undefined};
  const own = {...page};
  own.parent = own;
  for (const other of [alone, own, {...page, location: {hostname: 'example.org'}}, {...page, supports_zerogpu_headers: false}]) {
    assert.equal(visitorHeaders(other), null);
  }
  assert.equal(visitorHeaders(), null);
});

test('without an answer there are no headers', async t => {
  t.mock.timers.enable({apis: ['setTimeout']});
  const {page} = framed(undefined);
  const headers = visitorHeaders(page);
  t.mock.timers.tick(1000);
  assert.equal(await headers, null);
});

test('an answer of another kind counts as none', async () => {
  assert.equal(await visitorHeaders(framed('no').page), null);
});
