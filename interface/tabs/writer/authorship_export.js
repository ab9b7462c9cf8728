// Who wrote each character of a document, as a file: Markdown, HTML without scripts, or JSON, which can be imported. Two exports
// of one document are equal, byte by byte.
/** @import {AuthoredPiece, AuthorRun} from '../../web/core/types.d.ts' */
import {AUTHOR_MEANINGS, AUTHOR_NAMES, authoredPieces, countByAuthor, modelOfPiece, pieceSentence} from '../../web/core/authored_pieces.js';
import {formatPercent, percentsOfAll, visibleText} from '../../web/core/figures_and_labels.js';
import {escapeMarkup} from '../../web/core/markup.js';
import {htmlPage} from './html_page.js';

export const AUTHORSHIP_FORMAT = 'lookahead-authorship';
export const AUTHORSHIP_VERSION = 1;

/**
 * @typedef {object} AuthoredDocument
 * @property {string} name
 * @property {string} text
 * @property {string | null} model its name
 * @property {string | null} [instruction] what the model is told to do with the text; null where the text goes on as it is
 * @property {AuthorRun[]} authors
 */

/** @param {AuthoredPiece[]} pieces */
function shareSentences(pieces) {
  const counts = countByAuthor(pieces), shares = percentsOfAll(counts.map(([, count]) => count));
  return counts.map(([author, count], index) => ({author, name: AUTHOR_NAMES[author], count, share: shares[index]}));
}

/**
 * A document's authorship as JSON: pieces that cover the whole text, each with its author, order, model and probability.
 * @param {AuthoredDocument} document
 */
export function authorshipJson({name, text, model, instruction = null, authors}) {
  const pieces = authoredPieces(text, authors), counts = Object.fromEntries(countByAuthor(pieces));
  const notes = {
    positions: 'UTF-16 code units', order: 'number of the step that brought the piece, from 1 for the first; steps of which nothing is left in the text are not counted',
    probability: 'of the whole chosen piece after the text before it, and after its instruction if it has one, at temperature 1 and top-p 1, with banned tokens and an avoided word left out',
    instruction: 'of a piece: what the model was told when the piece was chosen, at most its first 200 characters; missing if nothing',
  };
  return `${JSON.stringify({format: AUTHORSHIP_FORMAT, version: AUTHORSHIP_VERSION, name, text, model, instruction, notes, authors: AUTHOR_MEANINGS, characters: counts, pieces}, null, 1)}\n`;
}

/**
 * The fields of a document, unchecked, from a value that `authorshipJson` has written. The document has no steps: the authors are
 * those of its first text. They are left out if the texts of the pieces do not add up to the text.
 * @param {Record<string, any>} value
 * @returns {{text: any, [field: string]: any}}
 */
export function authorshipFields({name, text, model, instruction, pieces}) {
  const fields = {name, text, model, instruction};
  const isWhole = Array.isArray(pieces) && pieces.every(piece => typeof piece?.text === 'string') && pieces.map(piece => piece.text).join('') === text;
  if (!isWhole) return fields;
  let end = 0;
  const spans = [], authors = [];
  for (const {text: {length}, author, order, model: from, probability, instruction: told} of pieces) {
    const start = end;
    end += length;
    if (author === 'chosen') spans.push([start, end]);
    authors.push({length, author, step: order, ...(author === 'chosen' ? {model: from, logprob: Math.log(probability ?? 0), ...(told && {instruction: told})} : {})});
  }
  return {...fields, spans, history: {steps: [], position: 0, authors}};
}

/** The page may have shown other figures: those under its settings. */
const PLAIN_ODDS = 'Odds are those at temperature 1 and top-p 1, whatever was set; banned tokens and an avoided word are left out.';
const TOLD = 'When this was saved, the model was told:';

// Markdown.

/** @typedef {{text: string, tag: string}} Fragment of a line */

