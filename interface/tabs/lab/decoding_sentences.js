// The result of the decoding experiment as sentences, and as rows of tables.
/** @import {BeamTreeNode, DecodingView} from '../../web/core/types.d.ts' */
import {formatPercent, quotedText, visibleText} from '../../web/core/figures_and_labels.js';
import {isDropped, textName} from './decoding_tree.js';

/** A log-probability with two decimals and a proper minus sign. @param {number | null} value */
const figure = value => (value === null ? '–' : value.toFixed(2).replace('-', '−'));

export const TEXT_HEADS = ['Method', 'Text', 'Total', 'Average', 'Repeats'];

/** The rows of the table of texts. @param {DecodingView} view @returns {string[][]} */
export const textRows = ({texts}) => texts.map(text =>
  [textName(text), visibleText(text.texts.join('').trimStart()) + (text.ended ? ' [end]' : ''), figure(text.total), figure(text.average), formatPercent({p: text.repetition})]);

export const TEXT_NOTE = 'Total: the sum of the log-probabilities that the model gives to the tokens; nearer to 0 is likelier. Average: the total divided by the number of tokens. Repeats: the part of all sequences of three tokens that came before in the same text.';

/**
 * What is said when the form no longer has the prompt and options of the texts, by whose chances the plot shows.
 * @param {{form: boolean, run: boolean}} plotted whether the plot is of the form as it is now, and whether it is of the run that wrote the texts
 */
export const changedSentence = ({form, run}) => {
  if (form) return 'The tree and the texts are of the run before; the plot has what the form has now. Run again for new texts.';
  if (run) return 'This is the result of the run before: run again for what the form has now.';
  return 'The tree and the texts are of the run before, and the plot is of what the form had after it: run again for what it has now.';
};

const SAME = 1e-4;   // odds that differ by less are the same to a reader: float32 rounds by up to 1e-5

/** What the options do to the odds, in one sentence. @param {Pick<DecodingView, 'odds'>} view */
export function optionsSentence({odds}) {
  if (odds.every(({raw, processed}) => Math.abs(raw - processed) < SAME)) return 'The options leave the chances as the model gives them.';
  const [{text, raw, processed}] = odds, excluded = odds.filter(one => one.raw > 0 && one.processed === 0).length;
  const first = `With the options, the chance of the likeliest token, ${quotedText(text)}, changes from ${formatPercent({p: raw})} to ${formatPercent({p: processed})}`;
  return excluded ? `${first}, and ${excluded} of the ${odds.length} tokens shown cannot be drawn.` : `${first}.`;
}

/**
 * How to read a token's figures in the tree with a mouse or a finger, and which figures the tables below have for everybody else.
 * @param {boolean} dropped whether a beam search was among the methods
 */
export const pointSentence = dropped => (dropped
  ? 'Point at a token, or tap it, to read its chance; of one that a beam search dropped, also why: tick its box above the tree to draw them. With keys: Tab leads into the tree, and the arrow keys from token to token.'
  : 'Point at a token, or tap it, to read its chance. With keys: Tab leads into the tree, and the arrow keys from token to token.');

export const DROPPED_HEADS = ['Path', 'Chance', 'Reason'];

/**
 * The paths that the beam search dropped, in its order: the text of each, the odds of its last token, and the reason.
 * @param {Pick<DecodingView, 'tree'>} view
 * @returns {string[][]}
 */
export function droppedRows({tree}) {
  /** @type {(node: BeamTreeNode) => string} */
  const textOf = node => (node.parent === null ? '' : textOf(tree[node.parent])) + node.text;
  return tree.filter(({fate}) => isDropped(fate)).map(node =>
    [visibleText(textOf(node).trimStart()) + (node.ended ? ' [end]' : ''), formatPercent({p: Math.exp(node.logprob)}), node.reason]);
}

/** @param {string} text */
const quoted = text => `"${text.replaceAll('"', '""')}"`;

/** All texts as comma-separated values, with a line of names. @param {DecodingView} view */
export const csvOf = ({texts}) => [
  'method,number,tokens,total,average,repetition,text',
  ...texts.map(text => [text.method, text.number, text.token_ids.length, text.total, text.average ?? '', text.repetition, quoted(text.texts.join(''))].join(',')),
].join('\n') + '\n';
