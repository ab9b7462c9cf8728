// The figures of a token, and the sentences about it.
/** @import {InternalsToken, InternalsView, Odds, OddsRow, Processing} from '../../web/core/types.d.ts' */
import {bitsOfNats, continuedLetters, formatCount, formatNumber, formatPercent, quotedText} from '../../web/core/figures_and_labels.js';
import {oddsAfter, oddsOfAny, rawOdds, unpackNode} from '../../web/core/reheated_odds.js';
import {quotedLabel, spokenToken, tokenLabel} from './visible_signs.js';

const IMPOSSIBLE = {p: 0, bound: false};

/**
 * Who wrote a token.
 * @param {number | null} message its index; null if no message holds it
 * @param {string[] | null} roles of the messages; null for a plain text
 */
export function tokenOrigin(message, roles) {
  if (message === null) return roles ? 'put there by the template' : 'put before every text by the tokenizer';
  return roles ? `message ${message + 1}, the ${roles[message]}'s` : 'of your text';
}

/** @type {(view: Pick<InternalsView, 'spelled'>, token: Pick<InternalsToken, 'id' | 'message'>, index: number, roles: string[] | null) => string} */
export function tokenFacts({spelled}, token, index, roles) {
  if (token.id === null) return `position ${index} · nothing is written there yet`;
  const {bytes, ended} = spelled[token.id], part = bytes === null ? '' : 'bytes of a part of a character';
  const known = [`position ${index}`, `id ${token.id}`, tokenOrigin(token.message, roles), part, ended ? 'an ending' : ''];
  return known.filter(Boolean).join(' · ');
}

/**
 * How the processed odds differ from the raw ones.
 * @param {Processing} processing
 */
export function processingSentence({temperature, topP}) {
  if (temperature === 1 && topP >= 1) return 'temperature 1 and top-p 1 leave them as they are';
  return `at temperature ${temperature}${temperature <= 0 ? ', where the likeliest is certain' : ''}, top-p ${topP}`;
}

/**
 * Why the figures of the token after a text differ from those of the Write tab; empty if they do not, and for a written token.
 * @param {{tokens: Pick<InternalsView['tokens'][number], 'id' | 'text'>[]}} view
 * @param {number} index of the token
 * @param {string[] | null} roles of the messages; null for a plain text
 */
export function unlikeWriteSentence({tokens}, index, roles) {
  if (roles || tokens[index].id !== null) return '';
  const word = continuedLetters(tokens.slice(0, index).map(({text}) => text).join(''), 'a');
  return word && `The tab Write also counts longer forms of your last word, ${quotedText(word)}, so its figures are others.`;
}

/**
 * The alternatives at a token, and the token itself, each with its raw and its processed odds.
 * @type {(view: Pick<InternalsView, 'tokens' | 'nodes' | 'spelled'>, index: number, processing: Processing) => OddsRow[]}
 */
export function oddsRows({tokens, nodes, spelled}, index, {temperature, topP}) {
  const processedOdds = temperature === 1 && topP >= 1 ? rawOdds : oddsAfter(unpackNode(nodes[index - 1]), temperature, topP);
  const {id: written, rank, alternatives} = tokens[index];
  return alternatives.map(([id, logprob], position) => ({
    id, ...spelled[id], came: id === written, rank: id === written ? rank : position + 1,
    raw: logprob === null ? IMPOSSIBLE : rawOdds(logprob), processed: logprob === null ? IMPOSSIBLE : processedOdds(logprob),
  }));
}

/** The token of a row as it is seen in the summary. @param {OddsRow} row */
const quotedRow = row => quotedLabel(tokenLabel(row), row.text);

/**
 * One line on a token: the likeliest one, or the one that came, and the entropy.
 * @param {Pick<InternalsView, 'entropies'>} view
 * @param {Pick<InternalsToken, 'id' | 'rank'>} token
 * @param {number} index of the token
 * @param {OddsRow[]} rows
 * @param {(row: OddsRow) => string} [label]
 */
export function tokenSummary({entropies}, {id, rank}, index, rows, label = quotedRow) {
  const spread = `entropy of the raw probabilities ${bitsOfNats(entropies[index - 1]).toFixed(2)} bits`, came = rows.find(row => row.came);
  if (id === null || !came) return `${label(rows[0])} is the likeliest, with ${formatPercent(rows[0].processed)} · ${spread}`;
  return `Choice ${formatNumber(rank)} of the model · raw ${formatPercent(came.raw)} · processed ${formatPercent(came.processed)} · ${spread}`;
}

export const NOT_PREDICTED = 'No text comes before it, so the model did not predict it.';

/**
 * What a token is and its summary, as a sentence for screen readers, which would read dots and signs.
 * @param {InternalsView} view
 * @param {number} index of the token
 * @param {Processing} processing
 */
export function spokenSummary(view, index, processing) {
  const token = view.tokens[index], {id} = token;
  const name = id === null ? 'What would come next' : `“${spokenToken(token, view.spelled[id])}”`;
  const summary = index ? tokenSummary(view, token, index, oddsRows(view, index, processing), row => `“${spokenToken(row, row)}”`) : NOT_PREDICTED;
  return `${name}: ${summary.replaceAll(' · ', ', ').replace(/\.$/, '')}.`;
}

/**
 * How many tokens a text has, how many passes they took, and what to do with them.
 * @param {number} count
 * @param {number} passes
 */
export function tokensSentence(count, passes) {
  const cost = passes ? `read in ${formatCount(passes, 'pass', 'passes')}` : 'all known from before';
  return `${formatCount(count, 'token')}, ${cost}. Choose a token to see what the model expected there.`;
}

/**
 * The odds that all other tokens share.
 * @param {OddsRow[]} rows
 * @param {'raw' | 'processed'} name of the odds
 * @returns {Odds}
 */
export function oddsOfRest(rows, name) {
  const {p, bound} = oddsOfAny(rows.map(row => row[name]));
  return {p: 1 - p, atLeast: bound};
}
