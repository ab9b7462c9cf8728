// The sentences of the branch view: what its figures are, and what its rows and states mean.
/** @import {DrawnOther, DrawnRow, DrawnView, Odds, Row, RowPiece, RowSettings, ViewCost} from './types.d.ts' */
import {
  capitalized, continuedLetters, formatCount, formatError, formatKnown, formatNumber, formatPercent, isSigns, isUnknown, mayGoOn, quotedText, spokenQuote,
  spokenText,
} from './figures_and_labels.js';
import {isReheated} from './reheated_odds.js';
import {steeringSentence} from './word_odds.js';
import {buttonsFor, pieceName, tokensOfDepth, wordOfPiece} from './row_tokens.js';
import {firstWords} from './text_words.js';

/** What is said of rows that were computed before a setting, a ban or the prompt changed, until the new ones are there. */
export const NEW_ROWS_COMING = 'New rows are being computed. These are from before your change.';
/** What a screen reader says where rows that were announced as ones that follow take long. */
export const ROWS_STILL_COMING = 'The rows are still being computed.';
const HINT = 'Each button is a token: a word, or a part of one. Choose one to write up to it.';
const KEPT_FIRST = 'The first row goes on from your choice, so it stays first.';
export const REFUSAL = 'That branch was for another text: it was not inserted.';
/** What stands in place of the rows until the next word is guessed. */
export const GUESS_FIRST = 'The rows are hidden: guess the next word first, or skip the guess.';

/**
 * @typedef {{pieces: (Pick<RowPiece, 'text'> & Partial<Pick<RowPiece, 'ids'>>)[], share?: Odds, pinned?: boolean, extra?: boolean}
 *   & Partial<Pick<Row, 'cut' | 'excludes'>>} DrawnPieces
 */
/** @typedef {{rows: DrawnPieces[]}} Drawn */

/**
 * Whether a row continues the last word of the text.
 * @param {Pick<DrawnView, 'given'> & Drawn} drawn
 */
const continuesWord = ({given, rows}) => rows.some(({pieces: [first]}) => continuedLetters(given, first?.text) !== '');

/**
 * What is added where the text ends inside a word: odds are those after the whole text, the letters of that word included.
 * Empty if no row continues the word.
 * @param {Pick<DrawnView, 'given'> & Drawn} drawn
 */
const unfinishedClause = drawn => (continuesWord(drawn) ? ', after your text with the unfinished word at its end' : '');

/** What ≤ means before the share of a row: see `nucleus` in reheated_odds.js. */
export const AT_MOST = '≤ means at most. Top-p keeps more than the 64 likeliest tokens here, and the page knows only the odds of those 64.';
const WORDS_REFUSED = 'Figures and order are those of tokens: word odds need temperature 1 and top-p 1.';

/**
 * What to do for odds of words, where they are chosen and the view, a word to steer by, the temperature or top-p makes them odds of
 * tokens; else empty.
 * @param {RowSettings} settings as they are chosen
 * @param {string} view the name of the view
 */
export function wordsNeed({odds, mode, towards, avoid, temperature = 1, top_p: topP = 1}, view) {
  if (odds !== 'words' || mode !== 'likely') return '';
  const step = view !== 'rows' ? 'choose Rows' : towards || avoid ? 'no steering' : temperature !== 1 ? 'temperature 1' : topP < 1 ? 'top-p 1' : '';
  return step && `For odds of words: ${step}.`;
}

/**
 * Which choice gives other rows, where a temperature changes figures alone: it gives other rows only where they are drawn at random.
 * Empty where it does, and at temperature 1.
 * @param {RowSettings} settings as they are chosen
 * @param {string} view the name of the view
 */
export const sameRowsRemark = ({mode, temperature = 1}, view) =>
  (view === 'rows' && mode !== 'sampled' && temperature !== 1 ? 'For other rows: Show “sampled”.' : '');

/**
 * Which odds a row's share is, and under which settings.
 * @param {Pick<DrawnView, 'firsts' | 'given' | 'wanted' | 'without'> & Drawn & Partial<Pick<DrawnView, 'wordError'>>} drawn
 */
