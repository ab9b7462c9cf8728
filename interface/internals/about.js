// What the model thought at a token: the odds of what came and of the likeliest, as the model gives them, and processed.
import {make} from '../shared/elements.js';
import {named, written} from './signs.js';
import {oddsAfter, raw, sum, unpack} from '../branch_view/odds.js';
import {percent, plain} from '../branch_view/words.js';

const HEADS = ['Choice', 'Token', 'Id', 'Raw', 'Processed'];
const NO_ODDS = 'Nothing stands before it, so the model has no odds for it.';
const BOUND = '≤: top-p reaches past the 64 likeliest tokens that are kept here, so only a bound can be told.';
const IMPOSSIBLE = {p: 0, bound: false};

// `wanted`: temperature and topP of the processed odds. `whose(message)` says who wrote a token.
export function paint(element, view, index, wanted, whose) {
  const find = selector => element.querySelector(selector), token = view.tokens[index];
  const rows = index ? odds(view, index, wanted) : [], processed = settings(wanted);
  find('.what').textContent = token.id === null ? 'What would come next' : `“${written(token, view.spelled[token.id])}”`;
  find('.facts').textContent = facts(view, token, index, whose);
  find('.came').textContent = index ? summary(view, token, index, rows) : NO_ODDS;
  find('.controls').hidden = find('.about').hidden = !rows.length;
  find('.wide').replaceChildren(...(rows.length ? [table(rows)] : []));
  const bound = rows.some(row => row.processed.bound) ? ` ${BOUND}` : '';
  find('.about').textContent = `Raw: as the model gives them. Processed: ${processed}.${bound}`;
}

function facts({spelled}, token, index, whose) {
  if (token.id === null) return `position ${index} · nothing stands there yet`;
  const {bytes, ended} = spelled[token.id], part = bytes === null ? '' : 'bytes of a part of a character';
  const known = [`position ${index}`, `id ${token.id}`, whose(token.message), part, ended ? 'an ending' : ''];
  return known.filter(Boolean).join(' · ');
}

function settings({temperature, topP}) {
  if (temperature === 1 && topP >= 1) return 'temperature 1 and top-p 1 leave them as they are';
  return `at temperature ${temperature}${temperature <= 0 ? ', where the likeliest is certain' : ''}, top-p ${topP}`;
}

// A row for each alternative and for what came, each with its raw and its processed figure.
function odds({tokens, nodes, spelled}, index, {temperature, topP}) {
  const heated = temperature === 1 && topP >= 1 ? raw : oddsAfter(unpack(nodes[index - 1]), temperature, topP);
  const {id: came, rank, alternatives} = tokens[index];
  return alternatives.map(([id, logprob], place) => ({
    id, ...spelled[id], came: id === came, rank: id === came ? rank : place + 1,
    raw: logprob === null ? IMPOSSIBLE : raw(logprob), processed: logprob === null ? IMPOSSIBLE : heated(logprob),
  }));
}

function summary({entropies}, {id, rank}, index, rows) {
  const spread = `entropy ${entropies[index - 1].toFixed(2)} nats`, came = rows.find(row => row.came);
  if (id === null) return `“${named(rows[0])}” is the likeliest, with ${percent(rows[0].processed)} · ${spread}`;
  return `Choice ${plain(rank)} of the model's · raw ${percent(came.raw)} · processed ${percent(came.processed)} · ${spread}`;
}

function table(rows) {
  const head = make('tr', {}, ...HEADS.map(text => make('th', {text, scope: 'col'})));
  return make('table', {}, make('thead', {}, head), make('tbody', {}, ...rows.map(row), others(rows)));
}

function row({id, text, bytes, ended, came, rank, raw: before, processed}) {
  const token = make('td', {className: 'token'}, make('span', {text: named({text, bytes}), className: 'spelled', dir: 'auto'}));
  if (ended) token.append(' ', make('span', {text: 'end', className: 'end'}));
  if (came) token.append(' ', make('span', {text: 'came', className: 'mark'}));
  const made = make('tr', {}, make('td', {text: plain(rank)}), token, make('td', {text: id}),
    make('td', {text: percent(before), className: 'raw'}), make('td', {text: percent(processed), className: 'processed'}));
  Object.assign(made.dataset, {id, p: before.p, processed: processed.p, bound: processed.bound});
  made.toggleAttribute('data-came', came);
  made.toggleAttribute('data-end', ended);
  return made;
}

function others(rows) {
  const left = figures => {
    const {p, bound} = sum(figures);
    return percent({p: 1 - p, atLeast: bound});
  };
  const cells = [
    {}, {text: 'all others together', className: 'token'}, {},
    {text: left(rows.map(row => row.raw))}, {text: left(rows.map(row => row.processed))},
  ];
  return make('tr', {className: 'others'}, ...cells.map(cell => make('td', cell)));
}
