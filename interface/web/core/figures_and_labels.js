// How numbers, odds and texts are written: figures, signs for characters that cannot be seen, and labels.
/** @import {DrawnOther, Odds} from './types.d.ts' */

export const PARTIAL_TOKEN_SIGN = '◌';   // a token that holds no whole character, or no text at all

const numberFormat = new Intl.NumberFormat('en', {maximumFractionDigits: 0});

/**
 * A whole number with commas.
 * @param {number} number
 */
export const formatNumber = number => numberFormat.format(number);

const ordinals = new Intl.PluralRules('en', {type: 'ordinal'});
/** @type {Record<string, string>} */
const ENDINGS = {one: 'st', two: 'nd', few: 'rd', other: 'th'};

/**
 * A place in an order: "1st", "22nd", "1,003rd".
 * @param {number} number
 */
export const formatOrdinal = number => `${formatNumber(number)}${ENDINGS[ordinals.select(number)]}`;

/**
 * A number with its noun: "1 token", "2 tokens".
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export const formatCount = (number, one, many = `${one}s`) => `${formatNumber(number)} ${number === 1 ? one : many}`;

const LEAST = 0.0001;    // per cent: smaller values are shown as less than this
const UNKNOWN = '…';      // for odds of which nothing is known yet
const SPACE = '\u00a0';  // between a figure and its sign, where no line breaks

/**
 * Odds as per cent, with ≤, ≥, < or > where they are bounds or at the end of the scale.
 * @param {Odds} odds
 * @returns {string}
 */
export function formatPercent({p, bound = false, atLeast = false}) {
  const hundredths = p * 100, figure = (/** @type {number | string} */ value) => `${value}${SPACE}%`;
  if (bound) return `≤${SPACE}${hundredths < LEAST ? figure(LEAST) : p >= 0.995 ? figure(100) : formatPercent({p})}`;
  if (atLeast) return p >= 0.995 ? `>${SPACE}${figure(99)}` : `≥${SPACE}${hundredths < LEAST ? figure(0) : formatPercent({p})}`;
  if (hundredths >= 99.5 && hundredths < 99.9995) return `>${SPACE}${figure(99)}`;
  if (hundredths < LEAST) return hundredths > 0 ? `<${SPACE}${figure(LEAST)}` : figure(0);
  return figure(Number(hundredths.toPrecision(hundredths >= 0.01 ? 2 : 1)));
}

/**
 * A surprise or an entropy in bits, the unit of every page; the server sends nats.
 * @param {number} nats
 */
export const bitsOfNats = nats => nats / Math.LN2;

/**
 * Odds as a screen reader is to say them: not every one says ≤ and ≥.
 * @param {string} sentence with odds as `formatPercent` writes them
 */
export const spokenOdds = sentence => sentence.replaceAll(`≤${SPACE}`, `at most${SPACE}`).replaceAll(`≥${SPACE}`, `at least${SPACE}`);

/**
 * The shares of these counts in their sum, in whole per cent that add up to 100: each is rounded down, and those with the
 * largest remainders get one more. One of a count that is not 0 and would be 0 % is “under 1 %”.
 * @param {number[]} counts
 * @returns {string[]}
 */
export function percentsOfAll(counts) {
  const all = counts.reduce((sum, count) => sum + count, 0), exact = counts.map(count => (all ? count / all * 100 : 0));
  const whole = exact.map(Math.floor), left = all ? 100 - whole.reduce((sum, share) => sum + share, 0) : 0;
  const byRemainder = counts.map((_, index) => index).sort((one, other) => exact[other] - whole[other] - (exact[one] - whole[one]));
  for (const index of byRemainder.slice(0, left)) whole[index] += 1;
  return whole.map((share, index) => (!share && counts[index] ? `under 1${SPACE}%` : `${share}${SPACE}%`));
}

/**
 * Whether nothing is known of odds yet: they are at least 0 %, or at most 100 %.
 * @param {Odds} odds
 */
export const isUnknown = ({p, bound = false, atLeast = false}) => (atLeast && p * 100 < LEAST) || (bound && p * 100 > 100 - LEAST);