function shareSentence(drawn) {
  const {firsts, wanted, wordError = null} = drawn;
  const signs = drawn.rows.map(({share}) => (share?.most !== undefined ? '; ≤ means at most' : share?.atLeast && !isUnknown(share) ? '; ≥ means at least' : ''));
  const bounds = [...new Set(signs)].sort().join('');
  const bold = wordError !== null ? `a word (exact to ${formatError(wordError)}${bounds})` : firsts ? 'a token' : wanted.towards ? 'all up to the word you look for, which may go on as a longer word' : 'all up to where it differs from the other rows';
  return `A row’s share is the chance that its part in bold comes next: ${bold}, ${samplingClause(wanted)}${withoutBanned(drawn)}${unfinishedClause(drawn)}.`;
}

/**
 * What is said after the sentence on shares: what the chosen mode shows, why shares are not those of words, or what a click
 * does. Only one of them, so that the line keeps its height, and nothing below it moves, when temperature or top-p change.
 * @param {Pick<DrawnView, 'count' | 'wanted'> & Drawn & Partial<Pick<DrawnView, 'wordError'>>} drawn
 * @param {boolean} isFinal whether no more rows can come
 */
function hintSentence({count, wanted, rows, wordError = null}, isFinal) {
  const remark = boundRemark(rows), shown = modeSentence({count, rows, wanted}, isFinal), kept = isKeptFirst(rows) ? KEPT_FIRST : '';
  if (remark) return remark;
  if (shown || wanted.mode !== 'likely' || !isReheated(wanted)) return [shown, kept].filter(Boolean).join(' ') || HINT;
  return wordError === null && wanted.odds === 'words' ? WORDS_REFUSED : HINT;
}

/**
 * What ≤ means, if a share is an upper bound; else empty.
 * @param {Drawn['rows']} rows
 */
const boundRemark = rows => (rows.some(({share}) => share?.bound) ? AT_MOST : '');

/**
 * What is said under the rows of a column: what a share is stands once, under all columns.
 * @param {Drawn} drawn
 */
export const columnRemarks = ({rows}) => [cutRowsSentence(rows), boundRemark(rows)].filter(Boolean).join(' ');

/**
 * Whether the first row stands before likelier ones, since it goes on from the token that was clicked.
 * @param {Drawn['rows']} rows
 */
const isKeptFirst = ([first, ...others]) =>
  Boolean(first?.pinned && !first.extra) && others.some(({share}) => (share?.p ?? 0) > (first.share?.p ?? 0));

/**
 * What each choice of “Show” shows.
 * @type {Record<string, string>}
 */
export const MODES = {
  likely: 'Most likely: the likeliest next words, or tokens (see “Odds of”), each continued.',
  every_level: 'Every level: rows split at the first token, and again at the second.',
  forks: 'Forks: rows also fork later, wherever another token has a chance of 5 % or more, before temperature and top-p. Of these rows, those with the highest shares are shown.',
  best_first: 'Best first: the likeliest whole rows that a search finds.',
  sampled: 'Sampled: rows drawn at random with the model’s odds.',
  diverse: 'Diverse: likely rows with few words in common.',
  surprising: 'Surprising: the likeliest row, then rows unlike it that still have 0.3 % or more; where it can, with beginnings that “most likely” does not show.',
};

/**
 * Why a mode finds fewer rows than were asked for.
 * @type {Record<string, string>}
 */
const FEWER = {
  forks: 'no more forks were found',
  surprising: 'no other beginning with 0.3 % or more, at temperature 1, was found',
  diverse: 'this choice of “Show” found no more',
  best_first: 'this choice of “Show” found no more',
};

const NO_FORK = 'No fork is among these rows: each begins with another token. After that, other tokens have less than 5 %, or their rows have lower shares than these.';

/** Whether there are several rows, and no two of them begin with the same piece. @param {Drawn['rows']} rows */
function partAtOnce(rows) {
  const firsts = rows.filter(({extra}) => !extra).map(({pieces}) => pieces[0]?.ids?.join(' '));
  return firsts.length > 1 && new Set(firsts).size === firsts.length;
}

/**
 * A sentence on what the mode shows, one where no fork was found, and one on why there are fewer rows than were asked for. Of the
 * likeliest rows, and of rows that lead to a word, it has only the sentence on fewer rows.
 * @param {Pick<DrawnView, 'count' | 'wanted'> & Drawn} drawn
 * @param {boolean} isFinal whether no more rows can come
 */
