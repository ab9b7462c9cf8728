// What sets rows apart from each other, and what they hold together.
import {oddsOfAll, oddsOfAny} from './odds.js';

// For each path, the length of the shortest beginning that no other shares; all of it where there is none.
export function distinctLengths(paths) {
  const lengths = paths.map(path => path.length);
  const part = (indices, depth) => {
    for (const [id, group] of grouped(indices, index => paths[index][depth])) {
      if (id === undefined) continue;
      if (group.length === 1) lengths[group[0]] = depth + 1;
      else part(group, depth + 1);
    }
  };
  part(paths.map((_, index) => index), 0);
  return lengths;
}

function grouped(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (groups.has(key)) groups.get(key).push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

// Gives each of `targets` its share, the odds of what sets it apart among `rows`; returns what all rows hold together.
export function setShares(rows, targets = rows) {
  const lengths = distinctLengths(rows.map(row => row.ids)), shares = new Map();
  rows.forEach((row, index) => {
    const length = lengths[index], share = oddsOfAll(row.figures.slice(0, length));
    shares.set(row.ids.join(' '), share);
    if (targets.includes(row))
      Object.assign(row, {apart: length, share, cut: share.p === 0, rawShare: sumOf(row.branch.logprobs.slice(0, length))});
  });
  return oddsOfAny([...shares.keys()].filter(key => !goesOn(key, shares)).map(key => shares.get(key)));
}

export const sumOf = numbers => numbers.reduce((all, one) => all + one, 0);

// Whether a path goes on with another one: then what it holds is counted there.
function goesOn(key, paths) {
  for (let end = key.lastIndexOf(' '); end > 0; end = key.lastIndexOf(' ', end - 1))
    if (paths.has(key.slice(0, end))) return true;
  return false;
}
