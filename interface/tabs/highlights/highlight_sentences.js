// What is said of a word of the analysed text and of its alternatives.
/** @import {Alternative, AlternativeFit, HighlightEntry, MarkedWord} from '../../web/core/types.d.ts' */
import {
  bitsOfNats, capitalized, continuationLabel, continuedLetters, endsInWord, formatCount, formatNumber, formatOrdinal, formatPercent, isSigns,
  labelAfter, quotedText, spokenAfter, spokenLabel, spokenSentence, visibleText,
} from '../../web/core/figures_and_labels.js';

const FITTING_RATIO = 4;       // of the library: MAX_LIKELIHOOD_RATIO in lookahead_core/analysis/replacements.py
const MOST_TIMES = 100_000;   // larger ratios are shown as more than this
const FEW_WORDS = 2;           // before a word: of what follows them the model knows little
const NOTABLE_TIMES = 10;      // a word is marked at first where the model's first choice was so many times likelier, or more
const NEARLY = 1.5;            // a first choice that is fewer times likelier is hardly likelier
export const BIT_OF_LOSS = ` (${formatPercent({p: 0.5})} is 1 bit)`;
const NOT_PREDICTED = 'No text comes before it, so the model did not predict it.';

/** @param {number} logprob */
const oddsOf = logprob => ({p: Math.exp(logprob)});

/**
 * Whether an alternative is the token of the text itself.
 * @param {Pick<Alternative, 'id' | 'end'>} alternative
 * @param {Pick<HighlightEntry, 'ids' | 'place'>} entry
 */
export const isWritten = ({id, end}, {ids, place}) => id === ids[place] && !end;

/**
 * “…” after an alternative whose word may be longer, else nothing. That of the text's own token is known.
 * @param {Pick<Alternative, 'id' | 'text' | 'end'>} one
 * @param {Pick<HighlightEntry, 'ids' | 'place' | 'end' | 'word'>} entry
 */
const continuedSign = (one, entry) => (!one.end && endsInWord(one.text ?? '') && !(isWritten(one, entry) && entry.end >= entry.word[1]) ? '…' : '');

/**
 * An alternative in a list; signs stand in quotation marks. One that continues the word before it stands after its letters.
 * @param {Alternative} one
 * @param {Pick<HighlightEntry, 'ids' | 'place' | 'end' | 'word'>} entry
 * @param {string} [given] the end of the text before the entry
 */
export function alternativeLabel(one, entry, given = '') {
  if (isSigns(one.text?.trim() ?? '')) return `“${continuationLabel(one)}”`;
  return `${labelAfter(given, one)}${continuedSign(one, entry)}`;
}

/**
 * The same as a screen reader is to say it.
 * @type {typeof alternativeLabel}
 */
const spokenAlternative = (one, entry, given = '') => spokenAfter(given, one) + (continuedSign(one, entry) && ', or a longer word');

/**
 * What the branches at a word are.
 * @param {string} word
 */
export const replacementSentence = word =>
  `What the model would have written in place of ${quotedText(word)}, which may be among the rows. A row’s share is the chance that its part in bold comes next: a token, as the model gives it. Nothing of this enters your text.`;

/**
 * What the model expected, and where the person's word stood among its choices: the one sentence that a class is to see.
 * @param {Pick<HighlightEntry, 'ids' | 'place' | 'rank' | 'token' | 'end' | 'word'> & Partial<Pick<HighlightEntry, 'loss' | 'excess'>>
 *   & {alternatives: Pick<Alternative, 'id' | 'text' | 'end'>[]}} entry
 * @param {string} [word] the text of the whole word; the entry may be a part of it
 * @param {string} [begun] what the word has before the entry
 * @param {string} [given] the end of the text before the entry
 */