function modeSentence({count, rows, wanted: {mode = 'likely', k = 0, towards = ''}}, isFinal) {
  const why = towards ? `no more ways to ${quotedText(towards)} were found` : FEWER[mode];
  const fewer = isFinal && count < k && why ? `${formatNumber(count)} of ${formatCount(k, 'row')}: ${why}.` : '';
  if (towards || mode === 'likely') return fewer;
  const none = isFinal && mode === 'forks' && partAtOnce(rows) ? NO_FORK : '';
  return [MODES[mode], none, fewer].filter(Boolean).join(' ');
}

const MOST_BANNED = 3;         // banned tokens that are named

/**
 * Banned tokens have no share: which ones are missing here, and how likely those would be that are likely. Their number where
 * none is known by its text.
 * @param {Pick<DrawnView, 'wanted' | 'without'>} drawn
 */
function withoutBanned({wanted: {banned = 0, avoid = '', banned_texts: texts = []}, without}) {
  const isNamed = banned <= MOST_BANNED && texts.length === banned && texts.every(Boolean);
  const all = isNamed ? texts.map(quotedText).join(', ') : formatCount(banned, 'banned token');
  // Of several reasons it is not known which one a figure belongs to.
  if (avoid) return `, without the word ${quotedText(avoid)}${banned ? ` and ${all}` : likelyBanned(without)}`;
  if (!banned) return '';
  const likely = without.slice(0, MOST_BANNED);
  if (!likely.length) return `, without ${all}`;
  const named = likely.map(({text, odds}) => quotedText(text) + (odds ? ` (${formatPercent(odds)})` : ''));
  const more = banned - named.length;
  return `, without ${named.join(', ')}${more ? ` and ${formatNumber(more)} more` : ''}`;
}

/**
 * The likeliest token that an avoided word or a ban excludes, in brackets; empty if none is likely.
 * @param {DrawnView['without']} without
 */
function likelyBanned([likeliest]) {
  return likeliest?.odds ? ` (the token ${quotedText(likeliest.text)} would have ${formatPercent(likeliest.odds)})` : '';
}

/** @param {RowSettings} settings */
function samplingClause(settings) {
  const {temperature = 1, top_p: topP = 1} = settings;
  if (!isReheated(settings)) return 'as the model gives it';
  if (temperature <= 0) return 'at temperature 0: the likeliest is certain';
  return [`at temperature ${temperature}`, topP < 1 ? `top-p ${topP}` : ''].filter(Boolean).join(', ');
}

/**
 * The settings of odds, where they are not the model's own: "at temperature 0.7, without 2 banned tokens"; else empty.
 * @param {RowSettings & {banned?: number}} settings
 */
export function settingsClause(settings) {
  return `${isReheated(settings) ? samplingClause(settings) : ''}${withoutBanned({wanted: settings, without: []})}`.replace(/^, /, '');
}

/**
 * The end of the sentence "These 5 hold 71 % …": whether words or tokens are counted. It is one line, so that nothing moves
 * where a word begins or ends; the sentence on shares says it at length.
 * @param {Pick<DrawnView, 'given' | 'wanted'> & Partial<Pick<DrawnView, 'wordError'>> & Drawn} drawn
 */
export function coverageCaption(drawn) {
  const {top_p: topP = 1, temperature = 1} = drawn.wanted;
  if (temperature > 0 && topP < 1) return `of what top-p ${topP} leaves`;
  const ofWords = (drawn.wordError ?? null) !== null, heat = temperature === 1 ? '' : ` at temperature ${temperature}`;
  return `of what ${heat ? '' : 'the model thinks '}comes next${heat}${ofWords ? ', in words' : ', in tokens'}`;
}

/**
 * The line after it: which likely tokens are banned and count in no row; empty if none is banned.
 * @param {Pick<DrawnView, 'wanted' | 'without'>} drawn
 */
export const bannedCaption = drawn => withoutBanned(drawn).replace(/^, /, '');

/**
 * The sentence that explains the line of `bannedCaption` and the percentages in it; empty if no token is banned.
 * @param {Pick<DrawnView, 'wanted' | 'without'>} drawn
 */
