import assert from 'node:assert/strict';
import {test} from 'node:test';

import {oddsAfter, oddsOfAll, rawOdds, oddsOfAny, unpackNode} from '../../../../interface/web/core/reheated_odds.js';
import {formatPercent} from '../../../../interface/web/core/figures_and_labels.js';
import {Dice, withDice} from '../../../support/scripts/dice.js';
import {heated, nucleus, order, packed, randomRow} from '../../../support/scripts/rows.js';

const GRID = Array.from({length: 20}, (_, index) => (index + 1) / 10);

// Within one per cent, and what packing rounds.
function assertClose(found, wanted, temperature, what) {
  const most = 0.002 / Math.max(temperature, 0.02) + 0.01;
  assert.ok(Math.abs(found - wanted) <= most * Math.max(wanted, 1e-12) + 1e-9, `${what}: ${found}, and not ${wanted}`);
}

test('a packed node holds sums at twenty temperatures and the drops of its tokens', () => {
  const numbers = [...Array.from({length: 20}, (_, index) => 60_000 - index), 0, 300, 65_535];
  const node = unpackNode(Buffer.from(numbers.flatMap(number => [number & 255, number >> 8])).toString('base64'));
  assert.deepEqual([...node.heats], numbers.slice(0, 20).map(number => number / 5000));
  assert.deepEqual([...node.drops], [0, 0.15, 32.7675]);
});

test('odds at the packed temperatures are those of the softmax over the whole row', () => withDice(12, dice => {
  const row = randomRow(dice, {vocabulary: dice.among([20, 64, 65, 300]), spread: dice.among([0.5, 2.5, 6])}), node = unpackNode(packed(row));
  for (const temperature of GRID) {
    const after = oddsAfter(node, temperature, 1), wanted = heated(row, temperature);
    for (const token of [...order(row).slice(0, 5), dice.upTo(row.length - 1)]) {
      const {p, bound} = after(row[token]);
      assertClose(p, wanted[token], temperature, `at ${temperature}`);
      assert.equal(bound, false);
    }
  }
}));

test('odds between the packed temperatures are those of the softmax over the whole row', () => withDice(12, dice => {
  const row = randomRow(dice), node = unpackNode(packed(row));
  for (const temperature of [0.55, 0.72, 0.99, 1.01, 1.25, 1.98]) {
    const wanted = heated(row, temperature), after = oddsAfter(node, temperature, 1);
    for (const token of order(row).slice(0, 5)) assertClose(after(row[token]).p, wanted[token], temperature, `at ${temperature}`);
  }
}));

test('odds below the lowest packed temperature lie between those at 0 and at 0.1', () => withDice(12, dice => {
  const row = randomRow(dice, {alike: dice.among([1, 2, 3])}), node = unpackNode(packed(row)), [first] = order(row);
  const [cold, warm] = [heated(row, 0)[first], heated(row, 0.1)[first]];
  const found = oddsAfter(node, 0.05, 1)(row[first]).p;
  assert.ok(found <= cold * 1.02 && found >= warm * 0.98, `${cold} ${found} ${warm}`);
  const half = Math.exp((Math.log(cold) + Math.log(warm)) / 2);
  assertClose(found, half, 0.05, 'in the middle of both');
}));

test('beyond the highest packed temperature the odds keep its sum', () => {
  const row = randomRow(new Dice(3)), node = unpackNode(packed(row)), [first] = order(row);
  assertClose(oddsAfter(node, 3, 1)(row[first]).p, heated(row, 2)[first], 2, 'of the likeliest');
});

test('the odds that top-p leaves have a sum of one', () => withDice(20, dice => {
  const row = randomRow(dice, {vocabulary: dice.among([20, 300])}), node = unpackNode(packed(row)), temperature = dice.among([0.3, 1, 1.5]);
  for (const topP of [0.05, 0.3, 0.6]) {
    const after = oddsAfter(node, temperature, topP), odds = row.map(logprob => after(logprob));
    if (odds.every(({bound}) => !bound)) assert.ok(Math.abs(odds.reduce((sum, {p}) => sum + p, 0) - 1) < 1e-9);
  }
}));

test('no odds are above one', () => withDice(6, dice => {
  const row = randomRow(dice, {spread: 20}), node = unpackNode(packed(row)), most = Math.max(...row);
  for (const temperature of [0, 0.01, 0.1, 1, 2]) {
    for (const topP of [0.01, 0.5, 1]) {
      const {p} = oddsAfter(node, temperature, topP)(most + 1e-4);
      assert.ok(p <= 1, `${p} at ${temperature}, ${topP}`);
    }
  }
}));

test('at temperatures between 0 and 1 no token is said to be certain, as no coverage is', () => withDice(6, dice => {
  const row = randomRow(dice, {spread: 20}), node = unpackNode(packed(row)), most = Math.max(...row);
  for (const temperature of [0.01, 0.1, 0.5]) {
    const {p} = oddsAfter(node, temperature, 1)(most + 1e-4);
    if (p > 0.995) assert.equal(formatPercent({p}), '>\u00a099\u00a0%', `${p} at ${temperature}`);
  }
  assert.equal(formatPercent(oddsAfter(node, 0.1, 1)(most + 1)), '>\u00a099\u00a0%', 'also where rounding makes it likelier');
}));

test('at temperature 0 the likeliest is certain and all others are impossible', () => withDice(12, dice => {
  const row = randomRow(dice), node = unpackNode(packed(row)), [first, second, ...others] = order(row);
  if (row[first] - row[second] < 0.001) return;   // packed, they cannot be told apart
  for (const temperature of [0, -1]) {
    const after = oddsAfter(node, temperature, dice.among([0.3, 1]));
    assert.deepEqual(after(row[first]), {p: 1, bound: false});
    for (const token of [second, ...others]) assert.deepEqual(after(row[token]), {p: 0, bound: false});
  }
}));

