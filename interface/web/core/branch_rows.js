// What to draw of a view under the sliders' settings: pure, so that no slider needs the server where the data is there.
import {oddsAfter, oddsOfAll, rawOdds, unpackNode} from './odds.js';
import {distinctLengths, setShares, sumOf} from './shares.js';

const ENDS = {word: 1, clause: 2, sentence: 3, line: 4};
const CUTTABLE = ['likely', 'sampled'];   // of these, fewer and shorter rows are what a smaller request would give
const collator = new Intl.Collator();
const unpacked = new WeakMap();

// Whether a view's data is enough for these settings; what they do not name is as it was asked for.
export function coversSettings(view, settings) {
  const asked = view.asked, wanted = {...asked, ...settings};
  if (wanted.mode !== asked.mode) return false;
  if (asked.mode === 'sampled' && !['temperature', 'top_p', 'seed'].every(name => wanted[name] === asked[name])) return false;
  return CUTTABLE.includes(asked.mode) ? wanted.k <= asked.k && longEnough(view, wanted) : sameRows(view, wanted);
}

function longEnough(view, wanted) {
  const {until, depth} = view.asked;
  if (wanted.until === until) return isLength(until) ? wanted.depth <= depth : true;
  const reached = isLength(wanted.until)
    ? branch => branch.ids.length >= wanted.depth + Number(branch.healed)
    : branch => branch.pieces.some(piece => piece.ends >= ENDS[wanted.until]);
  return view.branches.slice(0, wanted.k).every(branch => branch.ended || reached(branch));
}

function sameRows(view, wanted) {
  const {k, depth, until, mode} = view.asked;
  if (wanted.k !== k || wanted.until !== until) return false;
  return wanted.depth === depth || (mode === 'every_level' && wanted.depth < depth && wanted.depth > levels(view));
}

const isLength = until => !(until in ENDS);
// How many levels down the rows of a tree still part.
const levels = view => Math.max(0, ...distinctLengths(view.branches.map(branch => branch.ids)));

// Rows in order with the odds of all their pieces, what they hold together, and what else there was. `pinned` is what is
// left of an accepted branch; `growing`: rows may still be shorter than they will be. `oneWord` among the settings shows
// of each row its first word, as one piece.
export function shapeRows(view, settings = {}, pinned = null, growing = false) {
  const wanted = {order: 'share', ...view.asked, ...settings}, odds = oddsOf(view, wanted);
  const shown = shownBranches(view, wanted).map(branch => makeRow(branch, view, wanted, odds));
  const pin = pinned && shapePinnedRow(pinned, wanted);
  const top = pin && placePinned(shown, pin, growing);
  const whole = setShares(shown);
  if (pin && top === pin) setShares([...shown, pin], [pin]);
  const rows = shown.filter(row => row !== top).sort(comparing(wanted.order));
  if (top) rows.unshift(top);
  return {
    rows, wanted, given: view.given || '', count: shown.length, coverage: whole,
    rest: {p: 1 - whole.p, atLeast: whole.bound}, firsts: shown.every(row => row.apart === 1),
    others: others(view, rows, odds),
  };
}

// What is left of an accepted branch as a row, by the odds that it brought along, else by raw ones.
export function shapePinnedRow(pinned, wanted) {
  const row = makeRow(pinned, pinned, wanted, oddsOf(pinned, wanted));
  setShares([row]);
  return Object.assign(row, {pinned: true, extra: true});
}

const shownBranches = (view, wanted) =>
  view.branches.filter(branch => branch.ids.length).slice(0, CUTTABLE.includes(view.asked.mode) ? wanted.k : Infinity);

// A function (node's index, raw log-probability) -> figure.
function oddsOf(view, {temperature = 1, top_p: topP = 1}) {
  if (temperature === 1 && topP >= 1) return (_, logprob) => rawOdds(logprob);
  const nodes = nodesOf(view), known = [];
  return (index, logprob) => {
    if (!nodes[index]) return {...rawOdds(logprob), raw: true};
    known[index] ??= oddsAfter(nodes[index], temperature, topP);
    return known[index](logprob);
  };
}

function nodesOf(view) {
  if (!unpacked.has(view)) unpacked.set(view, (view.nodes || []).map(unpackNode));
  return unpacked.get(view);
}

