// The rows to draw of a view under the present settings, computed without the server wherever the view's data suffices.
/**
 * @import {Branch, BranchRemainder, DrawnSettings, DrawnView, Odds, OddsFunction, Row, RowPiece, RowSettings, Span,
 *   UnpackedNode, View} from './types.d.ts'
 */
/** @import {PathOdds} from './other_beginnings.js' */
import {beginsWith, otherBeginnings, otherWords} from './other_beginnings.js';
import {isReheated, joinNodes, oddsAfter, oddsError, oddsOfAll, rawOdds, unpackNode} from './reheated_odds.js';
import {tokensOfDepth} from './row_tokens.js';
import {distinctLengths, setShares, setWordShares, sumOf} from './shares.js';

const SUM_ERROR = 1e-9;   // of a sum of some ten odds
/** @type {Record<string, number>} */
const ENDS = {word: 1, clause: 2, sentence: 3, line: 4};
const CUTTABLE = ['likely', 'sampled'];   // modes in which a smaller request gives fewer and shorter rows of the same
const NOTICEABLE = 0.001;   // the least probability of a banned token that is told
const collator = new Intl.Collator();
/** @type {WeakMap<object, UnpackedNode[]>} */
const unpackedNodes = new WeakMap();

/**
 * Whether a view holds enough data for these settings. Settings that are not named are those of the view's request.
 * @param {View} view
 * @param {RowSettings} settings
 */
export function coversSettings(view, settings) {
  const asked = view.asked, wanted = {...asked, ...settings};
  /** @type {(...names: string[]) => boolean} */
  const same = (...names) => names.every(name => valueOf(wanted, name) === valueOf(asked, name));
  if (!same('mode') || (wanted.towards || '') !== (asked.towards || '') || (wanted.avoid || '') !== (asked.avoid || '')) return false;
  if (asked.mode === 'sampled' && !same('temperature', 'top_p', 'seed')) return false;
  // Odds of words are known at temperature 1 alone, and the likeliest words are other rows than the likeliest tokens.
  if (otherOdds(view, settings)) return false;
  return isCuttable(asked) ? wanted.k <= asked.k && isLongEnough(view, wanted) : hasSameRows(view, wanted);
}

/**
 * Whether a smaller request gives fewer and shorter rows of the same. Rows that lead to a word end there.
 * @param {{mode: string, towards?: string}} asked
 */
const isCuttable = ({mode, towards}) => CUTTABLE.includes(mode) && !towards;

/**
 * What shares are the probabilities of: words in the mode "likely" alone.
 * @param {{mode?: string, odds?: string, towards?: string, avoid?: string}} settings
 */
const oddsKind = ({mode, odds, towards, avoid}) => (mode === 'likely' && odds === 'words' && !towards && !avoid ? 'words' : 'tokens');

/**
 * The kind of odds of a view, "words" or "tokens", if the settings ask for the other kind; else null.
 * @param {View} view
 * @param {RowSettings} settings
 */
export function otherOdds({asked}, settings) {
  const odds = oddsKind(asked), wanted = {...asked, ...settings};
  return odds === (isReheated(wanted) ? 'tokens' : oddsKind(wanted)) ? null : odds;
}

/**
 * Whether shares are those of words: a view holds them for temperature 1 and top-p 1 only.
 * @type {(view: Pick<View, 'asked'>, wanted: RowSettings) => boolean}
 */
const hasWordShares = ({asked}, wanted) => oddsKind(asked) === 'words' && !isReheated(wanted);

/** @type {(settings: object, name: string) => unknown} */
const valueOf = (settings, name) => /** @type {Record<string, unknown>} */ (settings)[name] ?? (name === 'temperature' || name === 'top_p' ? 1 : undefined);

