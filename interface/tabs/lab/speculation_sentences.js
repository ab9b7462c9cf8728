// The record of speculative decoding as sentences, and as rows of tables.
/** @import {DraftedToken, RejectionDrawsView, SpeculationView, VerifiedPass} from '../../web/core/types.d.ts' */
import {capitalized, formatCount, formatNumber, formatPercent, quotedText, visibleText} from '../../web/core/figures_and_labels.js';
import {drawsSentence} from './odds.js';

/** @type {Record<string, string>} */
const NAMES = {suffix: 'the suffix drafter', recycled: 'the recycling drafter', model: 'the small model'};

/** What a drafter is called. @param {string} name */
export const drafterName = name => NAMES[name] ?? `the drafter ${name}`;

/** The tokens that a pass accepted. @param {VerifiedPass} pass */
export const acceptedIn = ({nodes}) => nodes.filter(({accepted}) => accepted).length;

/**
 * The number of tokens that a drafter proposed, and of those that were accepted.
 * @type {(passes: VerifiedPass[], drafter: string) => {proposed: number, accepted: number}}
 */
export function countsOf(passes, drafter) {
  const own = passes.flatMap(({nodes}) => nodes).filter(({drafters}) => drafters.includes(drafter));
  return {proposed: own.length, accepted: own.filter(({accepted}) => accepted).length};
}

/** The drafters that proposed a token, by their initials: "S, R". @param {DraftedToken} node */
export const initials = ({drafters}) => drafters.map(name => name.charAt(0).toUpperCase()).join(', ');

/** What the initials stand for. @param {SpeculationView} view */
export const initialsSentence = ({drafters}) => `Proposed by: ${drafters.map(name => `${name.charAt(0).toUpperCase()} ${name}`).join(', ')}.`;

/** The drafters that proposed a token, separated by commas. @param {DraftedToken} node */
export const proposers = ({drafters}) => drafters.join(', ');

/**
 * What a pass did: how many tokens each drafter proposed and how many of them the model agreed to, and what the model added.
 * @param {SpeculationView} view
 * @param {number} number of the pass, from 1
 */
export function passSentence(view, number) {
  const pass = view.passes[number - 1];
  if (!pass) return '';
  const drafts = view.drafters.flatMap(drafter => {
    const {proposed, accepted} = countsOf([pass], drafter);
    return proposed ? [`${drafterName(drafter)} wrote ${formatCount(proposed, 'token')}, the model agreed to ${accepted}`] : [];
  });
  const before = drafts.length ? `${capitalized(drafts.join('; '))}.` : 'No token was drafted.';
  return `Pass ${number}: ${before} ${addedSentence(view, number)} The text has ${formatCount(pass.before + acceptedIn(pass) + 1, 'token')} after ${formatCount(number, 'pass', 'passes')}.`;
}

/** Why the model added the last token of a pass. @param {SpeculationView} view @param {number} number */
function addedSentence(view, number) {
  const {added: {kind}} = view.passes[number - 1], token = addedName(view, number);
  if (kind === 'correction') return `There the model chose ${token}: the correction.`;
  if (kind === 'bonus') return `All drafted tokens of a path were right, so the model added ${token}: the bonus token.`;
  return `The model chose ${token} by itself.`;
}

/** The token that the model added in a pass. @param {SpeculationView} view @param {number} number */
export const addedName = (view, number) => (isEnd(view, number) ? 'the end of the text' : quotedText(view.passes[number - 1].added.text));

/** Whether a pass added the end of the text. @param {SpeculationView} view @param {number} number */
export const isEnd = ({ended, passes}, number) => ended && number === passes.length;

/**
 * What a drafted token is: who proposed it, how sure the drafters were, and what became of it.
 * @param {VerifiedPass} pass
 * @param {number} index of the token in the draft
 */
export function tokenSentence({nodes}, index) {
  const node = nodes[index], parent = node.parent === null ? null : nodes[node.parent];
  const fate = node.accepted ? 'accepted: the model chose the same token'
    : parent && !parent.accepted ? 'rejected, because a token before it was rejected' : 'rejected: the model chose another token here';
  return `${quotedText(node.text)}, token ${node.depth} of a draft, was proposed by ${node.drafters.map(drafterName).join(' and ')}, with an estimated chance of ${formatPercent({p: node.odds})} that all tokens up to it are right; ${fate}.`;
}

