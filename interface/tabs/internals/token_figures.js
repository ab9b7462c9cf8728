// The figures of a token, and what is said of it.
import {tokenLabel} from './visible_signs.js';
import {oddsAfter, rawOdds, oddsOfAny, unpackNode} from '../../web/core/odds.js';
import {formatPercent, formatNumber} from '../../web/core/branch_sentences.js';

const IMPOSSIBLE = {p: 0, bound: false};

// Who wrote a token of a message; `roles` are those of all messages, null for a plain text.
export function tokenOrigin(message, roles) {
  if (message === null) return roles ? 'put there by the template' : 'put before every text by the tokenizer';
  return roles ? `message ${message + 1}, the ${roles[message]}'s` : 'of your text';
}

export function tokenFacts({spelled}, token, index, roles) {
  if (token.id === null) return `position ${index} · nothing stands there yet`;
  const {bytes, ended} = spelled[token.id], part = bytes === null ? '' : 'bytes of a part of a character';
  const known = [`position ${index}`, `id ${token.id}`, tokenOrigin(token.message, roles), part, ended ? 'an ending' : ''];
  return known.filter(Boolean).join(' · ');
}

// What the processed odds are processed with.
export function processingSentence({temperature, topP}) {
  if (temperature === 1 && topP >= 1) return 'temperature 1 and top-p 1 leave them as they are';
  return `at temperature ${temperature}${temperature <= 0 ? ', where the likeliest is certain' : ''}, top-p ${topP}`;
}

// A row for each alternative and for what came, each with its raw and its processed figure.
export function oddsRows({tokens, nodes, spelled}, index, {temperature, topP}) {
  const heated = temperature === 1 && topP >= 1 ? rawOdds : oddsAfter(unpackNode(nodes[index - 1]), temperature, topP);
  const {id: came, rank, alternatives} = tokens[index];
  return alternatives.map(([id, logprob], place) => ({
    id, ...spelled[id], came: id === came, rank: id === came ? rank : place + 1,
    raw: logprob === null ? IMPOSSIBLE : rawOdds(logprob), processed: logprob === null ? IMPOSSIBLE : heated(logprob),
  }));
}

export function tokenSummary({entropies}, {id, rank}, index, rows) {
  const spread = `entropy ${entropies[index - 1].toFixed(2)} nats`, came = rows.find(row => row.came);
  if (id === null) return `“${tokenLabel(rows[0])}” is the likeliest, with ${formatPercent(rows[0].processed)} · ${spread}`;
  return `Choice ${formatNumber(rank)} of the model's · raw ${formatPercent(came.raw)} · processed ${formatPercent(came.processed)} · ${spread}`;
}

// What rows leave for all others, by one of their figures: `raw` or `processed`.
export function oddsOfRest(rows, name) {
  const {p, bound} = oddsOfAny(rows.map(row => row[name]));
  return {p: 1 - p, atLeast: bound};
}