/** @type {(view: View, wanted: {k: number, depth: number, until: string}) => boolean} */
function isLongEnough(view, wanted) {
  const {until, depth} = view.asked;
  if (wanted.until === until) return isTokenCount(until) ? wanted.depth <= depth : true;
  /** @type {(branch: Branch) => boolean} */
  const reached = isTokenCount(wanted.until)
    ? branch => branch.ids.length >= tokensOfDepth(branch, wanted.depth)
    : branch => branch.pieces.some(piece => piece.ends >= ENDS[wanted.until]);
  return view.branches.slice(0, wanted.k).every(branch => branch.ended || branch.repeats || reached(branch));
}

/** @type {(view: View, wanted: {k: number, depth: number, until: string}) => boolean} */
function hasSameRows(view, wanted) {
  const {k, depth, until, mode} = view.asked;
  if (wanted.k !== k || wanted.until !== until) return false;
  return wanted.depth === depth || (mode === 'every_level' && wanted.depth < depth && wanted.depth > lastFork(view));
}

/**
 * Whether rows end after a number of tokens rather than at the end of a word, clause, sentence or line.
 * @param {string} until
 */
const isTokenCount = until => !(until in ENDS);

/**
 * The depth at which the last two rows of a view part.
 * @param {View} view
 */
const lastFork = view => Math.max(0, ...distinctLengths(view.branches.map(branch => branch.ids)));

/**
 * The rows of a view in order with the odds of all their pieces, what they hold together, and what else there is.
 * @param {View} view
 * @param {RowSettings} [settings]
 * @param {BranchRemainder | null} [pinned] what is left of an accepted branch
 * @param {boolean} [growing] whether the view's rows may still grow
 * @returns {DrawnView}
 */
export function shapeRows(view, settings = {}, pinned = null, growing = false) {
  const wanted = {order: 'share', ...view.asked, ...settings}, odds = oddsOfView(view, wanted);
  const branches = shownBranches(view, wanted), apart = isCuttable(view.asked) ? [] : distinctLengths(branches.map(branch => branch.ids));
  const shown = branches.map((branch, index) => makeRow(branch, view, wanted, odds, apart[index]));
  if (!growing && view.asked.mode === 'best_first') for (const row of shown) row.unfollowed = isUnfollowed(row, view.asked);
  const pin = pinned && shapePinnedRow(pinned, wanted);
  const top = pin && placePinned(shown, pin, growing);
  const excludes = excludingSetting(wanted), words = hasWordShares(view, wanted), tokenCoverage = setShares(shown);
  const coverage = words ? setWordShares(shown, !growing) : asBoundNearOne(tokenCoverage, wanted);
  if (pin && top === pin) setShares([...shown, pin], [pin]);
  const certain = shown.every(row => !row.share.atLeast), rows = shown.filter(row => row !== top);
  // Lower bounds say little of which word is likelier: the server's order does.
  const ordered = certain || wanted.order !== 'share' ? inOrder(rows, wanted.order) : rows;
  if (top) ordered.unshift(top);
  return {
    rows: ordered, wanted, given: view.given || '', count: shown.length, coverage, without: bannedTokens(view, wanted),
    rest: {p: 1 - coverage.p, atLeast: coverage.bound, ...(coverage.atLeast ? {bound: true} : {})}, firsts: shown.every(row => row.apart === 1),
    others: words ? otherWords(view, ordered, 1 - coverage.p) : otherBeginnings(view, ordered, odds).filter(({odds: {p}}) => p > 0 || !excludes),
    word: view.word, growing,
    wordError: words ? Math.max(0, ...shown.map(row => (row.share.atLeast ? 0 : row.next_word?.error ?? 0))) : null,
  };
}

/**
 * Whether a row of “best first” is shorter than asked for, since the search has ended before.
 * @type {(row: Row, asked: View['asked']) => boolean}
 */
const isUnfollowed = ({ended, repeats, open, branch}, {until, depth}) =>
  !ended && !repeats && (isTokenCount(until) ? branch.ids.length < tokensOfDepth(branch, depth) : open);

/**
 * Coverage, as a lower bound if it is so near 1 that what is left is smaller than the error of the odds. What top-p leaves
 * has a sum of 1.
 * @param {Odds} coverage
 * @param {DrawnSettings} wanted
 * @returns {Odds}
 */