/** @type {Record<AuthoredPiece['author'], string>} */
const TAGS = {chosen: 'b', pasted: 'i', earlier: 'i', example: 'i', typed: ''};
const SIGN = /[\\`*_[\]<>&~|$]/;                       // means something anywhere in Markdown
const BLOCK = /^(?:([#+=-])|\d+(?=[.)]))/;             // means something at the start of a line

/**
 * The lines of a text as fragments by author.
 * @param {AuthoredPiece[]} pieces
 */
function linesOf(pieces) {
  /** @type {Fragment[][]} */
  const lines = [[]];
  for (const {text, author} of pieces) {
    for (const [index, part] of text.split('\n').entries()) {
      if (index) lines.push([]);
      lines[lines.length - 1].push({text: part, tag: TAGS[author]});
    }
  }
  return lines;
}

/** @param {Fragment[]} fragments of one line */
function markdownLine(fragments) {
  const line = fragments.map(({text}) => text).join(''), lead = line.length - line.trimStart().length;
  const block = BLOCK.exec(line.slice(lead)), blockAt = block ? lead + (block[1] ? 0 : block[0].length) : -1;
  /** @type {(sign: string, at: number) => string} */
  const escape = (sign, at) => {
    if (at < lead) return sign === '\t' ? '&nbsp;'.repeat(4) : '&nbsp;';
    return at === blockAt || SIGN.test(sign) ? `\\${sign}` : sign;
  };
  let at = 0;
  return fragments.map(({text, tag}) => {
    const signs = text.split('').map(sign => escape(sign, at++)), from = text.length - text.trimStart().length;
    const to = from + text.trim().length, inner = signs.slice(from, to).join('');
    return signs.slice(0, from).join('') + (tag && inner ? `<${tag}>${inner}</${tag}>` : inner) + signs.slice(to).join('');
  }).join('');
}

/**
 * The text of all pieces as Markdown. A line end within a paragraph is kept by a backslash before it.
 * @param {AuthoredPiece[]} pieces
 */
const markdownText = pieces => linesOf(pieces).map(markdownLine).join('\n').replace(/([^\n])\n(?!\n|$)/g, '$1\\\n');

/**
 * A piece in a table: without the spaces around it, and with signs for line breaks and for spaces alone.
 * @param {string} text
 */
const pieceText = text => visibleText(text.replace(/^ +| +$/g, '') || text);

/** @param {string | number | null} value */
const tableCell = value => (value === null ? '–' : String(value).replace(/\n/g, '↵').replace(/[\\`*_[\]<>&~|$]/g, '\\$&'));

/**
 * A document's authorship as Markdown: the text with what was chosen in bold, and a table of its pieces.
 * @param {AuthoredDocument} document
 */
export function authorshipMarkdown({name, text, instruction, authors}) {
  const pieces = authoredPieces(text, authors);
  const legend = shareSentences(pieces).map(({author, name, share, count}) => `- ${name}: ${share} (${count} characters), ${AUTHOR_MEANINGS[author]}`);
  const rows = pieces.map(piece => {
    const {order, author, text, probability} = piece;
    const cells = [order, AUTHOR_NAMES[author], pieceText(text), modelOfPiece(piece), probability === null ? null : formatPercent({p: probability})];
    return `| ${cells.map(tableCell).join(' | ')} |`;
  });
  return [
    `# ${tableCell(name)}`, '', markdownText(pieces), '', '## Who wrote what', '',
    'Bold: chosen. Italic: pasted, or there before. Plain: typed.', '', ...legend, '',
    ...(instruction ? [`${TOLD} “${tableCell(instruction)}”`, ''] : []), PLAIN_ODDS, '',
    '| order | author | text | model | odds of the piece |', '| ---: | --- | --- | --- | ---: |', ...rows, '',
  ].join('\n');
}

// HTML.

/** @param {AuthoredPiece} piece */
const htmlPiece = piece => `<span class="${piece.author}" title="${escapeMarkup(pieceSentence(piece))}">${escapeMarkup(piece.text)}</span>`;

/** @param {AuthoredPiece} piece */
function htmlRow(piece) {
  const {order, author, text, probability} = piece;
  const figures = [probability === null ? '–' : formatPercent({p: probability}), modelOfPiece(piece) ?? '–'];
  return `<tr><td>${order ?? '–'}</td><td>${AUTHOR_NAMES[author]}</td><td class="piece" dir="auto">${escapeMarkup(pieceText(text))}</td>${
    figures.map(figure => `<td>${escapeMarkup(figure)}</td>`).join('')}</tr>`;
}

/**
 * A document's authorship as a page of its own, without scripts, for light and dark mode.
 * @param {AuthoredDocument} document
 */
export function authorshipHtml({name, text, instruction, authors}) {
  const pieces = authoredPieces(text, authors), shares = shareSentences(pieces);
  const legend = shares.map(({author, name, share}) => `<li><span class="${author}">${name}</span> ${share}: ${AUTHOR_MEANINGS[author]}</li>`);
  const strip = pieces.map(({author, text}) => `<i class="${author}" style="flex-grow: ${text.length}"></i>`);
  const body = `<h1 dir="auto">${escapeMarkup(name)}</h1>
<div class="strip" aria-hidden="true">${strip.join('')}</div>
<article class="text" dir="auto">${pieces.map(htmlPiece).join('')}</article>
<h2>Who wrote what</h2>
<ul class="legend">
${legend.join('\n')}
</ul>${instruction ? `\n<p class="told" dir="auto">${TOLD} “${escapeMarkup(instruction)}”</p>` : ''}
<div class="scroll"><table>
<caption>All pieces of the text. “Order” numbers the steps that brought them, from 1 for the first; steps of which nothing is left in the text are not counted. ${PLAIN_ODDS}</caption>
<thead><tr><th>Order</th><th>Author</th><th>Text</th><th>Odds of the piece</th><th>Model</th></tr></thead>
<tbody>
${pieces.map(htmlRow).join('\n')}
</tbody>
</table></div>`;
  return htmlPage({title: name, body});
}
