// Rows of log-probabilities over a whole vocabulary: what they are packed to, and their odds from the whole row.
const sumOfExp = values => values.reduce((all, value) => all + Math.exp(value), 0);

// Log-probabilities of a made-up model; `alike` of the likeliest tokens have the same.
export function randomRow(dice, {vocabulary = 300, spread = 2.5, alike = 1} = {}) {
  const logits = Array.from({length: vocabulary}, () => spread * dice.gauss()), most = Math.max(...logits);
  for (let count = 1; count < alike; count += 1) logits[dice.upTo(vocabulary - 1)] = most;
  const total = Math.log(sumOfExp(logits));
  return logits.map(logit => logit - total);
}

// As the server packs it: sums at the temperatures 0.1 … 2.0, then how far the likeliest 64 tokens lie below the first,
// each as 16 bits, the lower byte first.
export function packed(row) {
  const most = Math.max(...row);
  const sums = Array.from({length: 20}, (_, index) => Math.log(sumOfExp(row.map(one => (one - most) / ((index + 1) / 10)))));
  const drops = row.map(one => most - one).sort((one, other) => one - other).slice(0, 64);
  const numbers = [...sums.map(sum => Math.round(5000 * sum)), ...drops.map(drop => Math.min(65535, Math.floor(2000 * drop + 0.5)))];
  return Buffer.from(numbers.flatMap(number => [number % 256, Math.floor(number / 256)])).toString('base64');
}

export const order = row => row.map((_, token) => token).sort((one, other) => row[other] - row[one]);

// All probabilities at a temperature; at 0 the likeliest tokens share it all.
export function heated(row, temperature) {
  const most = Math.max(...row), alike = row.filter(one => one === most).length;
  if (temperature === 0) return row.map(one => (one === most ? 1 / alike : 0));
  const weights = row.map(one => Math.exp((one - most) / temperature)), total = weights.reduce((all, one) => all + one, 0);
  return weights.map(weight => weight / total);
}

// The likeliest tokens whose mass reaches topP, and those that are as likely as the last of them: their odds, and 0 of others.
export function nucleus(row, temperature, topP) {
  const odds = heated(row, temperature);
  if (topP >= 1) return {odds, kept: new Set(row.keys()), mass: 1, margin: 1};
  const kept = new Set();
  let mass = 0, margin = 1, last = null;
  for (const token of order(row)) {
    if (mass >= topP && row[token] !== last) break;
    mass += odds[token];
    last = row[token];
    margin = Math.min(margin, Math.abs(mass - topP));
    kept.add(token);
  }
  return {odds: odds.map((p, token) => (kept.has(token) ? p / mass : 0)), kept, mass, margin};
}