export function bannedSentence(drawn) {
  const caption = bannedCaption(drawn), hasOdds = drawn.without.some(({odds}) => odds);
  return caption && `These rows are ${caption}.${hasOdds ? ' In brackets: the chance of each right after your text, if it were not banned.' : ''}`;
}

/**
 * The beginning of the sentence "These 5 hold 71 % …". Where a pinned row is shown that the model did not predict for this
 * text, the sentence is about the other rows. Rows that top-p or temperature 0 leave out hold nothing: "2 of these 5 hold".
 * @param {number} count the number of rows that the model predicted
 * @param {Partial<Pick<Row, 'extra' | 'cut' | 'excludes'>>[]} rows all rows shown; `extra` marks the pinned row that the model did not
 *   predict
 */
export function coverageSubject(count, rows) {
  const hasExtra = rows.some(({extra}) => extra);
  const holding = count - rows.filter(row => row.cut && row.excludes && !row.extra).length;
  if (holding && holding < count) return `${holding} of ${hasExtra ? 'the other' : 'these'} ${count} ${holding === 1 ? 'holds' : 'hold'}`;
  if (count === 1) return hasExtra ? 'The other one holds' : 'This one holds';
  return hasExtra ? `The other ${count} hold` : `These ${count} hold`;
}

/**
 * What a piece is, its odds, those of the row up to it, and those of the whole row.
 * @param {Pick<Row, 'path' | 'raw'> & Partial<Pick<DrawnRow, 'share' | 'next_word' | 'pieces' | 'healed'>>} row
 * @param {Pick<RowPiece, 'text' | 'odds' | 'upTo'> & Partial<Pick<RowPiece, 'ids'>>} piece
 * @param {string} [letters] of the word that the row continues
 */
export function describePiece(row, piece, letters = '') {
  const kind = row.raw ? ' · raw odds' : '', {next_word: word, share, pieces} = row, name = pieceName(row, piece, letters);
  if (word && share && !isUnknown(share) && pieces?.[0] === piece && formatPercent(share) !== formatPercent(piece.odds)) {
    return `Next word ${quotedText(letters + word.text)}: ${formatPercent(share)}, in any tokens · ` +
      `${name}${share.p < piece.odds.p ? ', also as the beginning of longer words' : ''}: ${formatPercent(piece.odds)} · whole row ${formatPercent(row.path)}${kind}`;
  }
  return `${capitalized(name)}: ${formatPercent(piece.odds)} after the text before it · up to here ${formatPercent(piece.upTo)} · ` +
    `whole row ${formatPercent(row.path)}${kind}`;
}

/**
 * The figure in the name of a piece's button. A row's first piece that is its next word has the row's figure; where the two
 * are different texts, the piece's figure says that it is that of its tokens.
 * @param {Pick<DrawnRow, 'share' | 'next_word'>} row
 * @param {Pick<RowPiece, 'text' | 'odds'>} piece
 * @param {boolean} isFirst whether the row begins with it
 */
export function pieceFigure({share, next_word: word}, {text, odds}, isFirst) {
  const own = formatPercent(odds);
  if (!isFirst || !word || own === formatPercent(share) || isUnknown(share)) return own;
  return word.text.trim() === text.trim() ? formatPercent(share) : `${own} for these tokens`;
}

/**
 * What another beginning is, and its odds.
 * @param {Pick<DrawnOther, 'text' | 'odds' | 'otherwise' | 'joined'> & {next_word?: object}} other
 * @param {string} [letters] of the word that it continues
 */
export const describeOther = (other, letters = '') => `${quotedText(letters + (other.text ?? ''))} ${formatPercent(other.odds)} · ` +
  (other.otherwise ? 'then something else than in the rows that begin with it' : other.joined ? 'without a space before it, which the row with this word has' : 'none of the rows begins with it') +
  (other.odds.bound ? '; ≤ means at most' : '') + (mayGoOn(other) && !other.otherwise ? '; … means that the word may be longer' : '');

