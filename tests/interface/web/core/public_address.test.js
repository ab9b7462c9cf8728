import assert from 'node:assert/strict';
import {test} from 'node:test';

import {publicAddress} from '../../../../interface/web/core/public_address.js';

const at = host => ({href: `http://${host}/#t=abc`, hostname: new URL(`http://${host}/`).hostname});
const reach = host => {
  const {sentence} = publicAddress(at(host));
  return sentence ? (sentence.startsWith('Only this computer') ? 'computer' : 'network') : 'all';
};

test('an address of this computer alone says so', () => {
  for (const host of ['localhost', 'page.localhost', '127.0.0.1:7860', '127.10.20.30', '0.0.0.0', '[::1]', '[::]']) assert.equal(reach(host), 'computer', host);
  const {sentence, local} = publicAddress(at('localhost'));
  assert.equal(sentence, 'Only this computer can open this link.');
  assert.equal(local, true);
});

test('an address of a network says so', () => {
  const near = ['10.1.2.3', '192.168.1.2', '172.16.0.1', '172.19.0.1', '172.20.0.1', '172.29.1.1', '172.30.0.1', '172.31.0.1', '169.254.1.1', 'box.local', '[fd00::1]', '[fc00::1]', '[fe80::1]'];
  for (const host of near) assert.equal(reach(host), 'network', host);
  assert.equal(publicAddress(at('10.1.2.3')).sentence, 'Only computers in the same network can open this link.');
  for (const host of near) assert.equal(publicAddress(at(host)).local, false, host);
});

test('a public address needs no sentence', () => {
  const far = ['example.org', '8.8.8.8', '172.15.0.1', '172.32.0.1', '11.0.0.1', '192.169.1.1', '110.1.2.3', 'localhost.example.org', 'local', 'xlocalhost', 'box.local.org', '[2001:db8::1]'];
  for (const host of far) assert.equal(reach(host), 'all', host);
});

test('a link begins with the address of the page without query and fragment', () => {
  assert.equal(publicAddress(at('example.org')).address, 'http://example.org/');
  const visited = {
    'https://example.org/?secret=1#t=x': 'https://example.org/', 'https://example.org/a/b?x=%23&y=?#': 'https://example.org/a/b',
    'https://example.org/a#b?c': 'https://example.org/a', 'http://127.0.0.1:7860/?__theme=dark': 'http://127.0.0.1:7860/',
  };
  for (const [href, address] of Object.entries(visited)) assert.equal(publicAddress(new URL(href)).address, address);
});

test('a configured address is taken without its query, and says nothing', () => {
  assert.equal(publicAddress(at('localhost'), 'https://example.org/a?secret=1').address, 'https://example.org/a');
  assert.deepEqual(publicAddress(at('localhost'), 'https://example.org/a#b'), {address: 'https://example.org/a', sentence: '', local: false});
});
