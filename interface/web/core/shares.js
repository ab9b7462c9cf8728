// What sets rows apart from each other, and the probability that they hold together.
/** @import {Odds, Row} from './types.d.ts' */
import {oddsOfAll, oddsOfAny} from './reheated_odds.js';

/**
 * For each path, the length of its shortest prefix that no other path has; its whole length where there is none.
 * @param {number[][]} paths
 */
export function distinctLengths(paths) {
  const lengths = paths.map(path => path.length);
  /** @type {(indices: number[], depth: number) => void} */
  const part = (indices, depth) => {
    for (const [id, group] of groupBy(indices, index => paths[index][depth])) {
      if (id === undefined) continue;
      if (group.length === 1) lengths[group[0]] = depth + 1;
      else part(group, depth + 1);
    }
  };
  part(paths.map((_, index) => index), 0);
  return lengths;
}

/**
 * @template T, K
 * @param {T[]} items
 * @param {(item: T) => K} keyOf
 * @returns {Map<K, T[]>}
 */
function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (groups.has(key)) groups.get(key).push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/**
 * The number of tokens of a row of which its share must at least be the probability: with word odds those of the whole next
 * word. Of a healed row all up to its first inserted character, since the typed token itself inserts nothing.
 * @param {Row} row
 */
function leastLength({ids, branch}) {
  if (branch.word) return ids.length;
  return branch.healed ? Math.min(ids.length, branch.pieces[0]?.tokens ?? ids.length) : 1;
}

/**
 * Give each target its share: the odds of the prefix that sets it apart among all rows.
 * @param {Row[]} rows
 * @param {Row[]} [targets] all rows unless given
 * @returns {Odds} what all rows hold together
 */
export function setShares(rows, targets = rows) {
  // Rows that were searched for a word are set apart by the whole way to it.
  const lengths = distinctLengths(rows.map(row => row.ids)).map((length, index) => Math.max(length, leastLength(rows[index])));
  const shares = rows.map((row, index) => oddsOfAll(row.figures.slice(0, lengths[index])));
  rows.forEach((row, index) => {
    const length = lengths[index], share = shares[index];
    if (targets.includes(row))
      Object.assign(row, {apart: length, share, cut: share.p === 0, rawShare: sumOf(row.branch.logprobs.slice(0, length))});
  });
  return oddsTogether(rows, shares);
}

/**
 * What rows hold together, from their shares: a row that continues another one adds nothing.
 * @param {Row[]} rows
 * @param {Odds[]} [shares] those of the rows unless given
 * @returns {Odds}
 */
export function oddsTogether(rows, shares = rows.map(row => row.share)) {
  const added = areAdded(rows);
  return oddsOfAny(shares.filter((_, index) => added[index]));
}

/**
 * For each row, whether its share adds to what the rows hold together. It does not if the row continues another one, or is the
 * same as one before it.
 * @param {Pick<Row, 'ids'>[]} rows
 */
export function areAdded(rows) {
  const keys = rows.map(row => row.ids.join(' ')), paths = new Set(keys);
  return keys.map((key, index) => keys.indexOf(key) === index && !continuesAnother(key, paths));
}

const MOST_WORD_ERROR = 0.0011;   // the share of a word that is less certain is shown as a bound
const ROUNDING = 2e-6;            // of a lower bound, since the server rounds shares and errors

/**
 * Whether the share of a word is known as well as a figure shows it.
 * @param {{error: number}} word
 */
export const isCertain = ({error}) => error <= MOST_WORD_ERROR;

/** @type {(word: {share: number, error: number}) => number} the least that its share can be */
const leastShare = ({share, error}) => (share - error > ROUNDING ? share - error : 0);

/** @type {Odds} in place of odds that are being computed: a bound that still moves would be read as the result */
export const NOT_YET = {p: 0, atLeast: true};

/**
 * Lower bound of a word's share, where the share is known less exactly than `MOST_WORD_ERROR`.
 * @param {{share: number, error: number}} word
 * @returns {Odds} with the lower bound as `p`; if that is 0, with the upper bound as `most`
 */
function boundedShare(word) {
  const p = leastShare(word), most = word.share + word.error;
  return {p, atLeast: true, ...(!p && most < 1 ? {most} : {})};
}

/**
 * Give each row the share of its next word, as the view has it. Where it is not known well, the share is the least that
 * it can be: spellings that may become several words would else count for each of them. Until the search has ended, nothing is
 * known of such a share, nor of the coverage. Words exclude each other, so together they hold the sum.
 * @param {Row[]} rows
 * @param {boolean} isFinal whether the search for words has ended
 * @returns {Odds} what all rows hold together
 */
export function setWordShares(rows, isFinal) {
  const words = rows.map(row => row.branch.next_word).filter(word => word !== undefined);
  const possible = sumOf(words.filter(isCertain).map(word => word.share).concat(words.filter(word => !isCertain(word)).map(leastShare))) <= 1;
  for (const row of rows) {
    const {next_word: word} = row.branch;
    if (!word) continue;
    const share = isCertain(word) && possible ? {p: word.share} : isFinal ? boundedShare(word) : NOT_YET;
    Object.assign(row, {next_word: word, share, rawShare: Math.log(word.share), cut: false});
  }
  const {p} = oddsOfAny(rows.map(row => row.share));
  return rows.some(row => row.share.atLeast) ? (isFinal ? {p, atLeast: true} : NOT_YET) : {p, bound: rows.some(row => row.share.bound)};
}

/** @param {number[]} numbers */
export const sumOf = numbers => numbers.reduce((all, one) => all + one, 0);

/**
 * Whether a path continues another one, whose share includes it.
 * @param {string} key
 * @param {Set<string>} paths
 */
function continuesAnother(key, paths) {
  for (let end = key.lastIndexOf(' '); end > 0; end = key.lastIndexOf(' ', end - 1))
    if (paths.has(key.slice(0, end))) return true;
  return false;
}