function asBoundNearOne(coverage, {temperature = 1, top_p: topP = 1}) {
  if (topP < 1) return coverage.p > 1 - SUM_ERROR ? {...coverage, p: 1} : coverage;
  const p = 1 - oddsError(temperature);
  return coverage.p > p ? {p, atLeast: true} : coverage;
}

/**
 * What is left of an accepted branch as a row: with the nodes that it brought along, else with raw odds.
 * @param {BranchRemainder} pinned
 * @param {DrawnSettings} wanted
 * @returns {Row}
 */
export function shapePinnedRow(pinned, wanted) {
  const row = makeRow(pinned, pinned, wanted, oddsOfView(pinned, wanted));
  setShares([row]);
  return Object.assign(row, {pinned: true, extra: true});
}

/**
 * The banned tokens that have a text: first those that would be likely, with their odds; then the others, if the view is of the
 * present bans.
 * @type {(view: View, wanted: RowSettings) => DrawnView['without']}
 */
function bannedTokens({without = [], asked}, wanted) {
  const raw = !isReheated(wanted), {banned_texts: texts = []} = wanted;
  const likely = without.filter(({text}) => text).map(({text, probability}) => ({text, odds: raw && probability >= NOTICEABLE ? {p: probability} : null}));
  const others = texts.length === asked.banned ? texts.filter(text => text && !likely.some(one => one.text === text)) : [];
  return [...likely, ...others.map(text => ({text, odds: null}))];
}

/**
 * The setting that excludes all but the likeliest tokens, in words; empty if none does.
 * @param {RowSettings} settings
 */
const excludingSetting = ({temperature = 1, top_p: topP = 1}) => (temperature <= 0 ? 'temperature 0' : topP < 1 ? `top-p ${topP}` : '');

/** @type {(view: View, wanted: DrawnSettings) => Branch[]} */
const shownBranches = (view, wanted) =>
  view.branches.filter(branch => branch.ids.length).slice(0, isCuttable(view.asked) ? wanted.k : Infinity);

/** @type {(view: Pick<View, 'typed'> & {nodes?: string[]}, wanted: RowSettings) => PathOdds} */
function oddsOfView(view, wanted) {
  if (!isReheated(wanted)) return ({logprobs}) => logprobs.map(rawOdds);
  const {temperature = 1, top_p: topP = 1} = wanted;
  const nodes = nodesOf(view), joint = oddsOfReplacing(view, wanted);
  /** @type {OddsFunction[]} */
  const known = [];
  return ({ids, logprobs, at}) => {
    const figures = logprobs.map((logprob, position) => {
      const index = at?.[position];
      if (index === undefined || !nodes[index]) return {...rawOdds(logprob), raw: true};
      known[index] ??= oddsAfter(nodes[index], temperature, topP);
      return known[index](logprob);
    });
    return joint?.({ids, logprobs, at}, figures) ?? figures;
  };
}

/**
 * The odds of paths under settings, where the typed token is re-opened; null if it is not, or if the view lacks its nodes. The
 * function takes a path and the odds of each of its tokens by itself. It returns them with other odds of the first token that
 * inserts text, those of `joinNodes`; a typed token before it has 1. It returns null for a path that does not begin after the
 * predictions of the view, such as a changed row with a banned token.
 * @param {Pick<View, 'typed'> & {nodes?: string[]}} view
 * @param {RowSettings} wanted
 * @returns {((path: {ids: number[], logprobs: number[], at?: number[]}, figures: Odds[]) => Odds[] | null) | null}
 */
