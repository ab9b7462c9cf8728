import assert from 'node:assert/strict';
import {test} from 'node:test';

import {runLink, runOf} from '../../../../interface/tabs/lab/run_link.js';

test('a link holds the run that it was made of, whatever is in the prompt', () => {
  for (const prompt of ['After careful', 'a&b=c#d?e+f %20', 'naïve 🙂 中文\n\tزهرة']) {
    const run = {prompt, k: 5, depth: 100, levels: 2, precisions: true};
    assert.deepEqual(runOf(runLink(run)), run);
  }
});

test('a fragment of another kind is no run', () => {
  for (const fragment of ['', '#', '#t=abc', '#lab-cached', '#lab-decoding?k=5']) assert.equal(runOf(fragment), null);
  assert.deepEqual(runOf('#lab-cache'), {});
});

test('what is not allowed is left out of a run', () => {
  assert.deepEqual(runOf('#lab-cache?k=0&depth=101&levels=two'), {});
  assert.deepEqual(runOf('#lab-cache?precisions=maybe'), {});
  assert.deepEqual(runOf('#lab-cache?precisions=false'), {precisions: false});
  assert.deepEqual(runOf('#lab-cache?k=1.5&depth=&levels=4&prompt='), {});
  assert.deepEqual(runOf(`#lab-cache?prompt=${'x'.repeat(2001)}&k=3`), {k: 3});
});