/**
 * Odds as per cent. Where their lower bound is 0, their upper bound; “…” if there is none.
 * @param {Odds} odds
 */
export const formatKnown = odds =>
  (!isUnknown(odds) ? formatPercent(odds) : odds.most === undefined ? UNKNOWN : formatPercent({p: odds.most, bound: true}));

/** A text with a capital first letter. @param {string} text */
export const capitalized = text => text.charAt(0).toUpperCase() + text.slice(1);

const BREAKS = /↵{2,}(?![\p{L}\p{N}↵])/gu;   // before a letter or a digit, a number would read as a part of the text

/**
 * A text with signs for line breaks, tabs, spaces without any other characters, and characters without any width. Of several
 * line breaks the number is shown: “↵×2” is told from “↵” at a glance.
 * @param {string} text
 */
export function visibleText(text) {
  const signed = text.replace(/\n/g, '↵').replace(BREAKS, breaks => `↵×${breaks.length}`).replace(/\r/g, '␍').replace(/\t/g, '⇥');
  if (/^[ \n\r\t]+$/.test(text)) return signed.replace(/ /g, '␣');
  if (/^[\p{C}\p{Z}\p{M}]+$/u.test(signed) && (!/^\p{M}+$/u.test(signed) || /^\p{DI}+$/u.test(signed)))
    return [...signed].map(sign => `U+${sign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`).join(' ');
  return signed;
}

/**
 * A text without the white space around it, unless it is nothing else.
 * @param {string} text
 */
const trimmed = text => visibleText(text.trim() || text);

/** @param {string} text */
export const quotedText = text => `“${trimmed(text)}”`;

/**
 * The label of a possible continuation in a list. A space before a sign is shown, since the sign alone is another one.
 * @param {{text: string | null, end: boolean}} continuation
 */
export function continuationLabel({text, end}) {
  if (end) return 'end';
  if (text === null) return PARTIAL_TOKEN_SIGN;
  return isSigns(text) && text.trim() ? visibleText(text).replace(/ /g, '␣') : trimmed(text);
}

/** @type {Record<string, string>} */
const SIGN_NAMES = {
  ',': 'comma', '.': 'full stop', ':': 'colon', ';': 'semicolon', '!': 'exclamation mark', '?': 'question mark', '"': 'quotation mark',
  '“': 'opening quotation mark', '”': 'closing quotation mark', '‘': 'opening single quotation mark', '’': 'apostrophe', "'": 'apostrophe',
  '-': 'hyphen', '–': 'dash', '—': 'long dash', '…': 'ellipsis', '(': 'opening bracket', ')': 'closing bracket', '*': 'asterisk',
  ' ': 'space', '\n': 'line break', '\r': 'carriage return', '\t': 'tab',
};

/**
 * Whether a text is made of signs alone that have names.
 * @param {string} text
 */
export const isSigns = text => text !== '' && [...text].every(sign => sign in SIGN_NAMES);

/** A sign that is a part of a word or a number, as in “don’t”, “well-known”, “U.S.” and “3.5”, and in “’s” at the beginning. */
const SIGN_IN_WORD = /(?<=[\p{L}\p{M}\p{N}])['’.-](?=[\p{L}\p{N}])|(?<=\p{N})[,:](?=\p{N})|(?<=^ *)['’](?=\p{L})/u;
const OTHER_SIGN = new RegExp(`((?!${SIGN_IN_WORD.source})[,.:;!?"“”‘’'–—…()*\\n\\r\\t-])`, 'u');

/**
 * A text as a screen reader is to say it: signs, line breaks and tabs by their names, since many are not spoken otherwise.
 * Every name of a button and every announcement uses it.
 * @param {string} text
 * @returns {string}
 */
export function spokenText(text) {
  if (isSigns(text)) return [...text].map(sign => SIGN_NAMES[sign]).join(', ');
  const parts = text.split(OTHER_SIGN).filter(part => part.trim() || /[\n\r\t]/.test(part));
  return parts.length > 1 ? parts.map(part => SIGN_NAMES[part] ?? visibleText(part.trim())).join(', ') : visibleText(text);
}