export function headline(entry, word = entry.token, begun = '', given = '') {
  const {ids, place, rank, token, alternatives: [expected]} = entry;
  if (rank === null || !expected) return 'No text comes before this word, so the model expected nothing here.';
  const isWhole = token.trim() === word.trim(), name = isWhole && !token.trim() ? '' : ` ${nameOf({text: token, end: false})}`;
  const own = isWhole ? `your${isSigns(token.trim()) ? '' : ' word'}${name}` : `${name.trim()} of your word ${quotedText(word)}`, first = nameOf(begun ? expected : withLetters(expected, given), continuedSign(expected, entry));
  const part = ids.length === 1 ? '' : ` at part ${place + 1} of ${ids.length}`;
  const after = begun.trim() && ` after ${quotedText(begun)}`;
  if (rank === 1) return `${capitalized(own)} was the model’s first choice${after}${part}.`;
  return `The model expected ${first}${after}; ${own} was its ${formatOrdinal(rank)} choice${part}${rarerClause(entry)}.`;
}

/**
 * How much less likely a word was than the model's first choice: a low rank alone would look like no surprise. Empty where the
 * odds are those of several tokens.
 * @param {Pick<HighlightEntry, 'ids' | 'rank'> & Partial<Pick<HighlightEntry, 'loss' | 'excess'>>} entry
 */
function rarerClause({ids, rank, loss, excess}) {
  if (ids.length > 1 || rank === null || loss === null || excess === undefined || excess === null) return '';
  const times = Number(Math.exp(excess).toPrecision(2));
  if (times < NEARLY) return ', nearly as likely';
  return `, ${times > MOST_TIMES ? `more than ${formatNumber(MOST_TIMES)}` : times < 10 ? times : formatNumber(times)} times less likely`;
}

/**
 * Why a word near the beginning of a text is a surprise; empty for a word further on, and for one that was expected.
 * @param {Pick<HighlightEntry, 'rank'>} entry
 * @param {number} before the number of words that the model has read before it
 * @param {string} [begun] what the word has before the entry
 */
export function beginningSentence({rank}, before, begun = '') {
  if (rank === null || rank === 1 || before > FEW_WORDS) return '';
  const few = before ? `Only ${formatCount(before, 'word')} ${before === 1 ? 'stands' : 'stand'}` : begun.trim() ? `Only ${quotedText(begun)} stands` : 'No word stands';
  return `${few} before it, so the model knows little yet: most words are a surprise here.`;
}

/**
 * An alternative with the letters of the word before it that it continues.
 * @type {(expected: Pick<Alternative, 'text' | 'end'>, given: string) => Pick<Alternative, 'text' | 'end'>}
 */
function withLetters(expected, given) {
  const {text, end} = expected;
  return {text: continuedLetters(given, text ?? '') ? labelAfter(given, expected) : text, end};
}

/** @type {(continuation: Pick<Alternative, 'text' | 'end'>, sign?: string) => string} `sign` stands after its text */
const nameOf = ({text, end}, sign = '') => (end || !text?.trim() ? spokenLabel({text, end}).replace(/^(?=space|line|tab)/, 'a ') : quotedText(text + sign));

/**
 * How many times likelier the model's first choice was than the person's word.
 * @param {Pick<HighlightEntry, 'loss' | 'excess'>} entry
 */
const timesLikelier = ({loss, excess}) => (loss === null ? Infinity : Math.exp(excess ?? 0));

/**
 * The number of words that are marked before the slider is moved: those where the model's first choice was at least
 * `NOTABLE_TIMES` times as likely as the person's word, but at most `most`, and none of the early words, which have the last
 * ranks.
 * @param {MarkedWord[]} words
 * @param {number} most
 */
export const notableCount = (words, most) =>
  Math.min(most, words.filter(({rank, entry, early}) => rank < Infinity && !early && timesLikelier(entry) >= NOTABLE_TIMES).length);

/**
 * What follows "10 places are marked, ": of how many, and how much likelier than each of the shown words the model's first choice
 * was.
 * @param {MarkedWord[]} words
 * @param {number} count of highlights that are shown
 */
export function thresholdSentence(words, count) {
  const marked = words.filter(({rank}) => rank < Infinity), shown = marked.filter(({rank}) => rank < count);
  if (!marked.length) return '';
  const least = Math.min(...shown.map(({entry}) => timesLikelier(entry)));
  const all = shown.length === marked.length, where = all ? ':' : shown.length === 1 ? '. There' : '. At each';
  const each = shown.length ? `${where} its first choice was ${boundedTimes(least)}` : '';
  const which = all ? (marked.length === 1 ? 'the only one' : 'all') : `of ${formatNumber(marked.length)}`;
  return `${which} that the model did not expect${each}`;
}

