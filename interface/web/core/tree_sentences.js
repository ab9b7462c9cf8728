// The words of a drawn tree: labels, names for screen readers, and sentences.
/** @import {LaidNode, TreeNode, TreeState} from './types.d.ts' */
import {continuedLetters, formatCount, formatPercent, quotedText, spokenQuote, spokenText, visibleText} from './figures_and_labels.js';
import {lastWords as lastWordsOf} from './branch_sentences.js';

const LONGEST = 24;   // characters of a label
const LAST = 12;      // of the label of the text's end

/**
 * The label of a node: its text, of a long one the last words where the present text goes on, else the beginning. A dot before
 * it says that it continues the word before it.
 * @param {TreeNode} node
 * @param {string} [before] the text of its parent
 */
export function nodeLabel(node, before = '') {
  if (node.state === 'rest') return 'other tokens';
  if (node.state === 'end') return 'end';
  if (!node.text) return 'start';
  const label = visibleText(shortText(node));
  return continuedLetters(before, node.text) && !label.startsWith('…') ? `·${label}` : label;
}

/** How many characters of a node's text are shown. @type {(node: Pick<TreeNode, 'here'>) => number} */
const mostOf = ({here}) => (here ? LAST : LONGEST);

/**
 * A node's text for its label, without signs for what cannot be seen.
 * @type {(node: TreeNode) => string}
 */
function shortText({text, state, here}) {
  const line = text.replace(/(?<=\S)\s+(?=\S)/g, ' '), most = mostOf({here});
  const cut = [...line].length <= most ? line : state === 'typed' || state === 'chosen' ? lastWords(line, most) : firstCharacters(line, most);
  return cut.trim() || firstCharacters(text, most);
}

/** @type {(line: string, most: number) => string} */
const firstCharacters = (line, most) => ([...line].length <= most ? line : `${[...line].slice(0, most - 1).join('').trimEnd()}…`);

/**
 * The end of a line, from the beginning of a word on if there is one.
 * @type {(line: string, most: number) => string}
 */
const lastWords = (line, most) => `…${[...line].slice(1 - most).join('').replace(/^\S*\s+(?=\S)/, '')}`;

/** @type {Record<TreeState, string>} */
const STATES = {
  typed: 'typed', chosen: 'chosen', left: 'left behind', seen: 'seen, not taken', ahead: '', end: 'the text’s end', rest: 'other tokens',
};

/** A node's text as a screen reader is to say it: as in the rows, unless it is too long for its label. @type {(node: TreeNode) => string} */
const spokenNode = node => spokenText([...node.text].length > mostOf(node) ? shortText(node) : node.text).trim();

/**
 * The name of a node for a screen reader: its text, after the letters of the word that it continues, its odds, and what it is.
 * It contains what is seen, without a comma between the text and the odds: those who speak to their computer say what they see.
 * @param {TreeNode} node
 * @param {string} [before] the text of its parent
 */
export function nodeName(node, before = '') {
  const {state, text, odds, here, inert} = node, letters = continuedLetters(before, text), continued = letters && `${letters}, continued by `;
  const isPiece = state !== 'end' && state !== 'rest';
  const own = isPiece ? text ? `${continued}${spokenNode(node)}` : 'the start' : STATES[state];
  const parts = [odds ? `${own} ${formatPercent(odds)}` : own, text && isPiece ? STATES[state] : '', here ? 'the end of your text' : '', inert ? 'of an older text' : ''];
  return parts.filter(Boolean).join(', ');
}

/**
 * Where a node stands among the branches, as a phrase after its name: the last words before it, or that it goes on from the text.
 * Empty for the text itself.
 * @param {LaidNode} laid
 */
export function placePhrase({node, parent}) {
  if (!parent || node.here || node.state === 'typed' || node.state === 'chosen') return '';
  if (parent.node.here) return 'after your text';
  let text = '';
  for (let at = /** @type {LaidNode | null} */ (parent); at && !at.node.here; at = at.parent) text = at.node.text + text;
  const words = lastWordsOf(text.trimEnd());
  return words.trim() ? `after ${spokenQuote(words)}` : '';
}

/**
 * That branches part after a node, and how many; empty where at most one goes on.
 * @param {TreeNode} node
 */
function forkClause(node) {
  const count = partsAfter(node);
  return count > 1 ? ` A fork: ${formatCount(count, 'branch', 'branches')} part here.` : '';
}

