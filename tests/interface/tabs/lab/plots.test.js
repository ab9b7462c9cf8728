import assert from 'node:assert/strict';
import {test} from 'node:test';

import {logarithmicTicks} from '../../../../interface/tabs/lab/plots.js';

const said = texts => texts.map(text => text.replaceAll('\u00a0', ' '));

test('a logarithmic axis has several labels, also within a decade', () => {
  assert.deepEqual(said(logarithmicTicks([0.0123, 0.0657, null, 0.1], true).ticktext), ['1 %', '2 %', '3 %', '5 %', '7 %', '10 %']);
  assert.deepEqual(said(logarithmicTicks([0.042, 0.1], true).ticktext), ['4 %', '5 %', '6 %', '7 %', '8 %', '9 %', '10 %']);
  assert.deepEqual(said(logarithmicTicks([8e-7, 1e-5], true).ticktext), ['0.00007 %', '0.0001 %', '0.0002 %', '0.0003 %', '0.0005 %', '0.0007 %', '0.001 %']);
  assert.deepEqual(said(logarithmicTicks([0.1, 3], true).ticktext), ['10 %', '20 %', '50 %', '100 %', '200 %', '500 %']);
  assert.deepEqual(logarithmicTicks([1e-9, 1e6], false).ticktext, ['1e-10', '1e-7', '0.0001', '0.1', '100', '100000', '100000000']);
});

test('labels of any range are three to seven that differ and enclose the values', () => {
  for (let power = -12; power < 4; power += 0.37)
    for (const span of [0, 0.01, 0.1, 0.5, 1, 1.7, 2.5, 4, 9, 15]) {
      const low = 10 ** power, high = 10 ** (power + span), {tickvals, ticktext, range} = logarithmicTicks([high, null, 0, low], true);
      assert.ok(tickvals.length >= 3 && tickvals.length <= 7 && new Set(ticktext).size === tickvals.length, `${low} to ${high}: ${ticktext}`);
      assert.ok(10 ** range[0] <= low * (1 + 1e-12) && 10 ** range[1] >= high, `${low} to ${high}: ${range}`);
    }
});

test('without a positive value the axis is left to Plotly', () => {
  assert.deepEqual(logarithmicTicks([0, null], true), {});
});