/** @param {string} text */
export const spokenQuote = text => `“${spokenText(text.trim() ? text.replace(/^ +| +$/g, '') : text)}”`;

/** @type {Record<string, string>} */
const UNSEEN = {'↵': '\n', '␍': '\r', '⇥': '\t', '␣': ' '};

/** The text of which `visibleText` has made another one by signs. @param {string} text */
const withoutVisibleSigns = text =>
  text.replace(/↵×(\d+)/g, (_, count) => '↵'.repeat(Number(count))).replace(/[↵␍⇥␣]/g, sign => UNSEEN[sign]);

/**
 * A sentence as a screen reader is to say it: quoted signs by their names, and in words that a word may be longer.
 * @param {string} sentence
 */
export const spokenSentence = sentence => sentence.replace(/“(”|[^”]*)”/g, (_, /** @type {string} */ text) =>
  (/.…$/.test(text) ? `${spokenQuote(withoutVisibleSigns(text.slice(0, -1)))} or a longer word` : spokenQuote(withoutVisibleSigns(text))));

/** The same for a sentence with signs for line breaks, tabs or spaces; any other sentence stays as it is. @param {string} sentence */
export const spokenBreaks = sentence => (/[↵␍⇥␣]/.test(sentence) ? spokenSentence(sentence) : sentence);

/**
 * Whether the word of a possible continuation may be longer: nothing is known of the word, or only a bound of its odds.
 * @param {{text: string | null, end?: boolean, odds: Odds, next_word?: object}} other
 */
export const mayGoOn = ({text, end, odds, next_word: word}) => !end && endsInWord(text ?? '') && (!word || Boolean(odds.bound));

/**
 * The label of a beginning in *Everything else*: its text, after the typed letters of the word that it continues. “…” follows
 * where the word may be longer, “… then something else” where some rows begin with the same token and continue differently, and
 * “without a space” where rows begin with the same word after a space.
 * @param {Pick<DrawnOther, 'text' | 'end' | 'odds' | 'otherwise' | 'joined'> & {next_word?: object}} other
 * @param {string} [typed] the end of the text before it
 */
export function otherLabel(other, typed = '') {
  return `${labelAfter(typed, other)}${continuedSign(other)}`;
}

/**
 * The label of a continuation. If it completes the last word of the text, the letters of that word and a dot come first: "warm·er".
 * @param {string} typed the end of the text before the continuation
 * @param {{text: string | null, end: boolean}} continuation `end`: whether the text ends there
 */
export function labelAfter(typed, continuation) {
  const letters = continuedLetters(typed, continuation.text ?? '');
  return `${letters}${letters && '·'}${continuationLabel(continuation)}`;
}

/** The same as a screen reader is to say it. @type {typeof labelAfter} */
export function spokenAfter(typed, continuation) {
  const letters = continuedLetters(typed, continuation.text ?? '');
  return `${letters}${letters && ', continued by '}${spokenLabel(continuation)}`;
}

/** @param {Pick<DrawnOther, 'text' | 'end' | 'odds' | 'otherwise' | 'joined'> & {next_word?: object}} other */
const continuedSign = other => (other.otherwise ? '… then something else' : mayGoOn(other) ? '…' : '') + (other.joined ? ' without a space' : '');

/**
 * The same in a line of several, which commas separate: a comma and other signs stand in quotation marks.
 * @type {typeof otherLabel}
 */
const labelInLine = (other, typed) =>
  (isSigns(other.text?.trim() ?? '') ? `“${continuationLabel(other)}”${continuedSign(other)}` : otherLabel(other, typed));

/**
 * The same as a screen reader is to say it.
 * @param {Pick<DrawnOther, 'text' | 'end' | 'odds' | 'otherwise' | 'joined'> & {next_word?: object}} other
 * @param {string} [typed]
 */