/**
 * How much of the text is read, or how deep the rows of a growing view are; empty if neither is known.
 * @param {[number, number] | null | undefined} reading tokens that are read, of how many
 * @param {Pick<Row, 'extra' | 'ended' | 'repeats' | 'branch' | 'healed' | 'pieces'>[] | false | null} growing the rows of a growing view
 * @param {{until?: string, depth: number}} [asked]
 */
export function progressSentence(reading, growing, asked) {
  if (reading) return `Reading: ${formatNumber(reading[0])} of ${formatCount(reading[1], 'token')}`;
  const lengths = growing ? growing.filter(row => !row.extra && !row.ended && !row.repeats).map(row => row.branch.ids.length - tokensOfDepth(row, 0)) : [];
  if (!lengths.length) return '';
  const most = asked?.depth ?? Infinity, [least, deepest] = [Math.min(...lengths), Math.max(...lengths)].map(length => Math.max(0, Math.min(length, most)));
  if (least === most) return 'Computing the odds …';
  const length = asked && (!asked.until || asked.until === 'tokens') ? `${least} of ${formatCount(asked.depth, 'token')}` : formatCount(least, 'token');
  return `Growing: ${deepest > least ? 'at least ' : ''}${length}`;
}

/**
 * The line under the rows while nothing is pointed at.
 * @param {{state: string, note?: string | null, reading?: [number, number] | null}} status
 * @param {Pick<DrawnView, 'rows' | 'count' | 'firsts' | 'given' | 'wanted' | 'without'> & Partial<Pick<DrawnView, 'wordError'>>} drawn
 * @param {number} [seenFrom] the first character that the model reads
 * @param {boolean} [readOnly] whether a click inserts nothing
 */
export function summarySentence({state, note, reading}, drawn, seenFrom, readOnly = false) {
  if (state === 'error') return note || 'There are no branches for this text.';
  if (state === 'paused') return note || 'Paused. Press “Go on” to look for branches again.';
  if (state === 'thinking' && !drawn.rows.length && !note) return reading ? 'The model reads your text first.' : 'Looking ahead …';
  const from = seenFrom ? `The model reads from character ${formatNumber(seenFrom + 1)} on.` : '';
  return [from, note || (drawn.count ? `${shareSentence(drawn)}${readOnly ? '' : ` ${hintSentence(drawn, state === 'settled')}`}` : '')].filter(Boolean).join(' ');
}

/**
 * What a view cost, as pairs of a figure and its explanation.
 * @param {{cost: ViewCost, alone?: number}} view
 * @param {number} ahead tokens that were prefetched
 * @returns {[figure: string, explanation: string][]}
 */
export function costFigures({cost, alone}, ahead) {
  const {passes, tokens, seconds} = cost;
  return [
    [formatCount(passes, 'pass', 'passes'), passes ? 'through the model, for all rows together' : 'through the model: these rows were computed before'],
    [formatCount(tokens, 'token'), `computed for these rows${alone ? `; a request of its own for each row would compute ${formatNumber(alone)}` : ''}`],
    [seconds < 1 ? `${formatNumber(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`, 'in all'],
    ...(ahead ? [/** @type {[string, string]} */ ([formatCount(ahead, 'token'), 'computed in advance, so that a click on a token with a dot is answered at once'])] : []),
  ];
}

/**
 * What a row's share is, where it stands. Tokens are counted as they can be seen: as buttons.
 * @param {Pick<Row, 'share' | 'apart'> & Partial<Pick<Row, 'next_word' | 'ended'>>
 *   & {pieces: (Pick<RowPiece, 'ids' | 'ends' | 'tokens'> & {text?: string})[]}} row
 * @param {string} [letters] of the word that the row continues
 */
export function shareLabel({share, apart, pieces, next_word: word, ended = false}, letters = '') {
  if (word && isUnknown(share) && share.most === undefined) return `The chance ${nextWordClause(word.text, letters)}${word.text ? ',' : ''} is not known yet`;
  if (word) return `${formatKnown(share)} chance ${nextWordClause(word.text, letters)}`;
  if (ended && !pieces.length) return `${formatPercent(share)} chance that the text ends here`;
  const [first] = pieces, count = buttonsFor(pieces, apart);
  const single = `${first?.ids.length === 1 && first.ends >= 1 ? 'this next token' : 'this beginning'}${first?.text ? `, ${nameOfText(letters + first.text)}` : ''}`;
  const what = count > 1 ? `these first ${formatNumber(count)} tokens` : count || apart < 2 ? single : 'this whole row';
  return isUnknown(share) && share.atLeast ? `The chance of ${what} is not known yet` : `${formatPercent(share)} chance of ${what}`;
}

