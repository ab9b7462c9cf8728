// Odds of tokens at any temperature and top-p, from what a view packs of each node: a slider costs no pass of the model.
// A figure is {p, bound}; bound: the probability is at most p, for what would tell more was not kept.
const HEATS = 20;        // temperatures 0.1, 0.2 … 2.0
const STEP = 0.1;
const KEPT = 64;         // of a larger vocabulary, so many of the likeliest tokens are kept
const HEAT_UNIT = 5000;
const DROP_UNIT = 2000;
const ROUNDING = 0.5 / DROP_UNIT + 0.5 / HEAT_UNIT;   // by how much a token can seem less likely than it is

// A node: heats[i] = log of the sum of exp((l - l0) / T) over the vocabulary at T = 0.1 (i + 1), where l0 is the
// likeliest token's log-probability; drops = l0 - l of the likeliest tokens, rising from 0.
export function unpackNode(packed) {
  const characters = atob(packed);
  const number = index => characters.charCodeAt(2 * index) + 256 * characters.charCodeAt(2 * index + 1);
  const kept = characters.length / 2 - HEATS;
  return {
    heats: Float64Array.from({length: HEATS}, (_, index) => number(index) / HEAT_UNIT),
    drops: Float64Array.from({length: kept}, (_, index) => number(HEATS + index) / DROP_UNIT),
  };
}

// The figure of each token after a node, by its raw log-probability.
export function oddsAfter(node, temperature, topP) {
  if (temperature <= 0) return greedy(node);
  const heated = heat(node, temperature);
  const odds = logprob => Math.min(1, Math.exp((logprob - likeliest(node)) / temperature - heated));
  if (topP >= 1) return logprob => ({p: odds(logprob), bound: false});
  const {mass, edge, bound} = nucleus(node, temperature, topP);
  return logprob => (likeliest(node) - logprob <= edge ? {p: Math.min(1, odds(logprob) / mass), bound} : NEVER);
}

export const rawOdds = logprob => ({p: Math.exp(logprob), bound: false});

// The odds of all of these one after the other.
export function oddsOfAll(figures) {
  const p = figures.reduce((all, figure) => all * figure.p, 1);
  return {p, bound: p > 0 && figures.some(figure => figure.bound)};
}

// The odds of any of these, which exclude each other.
export function oddsOfAny(figures) {
  const p = figures.reduce((all, figure) => all + figure.p, 0);
  return {p: Math.min(1, p), bound: figures.some(figure => figure.bound)};
}

const NEVER = Object.freeze({p: 0, bound: false});
const likeliest = node => -node.heats[1 / STEP - 1];

// At temperature 0 the likeliest token is certain; several that cannot be told apart share it, as in the limit.
function greedy(node) {
  const alike = ties(node);
  const edge = alike < node.drops.length ? node.drops[alike] / 2 : ROUNDING;
  return logprob => (likeliest(node) - logprob <= edge ? {p: 1 / alike, bound: false} : NEVER);
}

const ties = node => node.drops.filter(drop => drop === 0).length;

function heat(node, temperature) {
  const place = Math.min(temperature / STEP, HEATS), below = Math.min(Math.floor(place), HEATS - 1);
  const low = below ? node.heats[below - 1] : Math.log(ties(node));
  return low + (place - below) * (node.heats[below] - low);
}

// The smallest set of the likeliest whose mass reaches topP: its mass, and how much less likely than the first they may be.
function nucleus(node, temperature, topP) {
  const {drops} = node, heated = heat(node, temperature);
  let mass = 0, count = 0;
  while (count < drops.length && (mass < topP || drops[count] === drops[count - 1]))
    mass += Math.exp(-drops[count++] / temperature - heated);
  if (mass < topP && drops.length === KEPT) return {mass: topP, edge: Infinity, bound: true};
  const edge = count < drops.length ? (drops[count - 1] + drops[count]) / 2 : drops[count - 1] + ROUNDING;
  return {mass, edge, bound: false};
}
