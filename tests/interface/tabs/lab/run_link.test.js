import assert from 'node:assert/strict';
import {test} from 'node:test';

import {runLink, runOf} from '../../../../interface/tabs/lab/run_link.js';

const MARK = '#lab-cache', KINDS = {prompt: 'text', k: {low: 1, high: 20}, depth: {low: 1, high: 100}, heat: {low: 0, high: 2, step: 0.1}, both: 'switch'};
const runIn = fragment => runOf(fragment, MARK, KINDS);

test('a link holds the run that it was made of, whatever is in the prompt', () => {
  for (const prompt of ['After careful', 'a&b=c#d?e+f %20', 'naïve 🙂 中文\n\tزهرة']) {
    const run = {prompt, k: 5, depth: 100, heat: 0.7, both: true};
    assert.deepEqual(runIn(runLink(MARK, run)), run);
  }
});

test('a fragment of another kind is no run', () => {
  for (const fragment of ['', '#', '#t=abc', '#lab-cached', '#lab-decoding?k=5']) assert.equal(runIn(fragment), null);
  assert.deepEqual(runIn('#lab-cache'), {});
});

test('what is not allowed is left out of a run', () => {
  assert.deepEqual(runIn('#lab-cache?k=0&depth=101&heat=two&more=1'), {});
  assert.deepEqual(runIn('#lab-cache?both=maybe'), {});
  assert.deepEqual(runIn('#lab-cache?both=false'), {both: false});
  assert.deepEqual(runIn('#lab-cache?k=1.5&depth=&heat=2.1&prompt='), {});
  assert.deepEqual(runIn('#lab-cache?heat=NaN&k=Infinity'), {});
  assert.deepEqual(runIn(`#lab-cache?prompt=${'x'.repeat(2001)}&k=3`), {k: 3});
});