function oddsOfReplacing(view, {temperature = 1, top_p: topP = 1}) {
  const {typed, nodes: packed = []} = view;
  if (!typed) return null;
  const [first, after] = typed.at.map(index => nodesOf(view)[index]);
  if (!first || !after) return null;
  const odds = oddsAfter(joinNodes(first, after, typed.logprob), temperature, topP);
  /** @type {(at: number[] | undefined, position: number) => boolean} */
  const isAfter = (at, position) => at?.[position] !== undefined && packed[at[position]] === packed[typed.at[position]];
  return ({ids, logprobs, at}, figures) => {
    if (!isAfter(at, 0)) return null;
    if (ids[0] !== typed.id) return [odds(logprobs[0]), ...figures.slice(1)];
    return ids.length > 1 && isAfter(at, 1) ? [{p: 1, bound: false}, odds(logprobs[0] + logprobs[1]), ...figures.slice(2)] : null;
  };
}

/** @param {{nodes?: string[]}} view */
function nodesOf(view) {
  const found = unpackedNodes.get(view) ?? (view.nodes || []).map(unpackNode);
  unpackedNodes.set(view, found);
  return found;
}

/**
 * `apart` is the number of tokens that set a branch of a tree apart: none of them is cut.
 * @type {(branch: Branch, source: {nodes?: string[], asked?: View['asked']}, wanted: DrawnSettings, odds: PathOdds, apart?: number) => Row}
 */
function makeRow(branch, source, wanted, odds, apart = 0) {
  const length = shownLength(branch, source.asked, wanted, apart);
  const figures = odds(branch).slice(0, length);
  const ended = branch.ended && length === branch.ids.length;
  const own = makePieces(branch, length, figures), pieces = wanted.oneWord ? joinPieces(own) : own;
  // A row that ends at once holds, before the end token, only the token that replaces the typed one.
  const held = pieces.length ? pieces[pieces.length - 1].tokens : Number(ended && Boolean(branch.healed));
  const until = endOf(wanted), repeats = Boolean(branch.repeats) && length === branch.ids.length;
  const open = !ended && !repeats && !branch.word && !isTokenCount(until) && !pieces.some(piece => piece.ends >= ENDS[until]);
  return {
    branch, nodes: source.nodes, ids: branch.ids.slice(0, length), figures, pieces, ended, healed: Boolean(branch.healed),
    path: oddsOfAll(figures), rawPath: sumOf(branch.logprobs.slice(0, length)),
    end: ended ? figures[figures.length - 1] : null, unsaid: length - held - Number(ended), raw: figures.some(figure => figure.raw),
    pinned: false, extra: false, repeats, unfollowed: false, open, limit: open ? reachedLimit(length, branch, source.asked) : 0,
    apart: 0, share: {p: 0}, rawShare: 0, cut: false, excludes: excludingSetting(wanted),
  };
}

/**
 * The most tokens that a row may have before the end that is asked for, if it has as many; else 0.
 * @type {(length: number, branch: Branch, asked: View['asked'] | undefined) => number}
 */
const reachedLimit = (length, {healed}, asked) =>
  (asked && !isTokenCount(asked.until) && length >= asked.depth + Number(Boolean(healed)) ? asked.depth : 0);

/**
 * What rows are shown up to: the first word where a click takes one word, however long they were asked for.
 * @param {DrawnSettings} wanted
 */
const endOf = ({until, oneWord}) => (oneWord ? 'word' : until);

/**
 * The number of a branch's first tokens that are shown. In modes whose branches cannot be cut without choosing others, that
 * is the depth of the request, not the present setting.
 * @type {(branch: Branch, asked: View['asked'] | undefined, wanted: DrawnSettings, apart: number) => number}
 */
function shownLength(branch, asked, wanted, apart) {
  const {depth} = asked && !CUTTABLE.includes(asked.mode) && asked.mode !== 'every_level' ? asked : wanted, until = endOf(wanted);
  if (branch.word || branch.edited) return branch.ids.length;
  // A row shows its first word whole: a line or a sentence may end within it, as in a blank line.
  const word = branch.next_word?.tokens ?? 0;
  if (!isTokenCount(until)) return Math.max(word, branch.pieces.find(piece => piece.ends >= ENDS[until])?.tokens ?? branch.ids.length);
  return Math.min(branch.ids.length, Math.max(tokensOfDepth(branch, depth), word, apart));
}

