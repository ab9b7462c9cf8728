import assert from 'node:assert/strict';
import {test} from 'node:test';

import {distinctLengths, setShares, sumOf} from '../../../../interface/web/core/shares.js';
import {withDice} from '../../../support/scripts/dice.js';

const begins = (path, beginning) => beginning.every((id, index) => path[index] === id);

// The slow way: the shortest beginning of a path that no other one begins with.
function lengthApart(paths, index) {
  const path = paths[index], others = paths.filter((_, other) => other !== index);
  for (let length = 1; length < path.length; length += 1) if (!others.some(other => begins(other, path.slice(0, length)))) return length;
  return path.length;
}

// Paths of ids of one and of two digits, none of them twice; some are the beginning of others.
function randomPaths(dice, most = 6) {
  const paths = Array.from({length: 1 + dice.upTo(most)}, () => Array.from({length: 1 + dice.upTo(3)}, () => dice.among([1, 5, 15, 51])));
  return [...new Map(paths.map(path => [path.join(','), path])).values()];
}

// The odds of a token after others, the same whenever they are asked for; those of the four tokens and of the end are 1 in all.
function modelOf(dice) {
  const known = new Map();
  return (before, id) => {
    const key = before.join(',');
    if (!known.has(key)) {
      const weights = [1, 5, 15, 51, 'end'].map(token => [token, 0.05 + dice.number()]);
      const all = weights.reduce((sum, [, weight]) => sum + weight, 0);
      known.set(key, new Map(weights.map(([token, weight]) => [token, weight / all])));
    }
    return known.get(key).get(id);
  };
}

function rowsOf(paths, odds, bound = () => false) {
  return paths.map(ids => {
    const figures = ids.map((id, index) => ({p: odds(ids.slice(0, index), id), bound: bound(id)}));
    return {ids, figures, branch: {logprobs: figures.map(({p}) => Math.log(p) - 1)}};
  });
}

const along = (figures, length) => figures.slice(0, length).reduce((all, {p}) => all * p, 1);
const close = (found, wanted) => assert.ok(Math.abs(found - wanted) < 1e-12, `${found}, and not ${wanted}`);

test('a path is set apart by its shortest beginning that no other path has', () => withDice(300, dice => {
  const paths = randomPaths(dice);
  assert.deepEqual(distinctLengths(paths), paths.map((_, index) => lengthApart(paths, index)));
}));

test('a path that is the beginning of another is set apart by all of it', () => {
  assert.deepEqual(distinctLengths([[1, 5], [1, 5, 15], [1, 5, 15, 51]]), [2, 3, 4]);
  assert.deepEqual(distinctLengths([]), []);
});

test('the share of a row is the odds of what sets it apart', () => withDice(200, dice => {
  const paths = randomPaths(dice), rows = rowsOf(paths, modelOf(dice));
  setShares(rows);
  rows.forEach((row, index) => {
    const length = lengthApart(paths, index);
    assert.equal(row.apart, length);
    close(row.share.p, along(row.figures, length));
    close(row.rawShare, row.branch.logprobs.slice(0, length).reduce((sum, one) => sum + one, 0));
    assert.equal(row.cut, false);
  });
}));

test('rows together hold the mass of all texts that begin like one of them', () => withDice(200, dice => {
  const paths = randomPaths(dice), odds = modelOf(dice), rows = rowsOf(paths, odds);
  const held = setShares(rows), beginnings = rows.map(row => row.ids.slice(0, row.apart));
  // Every text of up to four tokens, with the mass of those that go on as far or end there.
  const mass = (path, p) => {
    if (beginnings.some(beginning => beginning.length <= path.length && begins(path, beginning))) return p;
    if (path.length === 4) return 0;
    return [1, 5, 15, 51].reduce((sum, id) => sum + mass([...path, id], p * odds(path, id)), 0);
  };
  close(held.p, mass([], 1));
}));

test('a row includes the rows that continue it, and no others', () => {
  const rows = rowsOf([[5], [5, 1], [51, 1]], () => 0.25);
  close(setShares(rows).p, 0.25 + 0.25);
  const others = rowsOf([[51], [5, 1], [5, 15]], () => 0.25);
  close(setShares(others).p, 0.25 + 0.0625 + 0.0625);
});

test('a row that replaces the typed token is set apart by text that it inserts', () => {
  const [through, instead, ending] = rowsOf([[1, 5, 15], [15, 1], [51, 5]], () => 0.5);
  through.branch = {...through.branch, healed: true, pieces: [{tokens: 2}, {tokens: 3}]};
  instead.branch = {...instead.branch, healed: true, pieces: [{tokens: 1}, {tokens: 2}]};
  ending.branch = {...ending.branch, healed: true, pieces: []};
  close(setShares([through, instead, ending]).p, 0.25 + 0.5 + 0.25);
  assert.deepEqual([through, instead, ending].map(({apart}) => apart), [2, 1, 2]);
});

test('only the targets get shares, computed beside all rows', () => {
  const rows = rowsOf([[1, 5], [1, 15], [5]], () => 0.5);
  setShares(rows, [rows[1]]);
  assert.deepEqual(rows.map(({apart}) => apart), [undefined, 2, undefined]);
  close(rows[1].share.p, 0.25);
});

test('a row without a share is cut', () => {
  const rows = rowsOf([[1], [5]], (_, id) => (id === 1 ? 0 : 1));
  setShares(rows);
  assert.deepEqual(rows.map(({cut}) => cut), [true, false]);
});

test('a bound of one row is a bound of the coverage', () => {
  const rows = rowsOf([[1], [5]], () => 0.25, id => id === 5);
  assert.deepEqual(setShares(rows), {p: 0.5, bound: true});
  assert.deepEqual(rows.map(({share}) => share.bound), [false, true]);
});

test('the sum of no numbers is 0', () => {
  assert.equal(sumOf([1, 2, 3.5]), 6.5);
  assert.equal(sumOf([]), 0);
});
