// Branches as rows of buttons. Built with textContent alone: what a model or a person wrote is never markup.
const root = document.getElementById(`${props.prefix}branches`);
const part = name => element.querySelector(`.${name}`);
const rows = part('rows');
const PLAIN_NOTE = 'A row’s share: the raw odds of its first token. Click any token to write up to it.';
const REFUSAL = 'That branch was for another text: it was not inserted.';

let expected = 0;   // the revision that is wanted
let answered = -1;  // the revision of the latest view
let shown = -1;     // the revision that the rows belong to: a view without branches leaves them as they were
let chosen = null;  // what lay under the pointer when it went down: a paint may come before it goes up
let refusing = 0;   // the timer that takes a refusal away

part('cover').id = `${props.prefix}coverage`;
part('meter').id = `${props.prefix}meter`;

function percent(share) {
  const hundredths = share * 100;
  if (hundredths >= 99.5 && hundredths < 99.995) return '> 99 %';
  if (hundredths < 0.00005) return hundredths > 0 ? '< 0.0001 %' : '0 %';
  return `${hundredths >= 9.95 ? Math.round(hundredths) : Number(hundredths.toPrecision(hundredths >= 0.1 ? 2 : 1))} %`;
}

const plain = number => Math.round(number).toLocaleString('en');
const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };

function make(tag, className, parent) {
  const node = document.createElement(tag);
  node.className = className;
  parent.append(node);
  return node;
}

