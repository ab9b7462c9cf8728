// Views of a made-up model, packed by other code than the server's, and the odds of paths from whole rows.
import {Dice} from './dice.js';
import {nucleus, order, packed, randomRow} from './rows.js';

export const ASKED = {k: 5, depth: 5, mode: 'likely', until: 'tokens', temperature: 1, top_p: 1, seed: 0};
const VOCABULARY = 80;

const rows = new Map();

// The log-probabilities of all tokens after these, always the same.
export function rowAfter(ids) {
  const key = ids.join(' ');
  if (!rows.has(key)) {
    const seed = ids.reduce((all, id) => (Math.imul(all, 31) + id + 7) | 0, 17);
    rows.set(key, randomRow(new Dice(seed), {vocabulary: VOCABULARY}));
  }
  return rows.get(key);
}

export const likeliest = (ids, count) => order(rowAfter(ids)).slice(0, count);

// These tokens and the likeliest ones after them.
export function pathOf(first, depth) {
  const ids = [...first];
  while (ids.length < depth) ids.push(likeliest(ids, 1)[0]);
  return ids;
}

// The odds of a token after others, and of these tokens one after the other.
export const oddsAfter = (before, id, temperature = 1, topP = 1) => nucleus(rowAfter(before), temperature, topP).odds[id];

export const oddsOf = (ids, temperature, topP) =>
  ids.reduce((all, id, index) => all * oddsAfter(ids.slice(0, index), id, temperature, topP), 1);

export const textOf = token => ` w${token}`;

// A branch in which every token is a word of its own; `at` tells the index of the node after some ids.
export function branchOf(ids, at, {ended = false, healed = false} = {}) {
  const words = ended ? ids.slice(0, -1) : ids;
  return {
    ids: [...ids], ended, healed, at: ids.map((_, index) => at(ids.slice(0, index))),
    logprobs: ids.map((id, index) => rowAfter(ids.slice(0, index))[id]),
    pieces: words.map((id, index) => ({text: textOf(id), tokens: index + 1, ends: 1})),
  };
}

// A view of these paths with all of its odds. `rest`: how many beginnings there are that no path has.
export function viewOf(paths, {rest = 8, ended = [], healed = false, ...asked} = {}) {
  const places = new Map([['', 0]]), nodes = [packed(rowAfter([]))];
  const at = before => {
    const key = before.join(' ');
    if (!places.has(key)) {
      places.set(key, nodes.length);
      nodes.push(packed(rowAfter(before)));
    }
    return places.get(key);
  };
  const firsts = new Set(paths.map(([first]) => first)), row = rowAfter([]);
  const others = order(row).filter(id => !firsts.has(id)).slice(0, rest);
  return {
    branches: paths.map((ids, index) => branchOf(ids, at, {ended: ended.includes(index), healed})), nodes,
    rest: others.map(id => ({ids: [id], logprobs: [row[id]], at: [0], text: textOf(id), end: false})),
    given: '', seen_from: 0, asked: {...ASKED, ...asked},
  };
}

export const likelyView = (k = 5, depth = 5, asked = {}) => viewOf(likeliest([], k).map(id => pathOf([id], depth)), {k, depth, ...asked});

export function assertNear(assert, found, wanted, what = '') {
  assert.ok(Math.abs(found - wanted) <= 0.01 * wanted + 1e-9, `${what} ${found}, and not ${wanted}`);
}