/** @type {(branch: Branch, length: number, figures: Odds[]) => RowPiece[]} */
function makePieces(branch, length, figures) {
  let begun = 0;
  return branch.pieces.filter(piece => piece.tokens <= length).map(({text, tokens, ends}) => {
    const own = figures.slice(begun, tokens), ids = branch.ids.slice(begun, tokens);
    begun = tokens;
    const typed = Number(Boolean(branch.healed) && tokens === ids.length);
    /** @param {Span} [span] */
    const isIn = span => Boolean(span && tokens > span[0] && tokens - ids.length < span[1]);
    return {
      text, tokens, ends, ids, odds: oddsOfAll(own), upTo: oddsOfAll(figures.slice(0, tokens)), unsaid: unsaidBefore(text, ids, typed),
      isWord: isIn(branch.word), isEdited: [branch.edited, ...(branch.earlier_edits ?? [])].some(isIn),
    };
  });
}

/**
 * All pieces as one.
 * @param {RowPiece[]} pieces
 * @returns {RowPiece[]}
 */
function joinPieces(pieces) {
  if (pieces.length < 2) return pieces;
  const {tokens, ends, upTo} = pieces[pieces.length - 1];
  const text = pieces.map(piece => piece.text).join(''), ids = pieces.flatMap(piece => piece.ids);
  return [{text, tokens, ends, ids, odds: upTo, upTo, unsaid: 0}];
}

/**
 * The number of tokens before a piece's text that hold no whole character. Only a character of several bytes can need
 * several tokens, so before ASCII text all tokens but the last hold none. A token that replaces the typed one
 * (`typed` is 1) does not count.
 * @type {(text: string, ids: number[], typed: number) => number}
 */
const unsaidBefore = (text, ids, typed) => (/^[\0-\x7f]+$/.test(text) ? Math.max(0, ids.length - 1 - typed) : 0);

/**
 * The row that stands for the pinned one: a row that continues it, else the pinned row itself. While rows grow, a row
 * that is still shorter is replaced by the pinned one, so that nothing disappears.
 * @type {(shown: Row[], pin: Row, growing: boolean) => Row}
 */
function placePinned(shown, pin, growing) {
  const index = shown.findIndex(row => beginsWith(row.ids, pin.ids) || (growing && beginsWith(pin.ids, row.ids)));
  if (index < 0) return pin;
  if (shown[index].ids.length < pin.ids.length) shown[index] = lengthened(shown[index], pin);
  shown[index].pinned = true;
  return shown[index];
}

/**
 * The pinned row in place of one that it continues: with the view's odds as far as that row goes.
 * @type {(row: Row, pin: Row) => Row}
 */
function lengthened({figures, branch: {next_word: word}}, pin) {
  const branch = word ? {...pin.branch, next_word: word} : pin.branch;
  return {...pin, branch, figures: [...figures, ...pin.figures.slice(figures.length)], extra: false};
}

/**
 * The rows in an order. In the order of shares, a changed row stays where the row stood that it replaces.
 * @param {Row[]} rows in the order of the view
 * @param {string} order
 */
function inOrder(rows, order) {
  const stays = (/** @type {Row} */ {branch}) => order === 'share' && Boolean(branch.edited);
  const ordered = rows.filter(row => !stays(row)).sort(comparing(order));
  rows.forEach((row, index) => { if (stays(row)) ordered.splice(index, 0, row); });
  return ordered;
}

/** @type {(order: string) => (one: Row, other: Row) => number} */
function comparing(order) {
  if (order === 'alphabet') return (one, other) => collator.compare(textOf(one).trimStart(), textOf(other).trimStart());
  if (order === 'path') return (one, other) => other.path.p - one.path.p || other.rawPath - one.rawPath;
  return (one, other) => other.share.p - one.share.p || other.rawShare - one.rawShare;
}

/** @param {Row} row */
const textOf = row => row.pieces.map(piece => piece.text).join('');
