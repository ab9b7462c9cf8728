// Odds of tokens at any temperature and top-p, computed from packed predictions: a slider needs no forward pass.
/** @import {Odds, OddsFunction, UnpackedNode} from './types.d.ts' */
const HEATS = 20;          // temperatures 0.1, 0.2 … 2.0
const STEP = 0.1;          // between two of them
const KEPT = 64;           // tokens that a node of a larger vocabulary keeps
const HEAT_UNIT = 5000;    // steps a nat of a packed sum
const DROP_UNIT = 2000;    // steps a nat of a packed drop
const MOST_CERTAIN = 0.99999;   // the packed sums do not tell a likelier token from a certain one: it is shown as “> 99 %”, as the coverage is
const ROUNDING = 0.5 / DROP_UNIT + 0.5 / HEAT_UNIT;   // nats by which rounding can make a token seem less likely

/**
 * Whether odds under these settings are not those that the model gives.
 * @param {{temperature?: number, top_p?: number}} settings
 */
export const isReheated = ({temperature = 1, top_p: topP = 1}) => temperature !== 1 || topP < 1;

/**
 * Unpack a node. heats[i] = log of the sum of exp((l - l0) / T) over the vocabulary at T = 0.1 (i + 1), where l0 is the
 * likeliest token's log-probability; drops = l0 - l of the likeliest tokens, rising from 0.
 * @param {string} packed 16-bit numbers in base64
 * @returns {UnpackedNode}
 */
export function unpackNode(packed) {
  const characters = atob(packed);
  /** @param {number} index */
  const number = index => characters.charCodeAt(2 * index) + 256 * characters.charCodeAt(2 * index + 1);
  const kept = characters.length / 2 - HEATS;
  return {
    heats: Float64Array.from({length: HEATS}, (_, index) => number(index) / HEAT_UNIT),
    drops: Float64Array.from({length: kept}, (_, index) => number(HEATS + index) / DROP_UNIT),
  };
}

/**
 * A function from a token's raw log-probability to its odds after a node.
 * @param {UnpackedNode} node
 * @param {number} temperature
 * @param {number} topP
 * @returns {OddsFunction}
 */
export function oddsAfter(node, temperature, topP) {
  if (temperature <= 0) return greedyOdds(node);
  const heated = logSumAt(node, temperature);
  /** @param {number} logprob */
  const odds = logprob => Math.min(MOST_CERTAIN, Math.exp((logprob - likeliest(node)) / temperature - heated));
  if (topP >= 1) return logprob => ({p: odds(logprob), bound: false});
  const {mass, edge, bound} = nucleus(node, temperature, topP);
  if (bound) return logprob => ({p: Math.min(1, odds(logprob) / mass), bound});
  // The mass is a sum of packed odds: only with these are all odds together 1.
  return logprob => {
    const drop = likeliest(node) - logprob;
    return drop <= edge ? {p: Math.exp(-nearest(node.drops, drop) / temperature - heated) / mass, bound} : IMPOSSIBLE;
  };
}

/**
 * The entry of a rising list that is nearest to a number.
 * @param {Float64Array} list
 * @param {number} number
 */
function nearest(list, number) {
  let low = 0, high = list.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (2 * number <= list[middle] + list[middle + 1]) high = middle;
    else low = middle + 1;
  }
  return list[low];
}

/**
 * A node whose tokens are all ways to go on from a re-opened token: those that replace it, and the tokens after it, which have
 * the log-probability of both together. Temperature and top-p act on all of them at once. Each by itself, a high temperature would
 * make a token that replaces the typed one too likely: it has few rivals, and the token after the typed one has thousands.
 * @param {UnpackedNode} first of the tokens that begin with the typed text
 * @param {UnpackedNode} after of the token after the typed one
 * @param {number} typed the log-probability of the typed token after `first`
 * @returns {UnpackedNode}
 */