/**
 * A factor as a lower bound, with at most two digits.
 * @param {number} times
 */
function boundedTimes(times) {
  if (times > MOST_TIMES) return `more than ${formatNumber(MOST_TIMES)} times likelier`;
  const unit = 10 ** (Math.floor(Math.log10(times)) - 1), bound = Number((Math.floor(times / unit + 1e-9) * unit).toPrecision(2));
  return bound > 1 ? `at least ${bound < 10 ? bound : formatNumber(bound)} times likelier` : 'at least a little likelier';
}

/**
 * How many places are marked, words and signs, and which: shown above the text, and announced when it is analysed.
 * @param {MarkedWord[]} words
 * @param {number} count of highlights that are shown
 */
export function markedSentence(words, count) {
  const shown = words.filter(({rank}) => rank < count).length, which = thresholdSentence(words, count);
  return which && `${formatCount(shown, 'place')} ${shown === 1 ? 'is' : 'are'} marked, ${which}.`;
}

/**
 * What the model expected at a word, and why near the text's beginning.
 * @param {Pick<MarkedWord, 'entry' | 'text' | 'begun' | 'before'> & Partial<Pick<MarkedWord, 'given'>>} word
 */
export const expectationSentence = ({entry, text, begun, before, given}) =>
  [headline(entry, text, begun, given), beginningSentence(entry, before, begun)].filter(Boolean).join(' ');

/**
 * What is announced of a highlight: its place among the highlights, and what the model expected.
 * @param {MarkedWord} word
 * @param {number} number of the highlight in the order of the text, from 1 on
 * @param {number} count of highlights that are shown
 */
export const highlightSentence = (word, number, count) => `Highlight ${number} of ${count}. ${expectationSentence(word)}`;

/**
 * What a screen reader says of a word that is pointed at or has the focus: what the card shows, without what figures mean. What
 * is true of all alternatives, or needs many words, is said once.
 * @param {Pick<MarkedWord, 'entry' | 'text' | 'begun' | 'before'> & Partial<Pick<MarkedWord, 'given'>>} word
 * @param {AlternativeFit[]} fits the verdicts, as far as they are known
 * @param {boolean} withFigures
 */
export function spokenDetails(word, fits, withFigures) {
  const {entry} = word, verdicts = new Map(fits.map(fit => [fit.id, fit]));
  const areLonger = entry.alternatives.length > 1 && entry.alternatives.every(one => continuedSign(one, entry));
  const alternatives = entry.alternatives.map(one => {
    // As the card does: where it shows no figures, it gives a verdict only on an alternative that fits.
    const fit = verdicts.get(one.id), verdict = isWritten(one, entry) ? 'as written' : fit && (fit.drops_in || withFigures) && fitPhrase(fit);
    const name = areLonger ? spokenAfter(word.given ?? '', one) : spokenAlternative(one, entry, word.given);
    return [name, withFigures && formatPercent({p: one.probability}), verdict].filter(Boolean).join(', ');
  });
  const sentences = [
    expectationSentence(word), withFigures && entry.rank !== null && `${wordSummary(entry)}.`,
    alternatives.length > 0 && `Alternatives${areLonger ? ', each or a longer word' : ''}: ${alternatives.join('; ')}.`,
    alternatives.some(one => one.endsWith(', fits')) && 'Where one fits, your next words can stay.',
  ];
  return sentences.filter(Boolean).map(one => spokenSentence(String(one))).join(' ');
}

/**
 * The figure beside a highlighted word: the chance that the model gave it, or the named part of it, where “…” stands for the
 * rest of the word; empty if it can never be highlighted.
 * @param {Pick<MarkedWord, 'rank' | 'text' | 'begun'> & {entry: Pick<HighlightEntry, 'loss' | 'token'>}} word
 */
