// Rows of branches as elements of the page. What is there is used again, so that a paint is quick and focus stays.
import {make, set, trim, write} from './dom.js';
import {PARTIAL_TOKEN_SIGN, formatPercent, visibleText} from '../web/core/branch_sentences.js';

const KEYS = 9;   // rows that a key of their own chooses

export function paintRows(container, rows) {
  const widest = Math.max(0, ...rows.map(row => row.share.p)) || 1;
  trim(container, rows.length);
  rows.forEach((row, index) => paintRow(container.children[index] || makeRow(container, index), row, index, widest));
}

function makeRow(container, index) {
  const node = make('div', 'branch', container);
  node.dataset.branch = index;
  node.setAttribute('role', 'group');
  make('kbd', 'key', node).setAttribute('aria-hidden', true);
  const share = make('div', 'share', node);
  make('span', 'figure', share);
  make('i', 'fill', make('span', 'bar', share));
  Object.assign(make('div', 'tokens', node), {dir: 'auto', tabIndex: -1});
  return node;
}

function paintRow(node, row, index, widest) {
  const [key, share, tokens] = node.children, figure = formatPercent(row.share);
  set(node, 'data-share', row.share.p);
  set(node, 'data-path-probability', row.path.p);
  set(node, 'data-end', String(row.ended));
  set(node, 'data-cut', row.cut || null);
  set(node, 'data-bound', row.share.bound || null);
  set(node, 'data-pinned', row.pinned || null);
  set(node, 'aria-label', `Branch ${index + 1}${row.pinned ? ', the rest of what you chose' : ''}, ${figure}`);
  write(key, index < KEYS ? String(index + 1) : '');
  write(share.firstChild, figure);
  share.lastChild.firstChild.style.width = `${Math.min(100, 100 * row.share.p / widest)}%`;
  paintTokens(tokens, row);
}

function paintTokens(tokens, row) {
  for (const sign of tokens.querySelectorAll('.sign, .end')) sign.remove();
  trim(tokens, row.pieces.length);
  row.pieces.forEach((piece, index) => {
    const button = tokens.children[index] || makeToken(tokens, index);
    paintToken(button, piece);
  });
  row.pieces.forEach((piece, index) => {
    if (piece.unsaid) tokens.querySelector(`[data-token="${index}"]`).before(makeSign(piece.unsaid));
  });
  if (row.unsaid) tokens.append(makeSign(row.unsaid));
  if (row.ended) tokens.append(makeEnd(row.end));
  if (row.open) tokens.append(makeOpen());
}

function makeToken(tokens, index) {
  const button = make('button', 'token', tokens);
  button.type = 'button';
  button.tabIndex = -1;
  button.dataset.token = index;
  return button;
}

function paintToken(button, {text, ids, odds}) {
  set(button, 'data-text', text);
  set(button, 'data-ids', ids.join(' '));
  set(button, 'data-p', odds.p);
  set(button, 'data-cut', odds.p === 0 || null);
  write(button, visibleText(text));
  set(button, 'aria-label', `${visibleText(text)}, ${formatPercent(odds)}`);
  set(button, 'style', underline(odds.p));
}

// A surer token is underlined more heavily and more colourfully: it reads without colour too.
const underline = p => `--odds: ${Math.round(18 + 82 * Math.sqrt(p))}%; --weight: ${(1 + 4 * Math.sqrt(p)).toFixed(1)}px`;

// A row that has not come to the end that is asked for.
function makeOpen() {
  const sign = document.createElement('span');
  Object.assign(sign, {className: 'sign', textContent: '…', title: 'It goes on: its end is not known.'});
  return sign;
}

function makeSign(count) {
  const sign = document.createElement('span');
  sign.className = 'sign';
  sign.textContent = PARTIAL_TOKEN_SIGN.repeat(Math.min(count, 3));
  sign.title = 'The model’s token here holds no whole character: there is nothing to insert.';
  return sign;
}

function makeEnd(odds) {
  const chip = document.createElement('span');
  chip.className = 'end';
  chip.textContent = `end ${formatPercent(odds)}`;
  chip.title = 'Here the model would stop. An ending inserts nothing.';
  return chip;
}

// What may be chosen and what not any more, without another look at the odds.
export function markInert(container, rows) {
  rows.forEach((row, index) => set(container.children[index], 'data-inert', row.inert || null));
}

// A quiet dot on each token whose view is there already.
export function markAhead(container, rows, keys) {
  rows.forEach((row, index) => {
    for (const button of container.children[index].querySelectorAll('.token')) {
      const {tokens} = row.pieces[button.dataset.token];
      set(button, 'data-ahead', (!row.inert && keys.has(row.branch.ids.slice(0, tokens).join(' '))) || null);
    }
  });
}