test('at temperature 0 tokens that are as likely as the likeliest share it', () => withDice(12, dice => {
  const row = randomRow(dice, {alike: 3}), node = unpackNode(packed(row)), most = Math.max(...row);
  const alike = row.filter(one => one === most).length, after = oddsAfter(node, 0, 1);
  assert.deepEqual(after(most), {p: 1 / alike, bound: false});
}));

test('at temperature 0 a vocabulary whose tokens are all alike is shared evenly', () => {
  const row = Array.from({length: 10}, () => Math.log(0.1)), after = oddsAfter(unpackNode(packed(row)), 0, 1);
  assert.deepEqual(after(Math.log(0.1)), {p: 0.1, bound: false});
  assert.deepEqual(after(Math.log(0.1) - 0.01), {p: 0, bound: false});
});

test('with top-p the odds are those of the likeliest tokens that reach it, and others are impossible', () => withDice(15, dice => {
  const row = randomRow(dice, {vocabulary: dice.among([20, 64, 300]), spread: dice.among([2.5, 5])}), node = unpackNode(packed(row));
  const tokens = order(row);
  for (const temperature of [0.3, 0.7, 1, 1.5]) {
    for (const topP of [0.05, 0.5, 0.8, 0.95]) {
      const wanted = nucleus(row, temperature, topP), after = oddsAfter(node, temperature, topP);
      const inside = wanted.kept.size, edge = row[tokens[inside - 1]] - row[tokens[inside]];
      // Rounding may put the edge elsewhere, where the mass just reaches top-p or two tokens cannot be told apart.
      if (wanted.margin < 0.005 || inside > 60 || edge < 0.002) continue;
      for (const token of tokens) {
        const {p, bound} = after(row[token]);
        assert.equal(bound, false);
        if (wanted.kept.has(token)) assertClose(p, wanted.odds[token], temperature, `at ${temperature}, ${topP}`);
        else assert.equal(p, 0);
      }
    }
  }
}));

test('tokens that are as likely as the last one within top-p are within it', () => {
  const row = [0.5, 0.125, 0.125, 0.125, 0.125].map(Math.log), after = oddsAfter(unpackNode(packed(row)), 1, 0.55);
  assertClose(after(row[0]).p, 0.5, 1, 'of the likeliest');
  assertClose(after(row[4]).p, 0.125, 1, 'of the last');
});

test('a small vocabulary within top-p has no bounds', () => {
  const row = [0.5, 0.3, 0.1999, 0.0001].map(Math.log), after = oddsAfter(unpackNode(packed(row)), 1, 0.99999);
  row.forEach(logprob => assertClose(after(logprob).p, Math.exp(logprob), 1, 'of each'));
  assert.equal(after(row[3]).bound, false);
  assert.equal(after(row[3] - 0.1).p, 0);
});

test('a likeliest token that reaches top-p alone is certain', () => {
  const row = [0.9, 0.05, 0.05].map(Math.log), after = oddsAfter(unpackNode(packed(row)), 1, 0.9 - 0.001);
  assertClose(after(row[0]).p, 1, 1, 'of the likeliest');
  assert.equal(after(row[1]).p, 0);
});

test('top-p beyond the 64 likeliest tokens gives correct bounds', () => withDice(6, dice => {
  const row = randomRow(dice, {vocabulary: 2000, spread: 1}), node = unpackNode(packed(row));
  for (const topP of [0.9, 0.99]) {
    const wanted = nucleus(row, 1, topP), after = oddsAfter(node, 1, topP);
    for (const token of [...order(row).slice(0, 10), dice.upTo(1999)]) {
      const {p, bound} = after(row[token]);
      assert.equal(bound, true);
      assert.ok(p >= wanted.odds[token] * 0.999, `${p} is below ${wanted.odds[token]}`);
      assertClose(p, heated(row, 1)[token] / topP, 1, 'the odds over top-p');
    }
  }
}));

test('64 tokens that just reach top-p give no bounds', () => {
  const row = [...Array.from({length: 64}, () => Math.log(0.9 / 64)), ...Array.from({length: 100}, () => Math.log(0.001))];
  const node = unpackNode(packed(row));
  assert.equal(oddsAfter(node, 1, 0.89)(row[0]).bound, false);
  assertClose(oddsAfter(node, 1, 0.89)(row[0]).p, 1 / 64, 1, 'of each of the 64');
  assert.equal(oddsAfter(node, 1, 0.91)(row[0]).bound, true);
});

test('raw odds are the probability itself', () => {
  assert.deepEqual(rawOdds(Math.log(0.25)), {p: 0.25, bound: false});
});

const figure = (p, bound = false) => ({p, bound});

test('odds one after the other are multiplied, and are a bound if one of them is', () => {
  assert.deepEqual(oddsOfAll([]), figure(1));
  assert.deepEqual(oddsOfAll([figure(0.5), figure(0.25)]), figure(0.125));
  assert.deepEqual(oddsOfAll([figure(0.5, true), figure(0.25)]), figure(0.125, true));
  assert.deepEqual(oddsOfAll([figure(0.5, true), figure(0)]), figure(0));
});

test('odds of any of several are added, at most to 1, and are a bound if one of them is', () => {
  assert.deepEqual(oddsOfAny([]), figure(0));
  assert.deepEqual(oddsOfAny([figure(0.5), figure(0.25)]), figure(0.75));
  assert.deepEqual(oddsOfAny([figure(0.5), figure(0.25, true)]), figure(0.75, true));
  assert.deepEqual(oddsOfAny([figure(0.75), figure(0.5)]), figure(1));
});