export function spokenOther(other, typed = '') {
  const onward = (other.otherwise ? ', then something else' : mayGoOn(other) ? ', or a longer word' : '') + (other.joined ? ', without a space before it' : '');
  return `${spokenAfter(typed, other)}${onward}`;
}

/**
 * What the beginnings hold that the list does not name; empty if that is less than a figure shows.
 * @param {Odds} rest what all that no row begins with holds
 * @param {Pick<DrawnOther, 'odds'>[]} others the list
 */
export function unlistedSentence(rest, others) {
  const listed = others.reduce((sum, {odds}) => sum + odds.p, 0), p = rest.p - listed;
  const atLeast = rest.atLeast || others.some(({odds}) => odds.bound);
  if (p * 100 < LEAST || (rest.bound && atLeast)) return '';
  return `and all others together ${formatPercent({p, atLeast, bound: rest.bound})}`;
}

/**
 * The same for a possible continuation in a list.
 * @param {{text: string | null, end: boolean}} continuation
 */
export const spokenLabel = ({text, end}) =>
  (end ? 'the end of the text' : text === null ? 'a part of a character' : spokenText(isSigns(text) ? text : text.trim() || text));

const WORD_END = /[\p{L}\p{M}\p{N}]+$/u, WORD_START = /^[\p{L}\p{M}\p{N}]/u;
// Scripts that put no spaces between words: nothing there tells where a word begins.
const WITHOUT_SPACES = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const MOST_LETTERS = 12;   // typed letters that a row shows

/**
 * The letters in the text of the word that a row continues, at most the last twelve; empty if it begins a word of its own,
 * and in scripts without spaces.
 * @param {string} typed the end of the text before the row
 * @param {string | undefined} first the row's first piece
 */
export function continuedLetters(typed, first = '') {
  const letters = WORD_START.test(first) ? typed.match(WORD_END)?.[0] ?? '' : '';
  if (WITHOUT_SPACES.test(letters + first)) return '';
  const all = [...letters];
  return all.length > MOST_LETTERS ? `…${all.slice(-MOST_LETTERS).join('')}` : letters;
}

/**
 * Whether a text ends in a letter or a digit of a script with spaces between words, so that more letters would continue a word.
 * @param {string} text
 */
export const endsInWord = text => WORD_END.test(text) && !WITHOUT_SPACES.test([...text].at(-1) ?? '');

const MOST_LABELS = 4;

/**
 * The labels of the likeliest beginnings in *Everything else*, at most `MOST_LABELS`, for one line. Beginnings of white space alone,
 * and those with which a row begins too, are named only if there are no others. Each of the `labels` but the first begins with a
 * comma. `more` is “and more”, to be shown after them, or empty if the labels name all. `spoken` is the line as a screen reader is
 * to say it.
 * @param {(Pick<DrawnOther, 'text' | 'end' | 'odds' | 'otherwise' | 'joined'> & {next_word?: object})[]} others
 * @param {string} [typed] the end of the text before them
 */
export function likeliestLabels(others, typed = '') {
  const words = others.filter(other => other.text?.trim() && !other.otherwise);
  const likely = (words.length ? words : others).slice(0, MOST_LABELS), more = others.length > likely.length ? ' and more' : '';
  const labels = likely.map((other, index) => `${index ? ', ' : ''}${labelInLine(other, typed)}`);
  return {labels, more, spoken: likely.map(other => spokenOther(other, typed)).join('; ') + more};
}

const ERRORS = [0.001, 0.01, 0.1];   // per cent: small errors are told as the next of these
const SHOWN_AS_SAME = 0.005;         // per cent: figures do not show so small a part of an error

/**
 * How much a share may be wrong, in per cent of all that could come: "±0.1 %", less where the error is far smaller, or more.
 * @param {number} error
 */
export function formatError(error) {
  const hundredths = error * 100;
  const small = ERRORS.find(most => hundredths <= most * (1 + SHOWN_AS_SAME));
  return `±${small ?? Math.ceil(hundredths * 10 - 10 * SHOWN_AS_SAME) / 10}${SPACE}%`;
}
