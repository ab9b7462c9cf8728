// The details of a token: its odds and those of the likeliest alternatives, as the model gives them and processed.
/** @import {InternalsView, OddsRow, Processing} from '../../web/core/types.d.ts' */
import {COLUMNS, explainedFigures} from './figure_meanings.js';
import {explain} from '../../web/ui/tips.js';
import {find, make, spokenAs} from '../../web/ui/elements.js';
import {formatNumber, formatPercent} from '../../web/core/figures_and_labels.js';
import {NOT_PREDICTED, oddsOfRest, oddsRows, processingSentence, tokenFacts, tokenSummary, unlikeWriteSentence} from './token_figures.js';
import {quotedLabel, spokenToken, tokenInText, tokenLabel} from './visible_signs.js';

const BOUND = '≤: top-p includes more than the 64 likeliest tokens that are kept here, so this is only a bound.';

/**
 * Draw the details of a token.
 * @param {HTMLElement} element
 * @param {InternalsView} view
 * @param {number} index of the token
 * @param {Processing} processing of the processed odds
 * @param {string[] | null} roles of the messages; null for a plain text
 */
export function paintDetails(element, view, index, processing, roles) {
  const token = view.tokens[index], rows = index ? oddsRows(view, index, processing) : [];
  const bound = rows.some(row => row.processed.bound) ? ` ${BOUND}` : '';
  find(element, '.what').textContent = token.id === null ? 'What would come next' : quotedLabel(tokenInText(token, view.spelled[token.id]), token.text);
  find(element, '.facts').replaceChildren(...figureNodes(tokenFacts(view, token, index, roles)));
  find(element, '.came').replaceChildren(...(index ? figureNodes(tokenSummary(view, token, index, rows)) : [NOT_PREDICTED]));
  find(element, '.controls').hidden = find(element, '.about').hidden = !rows.length;
  find(element, '.wide').replaceChildren(...(rows.length ? [oddsTable(rows)] : []));
  const unlikeWrite = unlikeWriteSentence(view, index, roles);
  find(element, '.about').textContent = `Raw: as the model gives them. Processed: ${processingSentence(processing)}.${bound}${unlikeWrite && ` ${unlikeWrite}`}`;
}

/** @param {string} line figures between dots */
const figureNodes = line => explainedFigures(line).flatMap(({text, meaning, term}, index) => {
  const figure = make('span', {text});
  figure.dataset.term = term;   // its line in the help, without the figure
  return [index ? ' · ' : '', meaning ? explain(figure, meaning) : text];
});

/** @param {OddsRow[]} rows */
function oddsTable(rows) {
  const head = make('tr', {}, ...COLUMNS.map(([text, meaning]) => make('th', {scope: 'col'}, explain(make('span', {text}), meaning))));
  return make('table', {}, make('thead', {}, head), make('tbody', {}, ...rows.map(tableRow), restRow(rows)));
}

/** @param {OddsRow} row */
function tableRow({id, text, bytes, ended, came, rank, raw, processed}) {
  const token = make('td', {className: 'token'}, make('span', {className: 'spelled', dir: 'auto'}, ...spokenAs(tokenLabel({text, bytes}), spokenToken({text}, {text, bytes}))));
  if (bytes !== null) token.append(' ', make('span', {text: bytes.includes(' ') ? 'bytes' : 'byte', className: 'end', ariaHidden: 'true'}));
  if (ended) token.append(' ', make('span', {text: 'end', className: 'end'}));
  if (came) token.append(' ', make('span', {text: 'came', className: 'mark'}));
  const made = make('tr', {}, make('td', {text: formatNumber(rank)}), token, make('td', {text: id}),
    make('td', {text: formatPercent(raw), className: 'raw'}), make('td', {text: formatPercent(processed), className: 'processed'}));
  Object.assign(made.dataset, {id, p: raw.p, processed: processed.p, bound: processed.bound});
  made.toggleAttribute('data-came', came);
  made.toggleAttribute('data-end', ended);
  return made;
}

/** @param {OddsRow[]} rows */
function restRow(rows) {
  const cells = [
    {}, {text: 'all others together', className: 'token'}, {},
    {text: formatPercent(oddsOfRest(rows, 'raw'))}, {text: formatPercent(oddsOfRest(rows, 'processed'))},
  ];
  return make('tr', {className: 'others'}, ...cells.map(cell => make('td', cell)));
}