/** What the model added, as the sentence of its node. @param {SpeculationView} view @param {number} number */
export const addedNodeSentence = (view, number) => `${capitalized(addedName(view, number))}: the model’s own token. ${addedSentence(view, number)}`;

export const TOKEN_HEADS = ['Token', 'Depth', 'Proposed by', 'Estimated chance', 'Verdict'];

/** The rows of the table of a pass: the draft, then the model's own token. @type {(view: SpeculationView, number: number) => string[][]} */
export function tokenRows(view, number) {
  const pass = view.passes[number - 1];
  if (!pass) return [];
  const {nodes, added: {kind}} = pass;
  return [
    ...nodes.map(node => [visibleText(node.text), String(node.depth), proposers(node), formatPercent({p: node.odds}), node.accepted ? '✓ accepted' : '✗ rejected']),
    [isEnd(view, number) ? 'end' : visibleText(pass.added.text), String(acceptedIn(pass) + 1), 'the model itself', '–', `+ ${KIND_NAMES[kind]}`],
  ];
}

/** @type {Record<VerifiedPass['added']['kind'], string>} */
export const KIND_NAMES = {correction: 'correction', bonus: 'bonus', alone: 'no draft'};

export const DRAFTER_HEADS = ['Drafter', 'Proposed', 'Accepted', 'Accepted in %'];

/** The rows of the table of drafters, up to a pass. @type {(view: SpeculationView, number: number) => string[][]} */
export const drafterRows = ({passes, drafters}, number) => drafters.map(drafter => {
  const {proposed, accepted} = countsOf(passes.slice(0, number), drafter);
  return [drafter, formatNumber(proposed), formatNumber(accepted), proposed ? formatPercent({p: accepted / proposed}) : '–'];
});

/** What the drafters guess from, and which model drafts. @param {SpeculationView} view */
export const sourcesSentence = ({drafters, draft_model: small}) => [
  ...drafters.includes('suffix') ? ['suffix: the tokens that followed the text’s last tokens earlier in the text.'] : [],
  ...drafters.includes('recycled') ? ['recycled: the tokens that earlier passes found likely after the same token.'] : [],
  small === null ? 'No smaller model drafts here.' : `model: the smaller model ${small}.`,
].join(' ');

/** The same, and how many tokens they draft. @param {SpeculationView} view */
export const drafterSentence = view => `${sourcesSentence(view)} A token that several drafters propose counts for each. How many tokens are drafted depends on how much longer a pass takes with one more of them. Here 3 % is assumed, so that the same run always gives the same result; when a program writes with this library, that time is measured.`;

/** What the drafts saved. @param {SpeculationView} view */
export const passesSentence = ({token_ids: ids, passes, plain_passes: plain}) =>
  `${formatCount(ids.length, 'token')} in ${formatCount(passes.length, 'pass', 'passes')} with drafts, in ${formatNumber(plain)} without.`;

/** Whether the text is the one that the model writes without drafts. @param {SpeculationView} view */
export const verdictSentence = ({equal}) => (equal ? 'Both texts are equal, token for token.' : 'The texts differ.');

/** How often rejection sampling accepted a drafted token, and how near the frequencies are to the odds. @param {RejectionDrawsView} view */
export function rejectionSentence(view) {
  if (!view.draws) return '';
  const {draws: {number}, drafted, accepted} = view;
  const drafts = drafted ? `In ${formatNumber(drafted)} of ${formatNumber(number)} draws tokens were drafted, and in ${formatNumber(accepted)} one of them was accepted.` : 'No drafter proposes a token after this prompt, so each token is drawn by the model’s chances.';
  return `${drawsSentence(view)} ${drafts}`;
}

/** @param {string} text */
const quoted = text => `"${text.replaceAll('"', '""')}"`;

/** All tokens of all passes as comma-separated values, with a line of names. @param {SpeculationView} view */
export const csvOf = ({passes}) => [
  'pass,token_id,depth,drafters,estimated_chance,verdict,text',
  ...passes.flatMap(pass => [
    ...pass.nodes.map(node => [pass.number, node.token_id, node.depth, node.drafters.join('+'), node.odds, node.accepted ? 'accepted' : 'rejected', quoted(node.text)].join(',')),
    [pass.number, pass.added.token_id, acceptedIn(pass) + 1, '', '', pass.added.kind, quoted(pass.added.text)].join(','),
  ]),
].join('\n') + '\n';