export function chanceFigure({rank, text, begun, entry: {loss, token}}) {
  if (rank === Infinity) return '';
  const isEnd = (begun + token).trim() === text.trim();
  const part = token.trim() === text.trim() ? '' : `${begun.trim() && '…'}${visibleText(token.trim())}${isEnd ? '' : '…'} `;
  return part + formatPercent({p: loss === null ? 0 : Math.exp(-loss)});
}

/** @param {number} nats */
const inBits = nats => `${bitsOfNats(nats).toFixed(2)} bits`;

/**
 * One line: the odds of the word, its loss, its rank among the model's choices, and the entropy. Of a character of several
 * tokens the odds are those of all its tokens, and the rank is that of one.
 * @param {HighlightEntry} entry
 * @param {string} [meaning] of a bit of loss, after it; not for a screen reader, which would say it at each word
 */
export function wordSummary({ids, place, loss, rank, entropy, seen_from: from, token}, meaning = '') {
  if (rank === null) return `${quotedText(token)}: ${NOT_PREDICTED}`;
  const share = loss === null ? 'impossible' : formatPercent(oddsOf(-loss)), choice = `choice ${formatNumber(rank)}`;
  const figure = loss === null ? '' : ` · loss ${inBits(loss)}${meaning}`, spread = ` · entropy ${inBits(entropy ?? 0)}`;
  const seen = from ? ` · read from character ${formatNumber(from + 1)} on` : '';
  const part = ids.length === 1 ? '' : `token ${place + 1} of its ${ids.length}: `;
  return `${quotedText(token)}: ${share}${figure} · ${part}${choice}${spread}${seen}`;
}

/**
 * “fits” beside an alternative that fits; empty where it does not fit. What the server says of it stands where that is not known.
 * @param {Pick<AlternativeFit, 'drops_in' | 'sentence'>} fit
 */
export const fitPhrase = ({drops_in: fits, sentence}) => (fits === true ? 'fits' : fits === false ? '' : sentence);

/**
 * What it means that an alternative fits.
 * @param {Pick<AlternativeFit, 'following'>} fit
 */
export const fitMeaning = ({following: words}) =>
  `An alternative fits if your next words, ${quotedText(words)}, are at most ${FITTING_RATIO} times less likely after it than after your own word.`;

/** @param {Pick<HighlightEntry, 'alternatives' | 'ids' | 'place' | 'end' | 'word'>} entry */
export const alternativesSentence = entry =>
  entry.alternatives.map(one => `${alternativeLabel(one, entry)} ${formatPercent({p: one.probability})}`).join(' · ');

/** The same as a screen reader is to say it. @param {Pick<HighlightEntry, 'alternatives' | 'ids' | 'place' | 'end' | 'word'>} entry */
export const spokenAlternatives = entry =>
  entry.alternatives.map(one => `${spokenAlternative(one, entry)} ${formatPercent({p: one.probability})}`).join('; ');

/**
 * How likely the next words are after an alternative, compared to after one's own word; empty if unknown. Lines break at
 * the comma alone.
 * @param {Pick<AlternativeFit, 'logprob' | 'own'>} fit
 */
export function oddsAfterAlternative({logprob, own}) {
  if (logprob === null || own === null) return '';
  const parts = [`${formatPercent(oddsOf(logprob))},`, comparison(logprob - own)];
  return parts.map(part => part.replaceAll(' ', '\u00a0')).join(' ');
}

/** @param {number} difference of two log-probabilities */
function comparison(difference) {
  const times = Math.exp(Math.abs(difference)), figure = Number(times.toPrecision(2));
  if (figure <= 1) return 'as likely';
  const many = times > MOST_TIMES ? `> ${formatNumber(MOST_TIMES)}` : figure < 10 ? figure : formatNumber(figure);
  return `${many} × ${difference < 0 ? 'rarer' : 'likelier'}`;
}

/**
 * A sentence that explains the figures beside the alternatives.
 * @param {{following: string, own: number}} fit
 */
export const followingSentence = ({following: words, own}) =>
  `Beside each alternative: its chance, then the chance of your next words, ${quotedText(words)}, after it, and how much rarer or likelier they are there than after your own word (${formatPercent(oddsOf(own))}).`;