// Signs for what cannot be seen: line breaks, tabs, lone spaces, and characters without any width.
function visible(text) {
  const signed = text.replace(/\n/g, '↵').replace(/\r/g, '␍').replace(/\t/g, '⇥');
  if (/^ +$/.test(signed)) return signed.replace(/ /g, '␣');
  if (/^[\p{C}\p{Z}\p{M}]+$/u.test(signed) && !/^\p{M}+$/u.test(signed))
    return [...signed].map(sign => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`).join(' ');
  return signed;
}

function makeRow(index) {
  const row = make('div', 'branch', rows);
  row.dataset.branch = index;
  row.setAttribute('role', 'group');
  write(make('kbd', 'key', row), String(index + 1));
  const share = make('div', 'share', row);
  make('span', 'figure', share);
  make('i', 'fill', make('span', 'bar', share));
  make('div', 'tokens', row).dir = 'auto';
  return row;
}

function paintRow(row, branch, widest) {
  Object.assign(row.dataset, {share: branch.share, pathProbability: branch.probability, end: branch.ended});
  row.setAttribute('aria-label', `Branch ${Number(row.dataset.branch) + 1}, ${percent(branch.share)}`);
  write(row.querySelector('.figure'), percent(branch.share));
  row.querySelector('.fill').style.width = `${100 * branch.share / (widest || 1)}%`;
  const tokens = row.querySelector('.tokens'), buttons = tokens.getElementsByTagName('button');
  tokens.querySelector('.end')?.remove();
  while (buttons.length > branch.pieces.length) buttons[buttons.length - 1].remove();
  branch.pieces.forEach((piece, index) => paintToken(buttons[index] || makeToken(tokens, index), piece));
  if (branch.ended) paintEnd(make('span', 'end', tokens), branch.end_probability);
}

function makeToken(tokens, index) {
  const button = make('button', 'token', tokens);
  button.type = 'button';
  button.tabIndex = -1;
  button.dataset.token = index;
  return button;
}

function paintToken(button, piece) {
  Object.assign(button.dataset, {text: piece.text, ids: piece.ids.join(' '), p: piece.probability});
  write(button, visible(piece.text));
  button.setAttribute('aria-label', `${visible(piece.text)}, ${percent(piece.probability)}`);
  button.style.setProperty('--odds', `${Math.round(18 + 82 * Math.sqrt(piece.probability))}%`);
}

function paintEnd(chip, probability) {
  write(chip, `end ${percent(probability)}`);
  chip.title = 'Here the model would stop. An ending inserts nothing.';
}

function paintCover(view) {
  const count = view.branches.length, cover = part('cover');
  cover.hidden = !count;
  cover.dataset.coverage = view.coverage ?? '';
  write(part('count'), count === 1 ? 'This one holds' : `These ${count} hold`);
  write(part('held'), percent(view.coverage || 0));
  write(part('of'), view.given ? `of what could come next, given “${visible(view.given.trimStart() || view.given)}”` : 'of what the model thinks could come next');
  part('stack').replaceChildren(...view.branches.map((branch, index) => {
    const slice = document.createElement('i');
    slice.style.width = `${100 * branch.share}%`;
    slice.style.opacity = 1 - 0.7 * index / count;
    return slice;
  }));
}

function paintMeter(view) {
  const cost = view.cost, meter = part('meter');
  meter.hidden = !cost;
  if (!cost) return;
  Object.assign(meter.dataset, {passes: cost.passes, tokens: cost.tokens, seconds: cost.seconds});
  meter.replaceChildren();
  paintFigure(meter, counted(cost.passes, 'pass', 'passes'), cost.passes ? ' for this view' : ' for this view: all of it was known');
  paintFigure(meter, counted(cost.tokens, 'token', 'tokens'), ` read, where one request a branch reads ${plain(view.alone || 0)}`);
  paintFigure(meter, cost.seconds < 1 ? `${plain(cost.seconds * 1000)} ms` : `${cost.seconds.toFixed(1)} s`, '');
}

const counted = (number, one, many) => `${plain(number)} ${number === 1 ? one : many}`;

function paintFigure(meter, figure, rest) {
  const span = make('span', '', meter);
  write(make('b', '', span), figure);
  span.append(rest);
}

// The line under the rows: a refusal, what is under the pointer or in focus, or what the view has to say.
function paintNote() {
  const pointed = root.dataset.stale !== 'true' && (rows.querySelector('button:hover') || rows.querySelector('button:focus-visible'));
  write(part('note'), refusing ? REFUSAL : pointed ? about(pointed) : said());
}

function said() {
  const {reading, seen_from: from, note} = props.value;
  if (expected > answered) return rows.children.length ? PLAIN_NOTE : '';
  if (root.dataset.state === 'error') return 'There are no branches for this text: the reason stands at the top of the page.';
  const found = [reading && `Reading: ${plain(reading[0])} of ${plain(reading[1])} tokens.`,
    from && `The model reads from character ${plain(from + 1)} on.`, note];
  return found.filter(Boolean).join(' ') || PLAIN_NOTE;
}

function about(button) {
  const row = button.closest('.branch'), odds = upTo(button).map(token => Number(token.dataset.p));
  return `“${visible(button.dataset.text)}” ${percent(odds.at(-1))} after what stands before it · ` +
    `up to here ${percent(odds.reduce((all, one) => all * one, 1))} · whole row ${percent(Number(row.dataset.pathProbability))}`;
}

const upTo = button => [...button.parentElement.getElementsByTagName('button')].slice(0, Number(button.dataset.token) + 1);

function paintState() {
  root.dataset.state = expected > answered ? 'thinking' : props.value.state;
  root.dataset.stale = shown < Math.max(expected, answered);
  paintNote();
}

function paint() {
  const view = props.value;
  if (view.revision < answered) return;   // an older run's last word, overtaken on the way
  answered = view.revision;
  if (view.branches) paintBranches(view);
  paintState();
  if (root.dataset.state === 'settled') announce(view);
}

function paintBranches(view) {
  const focus = rows.contains(document.activeElement) ? document.activeElement : null;
  const place = focus && [focus.closest('.branch').dataset.branch, Number(focus.dataset.token)];
  const widest = Math.max(...view.branches.map(branch => branch.share));
  while (rows.children.length > view.branches.length) rows.lastChild.remove();
  view.branches.forEach((branch, index) => {
    paintRow(rows.children[index] || makeRow(index), branch, widest);
    if (view.revision > shown) rows.children[index].querySelector('.tokens').scrollLeft = 0;
  });
  shown = root.dataset.revision = view.revision;
  paintCover(view);
  paintMeter(view);
  if (place && !rows.contains(document.activeElement)) refocus(...place);
  if (!rows.querySelector('[tabindex="0"]')) rows.querySelector('button')?.setAttribute('tabindex', 0);
}

function refocus(branch, token) {
  const row = rows.children[Math.min(branch, rows.children.length - 1)];
  const buttons = row ? [...row.getElementsByTagName('button')] : [];
  focusOn(buttons[Math.min(token, buttons.length - 1)] || rows.querySelector('button'));
}

// One tab stop for all branches; arrows move it.
function focusOn(button) {
  if (!button) return;
  rows.querySelectorAll('[tabindex="0"]').forEach(other => { other.tabIndex = -1; });
  button.tabIndex = 0;
  button.focus({preventScroll: false});
}

function announce(view) {
  const beginnings = view.branches.map(branch => branch.pieces.slice(0, 3).map(piece => visible(piece.text)).join(''));
  write(part('announcement'), `${part('cover').textContent.trim()}: ${beginnings.join('; ')}`);
}

// What a click means, all tokens of the row up to this one.
function choiceOf(button) {
  const tokens = upTo(button), row = button.closest('.branch');
  return {
    revision: shown, branch: Number(row.dataset.branch), token: Number(button.dataset.token),
    text: tokens.map(token => token.dataset.text).join(''),
    ids: tokens.flatMap(token => token.dataset.ids.split(' ').map(Number)),
  };
}

function accept(choice, byKeyboard) {
  const event = new CustomEvent('accept', {detail: {...choice, byKeyboard}, bubbles: true, cancelable: true});
  if (!root.dispatchEvent(event)) refuse();
}

function refuse() {
  clearTimeout(refusing);
  root.dataset.refused = true;
  refusing = setTimeout(() => { refusing = 0; delete root.dataset.refused; paintNote(); }, 2500);
  paintNote();
  write(part('announcement'), REFUSAL);
}

rows.addEventListener('pointerdown', event => {
  const button = event.target.closest('button');
  chosen = button && {button, choice: choiceOf(button)};
});
rows.addEventListener('mousedown', event => event.preventDefault());   // the caret stays where it is
rows.addEventListener('click', event => {
  const button = event.target.closest('button');
  if (!button) return;
  const byKeyboard = event.detail === 0;
  accept(!byKeyboard && chosen?.button === button ? chosen.choice : choiceOf(button), byKeyboard);
  chosen = null;
});
rows.addEventListener('keydown', event => {
  const button = event.target.closest('button');
  const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
  if (!button || !step || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const row = Number(button.closest('.branch').dataset.branch) + step[0];
  if (row >= 0 && Number(button.dataset.token) + step[1] >= 0) refocus(row, Number(button.dataset.token) + step[1]);
});
for (const name of ['pointerover', 'pointerleave', 'focusin', 'focusout']) rows.addEventListener(name, paintNote);
root.addEventListener('expect', event => { expected = event.detail.revision; paintState(); });

watch('value', paint);
paint();