function makeRow(branch, source, wanted, odds) {
  const length = lengthOf(branch, source.asked?.mode ?? CUTTABLE[0], wanted);
  const figures = branch.ids.slice(0, length).map((_, index) => odds(branch.at?.[index], branch.logprobs[index]));
  const ended = branch.ended && length === branch.ids.length;
  const own = makePieces(branch, length, figures), pieces = wanted.oneWord ? joined(own) : own;
  // Where it ends at once, only what stands in place of the typed token comes before the ending.
  const held = pieces.length ? pieces.at(-1).tokens : Number(ended && Boolean(branch.healed));
  return {
    branch, nodes: source.nodes, ids: branch.ids.slice(0, length), figures, pieces, ended, healed: Boolean(branch.healed),
    path: oddsOfAll(figures), rawPath: sumOf(branch.logprobs.slice(0, length)),
    end: ended ? figures.at(-1) : null, unsaid: length - held - Number(ended), raw: figures.some(figure => figure.raw),
    pinned: false, extra: false, open: !ended && !isLength(endOf(wanted)) && !pieces.some(piece => piece.ends >= ENDS[endOf(wanted)]),
  };
}

// What rows are shown up to. Where a click takes one word they hold no more, however long they were asked for.
const endOf = ({until, oneWord}) => (oneWord ? 'word' : until);

// How many tokens of a branch are shown. The token that stands in place of the last one typed comes on top of the depth.
function lengthOf(branch, mode, wanted) {
  const {depth} = wanted, until = endOf(wanted);
  if (!isLength(until)) return branch.pieces.find(piece => piece.ends >= ENDS[until])?.tokens ?? branch.ids.length;
  if (!CUTTABLE.includes(mode) && mode !== 'every_level') return branch.ids.length;
  return Math.min(branch.ids.length, depth + Number(Boolean(branch.healed)));
}

function makePieces(branch, length, figures) {
  let begun = 0;
  return branch.pieces.filter(piece => piece.tokens <= length).map(({text, tokens, ends}) => {
    const own = figures.slice(begun, tokens), ids = branch.ids.slice(begun, tokens);
    begun = tokens;
    const typed = Number(Boolean(branch.healed) && tokens === ids.length);
    return {text, tokens, ends, ids, odds: oddsOfAll(own), upTo: oddsOfAll(figures.slice(0, tokens)), unsaid: unsaidBefore(text, ids, typed)};
  });
}

// All pieces as one.
function joined(pieces) {
  if (pieces.length < 2) return pieces;
  const {tokens, ends, upTo} = pieces.at(-1);
  const text = pieces.map(piece => piece.text).join(''), ids = pieces.flatMap(piece => piece.ids);
  return [{text, tokens, ends, ids, odds: upTo, upTo, unsaid: 0}];
}

// Only a character of several bytes can need several tokens: before other text, all tokens but one say nothing. The
// one that stands in place of what was typed has said it already.
const unsaidBefore = (text, ids, typed) => (/^[\0-\x7f]+$/.test(text) ? Math.max(0, ids.length - 1 - typed) : 0);

const begins = (ids, beginning) => beginning.every((id, index) => ids[index] === id);

// The row that stands for what was pinned: one that goes on as it does, else a further one. While rows are growing, one
// that is still shorter shows what is pinned, so that nothing that was there is lost on the way.
function placePinned(shown, pin, growing) {
  const place = shown.findIndex(row => begins(row.ids, pin.ids) || (growing && begins(pin.ids, row.ids)));
  if (place < 0) return pin;
  if (shown[place].ids.length < pin.ids.length) shown[place] = {...pin, extra: false};
  shown[place].pinned = true;
  return shown[place];
}

function comparing(order) {
  if (order === 'alphabet') return (one, other) => collator.compare(textOf(one).trimStart(), textOf(other).trimStart());
  const name = order === 'path' ? 'path' : 'share', rawName = order === 'path' ? 'rawPath' : 'rawShare';
  return (one, other) => other[name].p - one[name].p || other[rawName] - one[rawName];
}

const textOf = row => row.pieces.map(piece => piece.text).join('');

// The likeliest beginnings that no row begins with, those of rows that are not shown among them. One has a single token,
// or two where the first stands in place of the last one typed.
function others(view, rows, odds) {
  const found = new Map();
  for (const entry of [...view.branches.filter(branch => branch.ids.length).map(firstOf), ...(view.rest || [])]) {
    const key = entry.ids.join(' ');
    if (found.has(key) || rows.some(row => begins(row.ids, entry.ids))) continue;
    const figures = entry.logprobs.map((logprob, index) => odds(entry.at?.[index] ?? 0, logprob));
    found.set(key, {...entry, odds: oddsOfAll(figures), raw: sumOf(entry.logprobs)});
  }
  return [...found.values()].sort((one, other) => other.raw - one.raw);
}

function firstOf({ids, logprobs, at, pieces, ended}) {
  const length = pieces[0]?.tokens ?? 1, cut = list => list?.slice(0, length);
  return {ids: cut(ids), logprobs: cut(logprobs), at: cut(at), text: pieces[0]?.text ?? null, end: ended && ids.length === length};
}