/**
 * How many ways the branches go on after a node.
 * @param {TreeNode} node
 */
const partsAfter = ({children}) => children.filter(({state}) => state === 'ahead' || state === 'end').length;

/**
 * What a node is and what choosing it does, as one line.
 * @param {TreeNode} node
 * @param {string} [before] the text of its parent
 * @param {boolean} [isTooSmall] whether a tap only reads it, as its words cannot be seen
 */
export function nodeSentence(node, before = '', isTooSmall = false) {
  const {state, text, odds, here} = node, letters = continuedLetters(before, text), joined = letters && `${letters}·`;
  const named = text ? quotedText(text.length > 60 ? `…${text.slice(-60)}` : `${joined}${text}`) : 'The start';
  const chance = odds ? ` ${formatPercent(odds)} after the text before it.` : '';
  const choose = (/** @type {string} */ what) => (isTooSmall ? ` Zoom in with “+”, then tap it to ${what}` : ` Choose it to ${what}`);
  if (here) return `Here your text ends.${forkClause(node)}`;
  if (state === 'rest') return `${formatPercent(odds ?? {p: 0})}: what none of the branches drawn here goes on with.`;
  if (state === 'end') return `${formatPercent(odds ?? {p: 0})}: here the text would end. An ending inserts nothing.`;
  if (state === 'seen') return `${named} was seen and not taken.${chance}${choose('go back to where it was seen.')}`;
  if (state === 'left') return `${named} was left behind.${chance}${choose('go there; nothing is lost.')}`;
  if (state === 'ahead') return `${named}${chance || '.'}${forkClause(node)}${choose('insert the text up to here.')}`;
  return `${named}${text ? ` was ${STATES[state]}.` : '.'}${chance}${choose('go back to here; nothing is lost.')}`;
}

/**
 * Where branches begin and fork: the end of the text is no fork of theirs. Empty if they part nowhere.
 * @param {LaidNode[]} forks the nodes after which they part
 */
function partedClause(forks) {
  const later = forks.filter(({node}) => !node.here).length, atEnd = later < forks.length;
  const where = [atEnd ? 'go on from the end of your text' : '', later ? `part at ${formatCount(later, 'fork')}` : ''].filter(Boolean);
  return where.length ? ` ${where.join(' and ')}` : '';
}

/**
 * What the figures and widths of a drawing are.
 * @param {{river: boolean, session: boolean}} drawing
 */
export const figuresSentence = ({river, session}) => 'All figures are of tokens, not of words.' + (river && session
  ? ' After each text that you wrote, chose or left behind, the river has its full width again, whatever the chance of that text. Every other width is the chance of all tokens since then.' : '');

/**
 * What the thickness of a drawing's lines is. The width of a river is not the figure of its token: that is the token's chance after the text before it.
 * @param {{river: boolean}} drawing
 */
export const thicknessSentence = ({river}) => (river ? 'Width: the chance of the whole path.' : 'The thicker a line, the likelier.');

/**
 * What a drawing shows, in one sentence.
 * @param {LaidNode[]} nodes
 */
export function drawingSentence(nodes) {
  const count = (/** @type {TreeState} */ state) => nodes.filter(({node}) => node.state === state).length;
  const branches = nodes.filter(({node}) => node.state === 'end' || (node.state === 'ahead' && !node.children.length)).length;
  const tokens = formatCount(count('ahead'), 'token') + (branches > 1 ? ' in all' : '');
  const parted = partedClause(nodes.filter(({node}) => partsAfter(node) > 1));
  const ahead = branches ? `${formatCount(branches, 'branch', 'branches')}${parted}: ${tokens}` : 'No branches yet';
  // Of the branches alone the text is one node, which says nothing of how it was made.
  const isSession = nodes.length > 0 && (count('chosen') + count('typed') > 1 || count('left') > 0 || count('seen') > 0);
  // What is counted here are nodes: one choice may bring several words.
  const chosen = isSession ? count('chosen') : 0, left = count('left'), seen = count('seen');
  const past = [
    chosen && formatCount(chosen, 'choice'), left && `${formatCount(left, 'text')} left behind`,
    seen && `${formatCount(seen, 'beginning')} seen and not taken`,
  ].filter(Boolean);
  return `${[ahead, past.join(', ')].filter(Boolean).join('; ')}.`;
}