/** A text in quotation marks; signs alone by their names. @param {string} text */
const nameOfText = text => (isSigns(text.trim() || text) ? spokenText(text.trim() || text) : quotedText(text));

/**
 * Signs are named, since screen readers do not say them.
 * @param {string} text of a next word
 * @param {string} letters of it that stand in the text already
 */
function nextWordClause(text, letters) {
  const bare = text.trim() || text;
  if (!text) return 'that the text ends here';
  return isSigns(bare) ? `of ${[...bare].length > 1 ? 'these next signs' : 'this next sign'}, ${spokenText(bare)}` : `of this next word, ${quotedText(letters + text)}`;
}

/** What a pinned row is: shown in it, where it is none of the view, and a part of its name for screen readers. */
export const REST_OF_CHOICE = 'the rest of your choice';

/** What is said of a row that is pinned beside those of the view. @param {Pick<Row, 'extra' | 'pinned'>} row */
export const pinnedPhrase = ({extra, pinned}) => (extra && pinned ? REST_OF_CHOICE : '');

export const PINNED_SENTENCE = 'This row is the rest of the branch that you chose. It is none of the rows that are asked for, and does not count in their coverage.';

/**
 * Why a row has 0 %, as a phrase; empty if it has more.
 * @param {Pick<Row, 'cut' | 'excludes'>} row
 */
export const cutPhrase = ({cut, excludes}) => (cut && excludes ? `left out by ${excludes}` : '');

/**
 * The same as a sentence.
 * @param {Pick<Row, 'cut' | 'excludes'>} row
 */
export const cutSentence = row =>
  (cutPhrase(row) ? `0 %: ${row.excludes} keeps likelier tokens only, and this row does not begin with one. You can still choose it.` : '');

/**
 * The same of all rows of a column, in which the phrases at their ends may be out of sight; empty if none is left out.
 * @param {Partial<Pick<Row, 'cut' | 'excludes'>>[]} rows
 */
function cutRowsSentence(rows) {
  const cut = rows.flatMap(row => (row.cut && row.excludes ? [row.excludes] : []));
  if (!cut.length) return '';
  return cut.length > 1 ? `The rows with 0 % are left out by ${cut[0]}: it keeps likelier tokens only. You can still choose them.`
    : `The row with 0 % is left out by ${cut[0]}: it keeps likelier tokens only. You can still choose it.`;
}

/**
 * What “everything else” says where nothing is listed; empty while more may be found.
 * @param {Pick<DrawnView, 'wanted' | 'growing'>} drawn
 */
export function nothingElse({wanted: {temperature = 1, top_p: topP = 1}, growing}) {
  if (temperature <= 0) return 'nothing, at temperature 0';
  if (topP < 1) return `nothing, by top-p ${topP}`;
  return growing ? '' : 'none of it is likely enough to be listed';
}

/**
 * What “everything else” is, and what choosing it does.
 * @param {boolean} listed whether there is a list
 */
export const elseTip = listed =>
  `Everything else: the chance that the text goes on with the beginning of none of these rows.${listed ? ' “…” after a beginning: its word may be longer. Choose it to list the likeliest of them.' : ''}`;

/**
 * Why a row stops, where that is no ending, as a phrase; empty if it just reached its length.
 * @param {Pick<Row, 'repeats' | 'limit'> & Partial<Pick<Row, 'unfollowed'>>} row
 */
export const stopPhrase = ({repeats, limit, unfollowed}) =>
  (repeats ? 'repeats' : limit ? `limit of ${formatCount(limit, 'token')}` : unfollowed ? 'not followed further' : '');

/**
 * The same as a sentence.
 * @param {Pick<Row, 'repeats' | 'limit'> & Partial<Pick<Row, 'unfollowed'>>} row
 */