export function joinNodes(first, after, typed) {
  const replacing = logprobsOf(first), following = logprobsOf(after).map(logprob => typed + logprob);
  // A typed token that is not among the likeliest ones was not packed.
  const own = replacing.findIndex(logprob => Math.abs(logprob - typed) <= 2 * ROUNDING);
  if (own >= 0) replacing.splice(own, 1);
  const logprobs = [...replacing, ...following].sort((one, other) => other - one).slice(0, KEPT), [most] = logprobs;
  const heats = Float64Array.from({length: HEATS}, (_, index) => {
    const temperature = STEP * (index + 1);
    /** @type {(logprob: number) => number} */
    const weight = logprob => Math.exp((logprob - most) / temperature);
    const known = replacing.reduce((all, logprob) => all + weight(logprob), 0);
    const whole = weight(likeliest(first)) * Math.exp(first.heats[index]) - weight(typed);
    const others = first.drops.length < KEPT ? known : Math.max(known, whole);
    return Math.log(others + weight(typed + likeliest(after)) * Math.exp(after.heats[index]));
  });
  heats[1 / STEP - 1] = -most;
  return {heats, drops: Float64Array.from(logprobs, logprob => most - logprob)};
}

/** @param {UnpackedNode} node */
const logprobsOf = node => Array.from(node.drops, drop => likeliest(node) - drop);

/**
 * The largest relative error of a token's odds at a temperature, which comes from the rounding of the packed sums. It is 0 at
 * temperatures 0 and 1, where the odds are exact.
 * @param {number} temperature
 */
export const oddsError = temperature => (temperature <= 0 || temperature === 1 ? 0 : 0.5 / HEAT_UNIT * (1 + 1 / temperature));

/**
 * The odds at temperature 1 and top-p 1.
 * @type {OddsFunction}
 */
export const rawOdds = logprob => ({p: Math.exp(logprob), bound: false});

/**
 * The odds of all of these, one after the other.
 * @param {Odds[]} figures
 * @returns {Odds}
 */
export function oddsOfAll(figures) {
  const p = figures.reduce((all, figure) => all * figure.p, 1);
  return {p, bound: p > 0 && figures.some(figure => figure.bound)};
}

/**
 * The odds of any of these, which exclude each other.
 * @param {Odds[]} figures
 * @returns {Odds}
 */
export function oddsOfAny(figures) {
  const p = figures.reduce((all, figure) => all + figure.p, 0);
  return {p: Math.min(1, p), bound: figures.some(figure => figure.bound)};
}

const IMPOSSIBLE = Object.freeze({p: 0, bound: false});

/** @param {UnpackedNode} node */
const likeliest = node => -node.heats[1 / STEP - 1];

/**
 * At temperature 0 the likeliest token is certain. Equally likely ones share the probability, as in the limit.
 * @param {UnpackedNode} node
 * @returns {OddsFunction}
 */
function greedyOdds(node) {
  const alike = ties(node);
  const edge = alike < node.drops.length ? node.drops[alike] / 2 : ROUNDING;
  return logprob => (likeliest(node) - logprob <= edge ? {p: 1 / alike, bound: false} : IMPOSSIBLE);
}

/** @param {UnpackedNode} node */
const ties = node => node.drops.filter(drop => drop === 0).length;

/**
 * The logarithm of the sum over the vocabulary at a temperature, interpolated between the packed ones.
 * @param {UnpackedNode} node
 * @param {number} temperature
 */
function logSumAt(node, temperature) {
  const position = Math.min(temperature / STEP, HEATS), below = Math.min(Math.floor(position), HEATS - 1);
  const low = below ? node.heats[below - 1] : Math.log(ties(node));
  return low + (position - below) * (node.heats[below] - low);
}

/**
 * The smallest set of likeliest tokens whose mass reaches topP: its mass, and the largest drop that it includes.
 * @param {UnpackedNode} node
 * @param {number} temperature
 * @param {number} topP
 */
function nucleus(node, temperature, topP) {
  const {drops} = node, heated = logSumAt(node, temperature);
  let mass = 0, count = 0;
  while (count < drops.length && (mass < topP || drops[count] === drops[count - 1]))
    mass += Math.exp(-drops[count++] / temperature - heated);
  if (mass < topP && drops.length === KEPT) return {mass: topP, edge: Infinity, bound: true};
  const edge = count < drops.length ? (drops[count - 1] + drops[count]) / 2 : drops[count - 1] + ROUNDING;
  return {mass, edge, bound: false};
}
