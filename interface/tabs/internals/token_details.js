// What the model thought at a token: the odds of what came and of the likeliest, as the model gives them, and processed.
import {make} from '../../web/ui/elements.js';
import {tokenFacts, oddsOfRest, oddsRows, processingSentence, tokenSummary} from './token_figures.js';
import {tokenLabel, tokenInText} from './visible_signs.js';
import {formatPercent, formatNumber} from '../../web/core/branch_sentences.js';

const HEADS = ['Choice', 'Token', 'Id', 'Raw', 'Processed'];
const NO_ODDS = 'Nothing stands before it, so the model has no odds for it.';
const BOUND = '≤: top-p reaches past the 64 likeliest tokens that are kept here, so only a bound can be told.';

// `wanted`: temperature and topP of the processed odds. `roles`: of the messages; null for a plain text.
export function paintDetails(element, view, index, wanted, roles) {
  const find = selector => element.querySelector(selector), token = view.tokens[index];
  const rows = index ? oddsRows(view, index, wanted) : [], processed = processingSentence(wanted);
  find('.what').textContent = token.id === null ? 'What would come next' : `“${tokenInText(token, view.spelled[token.id])}”`;
  find('.facts').textContent = tokenFacts(view, token, index, roles);
  find('.came').textContent = index ? tokenSummary(view, token, index, rows) : NO_ODDS;
  find('.controls').hidden = find('.about').hidden = !rows.length;
  find('.wide').replaceChildren(...(rows.length ? [table(rows)] : []));
  const bound = rows.some(row => row.processed.bound) ? ` ${BOUND}` : '';
  find('.about').textContent = `Raw: as the model gives them. Processed: ${processed}.${bound}`;
}

function table(rows) {
  const head = make('tr', {}, ...HEADS.map(text => make('th', {text, scope: 'col'})));
  return make('table', {}, make('thead', {}, head), make('tbody', {}, ...rows.map(row), others(rows)));
}

function row({id, text, bytes, ended, came, rank, raw: before, processed}) {
  const token = make('td', {className: 'token'}, make('span', {text: tokenLabel({text, bytes}), className: 'spelled', dir: 'auto'}));
  if (ended) token.append(' ', make('span', {text: 'end', className: 'end'}));
  if (came) token.append(' ', make('span', {text: 'came', className: 'mark'}));
  const made = make('tr', {}, make('td', {text: formatNumber(rank)}), token, make('td', {text: id}),
    make('td', {text: formatPercent(before), className: 'raw'}), make('td', {text: formatPercent(processed), className: 'processed'}));
  Object.assign(made.dataset, {id, p: before.p, processed: processed.p, bound: processed.bound});
  made.toggleAttribute('data-came', came);
  made.toggleAttribute('data-end', ended);
  return made;
}

function others(rows) {
  const cells = [
    {}, {text: 'all others together', className: 'token'}, {},
    {text: formatPercent(oddsOfRest(rows, 'raw'))}, {text: formatPercent(oddsOfRest(rows, 'processed'))},
  ];
  return make('tr', {className: 'others'}, ...cells.map(cell => make('td', cell)));
}