export const stopSentence = ({repeats, limit, unfollowed}) =>
  (repeats ? 'The row ends here: from here on it would repeat itself, or it repeats your text.'
    : limit ? `The row stops at the limit of ${formatCount(limit, 'token')}, without the end that you asked for.`
      : unfollowed ? '“Best first” spends its work on the likeliest rows: this one was not followed further.' : '');

/**
 * What the sign of an ending means.
 * @param {Odds} odds of the end token
 * @param {boolean} [isAlone] whether the row has nothing else
 */
export const endSentence = (odds, isAlone = false) =>
  `The text ends ${isAlone ? 'here' : 'after this row'}, with a chance of ${formatPercent(odds)}: the model would write nothing more. Choosing this inserts nothing.`;

export const SHARE_MEANING = 'This is how likely the model finds it, not how good it is.';

/**
 * What is shown and announced of a whole row that was chosen while it grew.
 * @param {number} branch
 */
export const awaitSentence = branch => `Branch ${formatNumber(branch + 1)} is inserted as soon as it is complete. Esc gives it up.`;

const LAST = 24;   // characters of the last words of a text

/**
 * The last words of a text, in few characters; all of it where it has no more.
 * @param {string} text without spaces at its end
 */
export const lastWords = text => (text.length > LAST ? text.slice(-LAST).replace(/^\S*\s/, '') : text);

/**
 * Where the rows continue, if that is not the end of the text; else empty.
 * @param {string} text
 * @param {number} caret its index
 */
export function caretSentence(text, caret) {
  if (!text.slice(caret).trim()) return '';
  const before = text.slice(0, caret).trimEnd(), words = lastWords(before);
  if (!before) return 'The rows continue at the caret: at the beginning of your text.';
  const shown = words.length < before.length ? `…${words}` : words;
  return `The rows continue at the caret, after ${quotedText(shown)}. What follows it stays.`;
}

/** What is said where a key leads to the rows, and the focus is there already. */
export const ROWS_HAVE_FOCUS = 'The focus is on the rows already: the arrow keys move it, Alt+↑ leads back.';

/** What is said of a row that a person has changed, until what follows the change is there. */
export const ROW_CHANGING = 'What follows your change is being computed.';
/** What is said where a row that was waited for is not among the complete rows. */
export const ROW_GONE = 'That branch is not among these rows: nothing was inserted.';

/**
 * Why a row that consists of the end token alone cannot be accepted; empty for other rows, and if there is no row.
 * @param {{ended: boolean, pieces: unknown[]} | undefined} row
 * @param {number} branch the row's index
 */
export const onlyEndsSentence = (row, branch) =>
  (row?.ended && !row.pieces.length ? `Branch ${branch + 1} ends the text here: it inserts nothing.` : '');

/**
 * Why no text of a row can be inserted by its number: there are rows, but not this one, or it only ends the text. Empty if it
 * can, or if there are no rows yet.
 * @param {Pick<DrawnRow, 'ended' | 'pieces'>[]} rows
 * @param {number} branch the row's index
 */
export const refusedRowSentence = (rows, branch) =>
  (rows.length && !rows[branch] ? `There is no branch ${branch + 1}.` : onlyEndsSentence(rows[branch], branch));

/**
 * What a screen reader says before Tab inserts the grey text; the first time also how to leave the text box by keys.
 * @param {string} text
 * @param {boolean} [again] whether it was said of another text before
 */
export const tabSentence = (text, again = false) => `Tab inserts ${spokenQuote(text)}${again ? '' : '; Esc, then Tab, leaves the text box'}.`;

/** What it says where the grey text has grown since: the rest. @param {string} rest */
export const tabAlsoSentence = rest => `Tab also inserts ${spokenQuote(rest)}.`;

/** What a screen reader says of Tab where a key has brought the focus into the text box, which shows grey text. */
export const TAB_LEADS_ON = 'Tab leads to the next control. Once you write, it inserts the grey text.';

/** Why Tab does nothing while the ghost text is computed. */
export const GHOST_IS_COMING = 'The grey text is not there yet. Tab accepts it once it is shown; Esc, then Tab leaves the box.';

/** Why Tab does not insert the ghost text yet: it was not announced. */
export const GHOST_IS_NEW = 'The grey text has just changed: press Tab again to insert it.';

/** Why no rows are computed for the text: a part of it is selected. */
export const SELECTION = 'While text is selected, no rows are computed.';

/**
 * Why no key leads to the rows: there are none.
 * @param {{state: string, paused: boolean, selected: boolean}} about `state` is that of the branch view
 */
export function noRowsSentence({state, paused, selected}) {
  if (state === 'empty') return 'There are no rows yet: write something first.';
  if (paused) return 'There are no rows: branching is paused. “Go on”, or Alt+P, continues it.';
  if (selected) return 'There are no rows: a selection pauses branching.';
  return state === 'thinking' ? 'There are no rows yet: the model is still at work.' : 'There are no rows for this text.';
}

/** @typedef {{pinned?: boolean, pieces: (Pick<RowPiece, 'text'> & Partial<RowPiece>)[]}} SpokenRow */

/**
 * The beginning of a row as a screen reader is to say it, after the letters of the text that it continues.
 * @param {SpokenRow} row
 * @param {string} before the end of the text before the rows
 * @param {number} [size] the number of its first pieces, all unless given
 */
export function spokenBeginning({pieces, pinned}, before, size = pieces.length) {
  const text = pieces.slice(0, size).map(piece => piece.text).join(''), letters = pinned ? '' : continuedLetters(before, text);
  return letters + spokenText(text).trim();
}

/**
 * A phrase with the text that a person has written into a row, after the row's tokens before it, and with the whole word if the next
 * token continues it. Empty if nobody has changed the row.
 * @param {SpokenRow} row
 * @param {string} before the end of the text before the rows
 */
export function changedPhrase(row, before) {
  const last = row.pieces.findLastIndex(({isEdited}) => isEdited);
  if (last < 0) return '';
  const {pieces, pinned} = row, goesOn = continuedLetters(pieces[last].text, pieces[last + 1]?.text);
  const word = goesOn && wordOfPiece(pieces, last, pinned ? '' : continuedLetters(before, pieces[0].text));
  return `changed by you to “${spokenBeginning(row, before, last + 1)}”${word && `, a part of ${spokenQuote(word)}`}`;
}

const MOST_SPOKEN = 12;   // words of a row that are announced

/**
 * What is announced of a row: its text. A row of more than MOST_SPOKEN words is cut after these, or after the token that sets it
 * apart from the other rows, if that comes later.
 * @param {Partial<Pick<Row, 'apart'>> & SpokenRow} row
 * @param {string} before the end of the text before the rows
 */
function announcedRow({pieces, pinned, apart = 0}, before) {
  const own = pieces.findIndex(({tokens = 0}) => tokens >= apart) + 1 || pieces.length;
  const [text, least] = [pieces, pieces.slice(0, own)].map(some => some.map(piece => piece.text).join(''));
  const shown = firstWords(text, MOST_SPOKEN, least.trimEnd().length);
  return `${spokenBeginning({pieces: [{text: shown}], pinned}, before) || 'end'}${shown === text ? '' : ', and so on'}`;
}

/**
 * What a screen reader says of a settled view: the row that is the rest of what was chosen, where the model did not predict it; the
 * coverage, the text of each other row, and the odds of the word that the rows go towards.
 * @param {Pick<DrawnView, 'count' | 'coverage'> & Partial<Pick<DrawnView, 'wanted' | 'given' | 'wordError' | 'word' | 'growing'>>
 *   & {rows: (Partial<Pick<Row, 'apart' | 'branch' | 'extra' | 'cut' | 'excludes'>> & SpokenRow)[]}} drawn
 * @param {string} [before] the end of the text before the rows
 */
export function announcementSentence({count, coverage, rows, wanted = {}, ...drawn}, before = '') {
  const under = isReheated(wanted) ? ` ${coverageCaption({given: '', ...drawn, wanted, rows})}` : '';
  const steered = steeringSentence({...drawn, wanted, rows});
  /** @type {(extra: boolean) => string} */
  const texts = extra => rows.filter(row => Boolean(row.extra) === extra).map(row => announcedRow(row, before)).join('; ');
  const rest = texts(true);
  return `${rest && `First ${REST_OF_CHOICE}: ${rest}. `}${coverageSubject(count, rows)} ${formatKnown(coverage)}${under}: ${texts(false)}${steered && `. ${steered}`}`;
}
