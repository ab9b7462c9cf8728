// The words of the analysed text.
/** @import {HighlightEntry, HighlightsView, MarkedWord} from '../../web/core/types.d.ts' */

const LETTER = /[\p{L}\p{N}]/u;
const EARLY_TOKENS = 4;   // at the beginning of a text: what stands there surprises a model that knows nothing of the text yet

/** @param {HighlightEntry[]} entries */
const textOf = entries => entries.map(({token}) => token).join('');

/**
 * What branches at a word replace: the word, or its part from the entry on that it shows; empty without a word.
 * @param {Pick<MarkedWord, 'text' | 'begun'>} [word]
 */
export const replacedPart = word => (word ? word.text.slice(word.begun.length).trim() : '');

/**
 * The words of a view. Each shows its most surprising entry among the highlights, else its first entry. Words of which that is
 * among the first tokens of a text without an instruction have the last ranks.
 * @param {Pick<HighlightsView, 'entries' | 'marks'>} view
 * @param {boolean} [instructed] whether an instruction stands before the text: more than a few words then
 * @returns {MarkedWord[]}
 */
export function markedWords({entries, marks}, instructed = false) {
  const early = instructed ? new Set() : earlyEntries(entries), isEarly = (/** @type {number} */ index) => early.has(entries[index]);
  const ranks = new Map([...marks.filter(index => !isEarly(index)), ...marks.filter(isEarly)].map((index, rank) => [index, rank]));
  /** @type {(Omit<MarkedWord, 'text' | 'entry' | 'begun' | 'before' | 'given' | 'early'> & {entry?: HighlightEntry})[]} */
  const words = [];
  entries.forEach((entry, index) => {
    if (!words.length || words[words.length - 1].from !== entry.word[0]) words.push({from: entry.word[0], entries: [], rank: Infinity});
    const word = words[words.length - 1], rank = ranks.get(index);
    word.entries.push(entry);
    if (rank !== undefined) Object.assign(word, {entry, rank});
  });
  let before = instructed ? Infinity : 0, last = '';
  return words.map(word => {
    const text = textOf(word.entries), entry = word.entry ?? word.entries[0], begun = textOf(word.entries.slice(0, word.entries.indexOf(entry)));
    const made = {...word, text, before, entry, begun, given: last + begun, early: early.has(entry)};
    if (LETTER.test(text)) before += 1;
    last = text;
    return made;
  });
}

/**
 * The entries with fewer than `EARLY_TOKENS` tokens before them.
 * @param {HighlightEntry[]} entries
 */
function earlyEntries(entries) {
  let before = 0;
  return new Set(entries.filter(({ids}) => {
    const isEarly = before < EARLY_TOKENS;
    before += ids.length;
    return isEarly;
  }));
}

/**
 * The entries of the first highlights.
 * @param {Pick<MarkedWord, 'entry' | 'rank'>[]} words
 * @param {number} count of highlights
 */
export const markedEntries = (words, count) => new Set(words.filter(({rank}) => rank < count).map(({entry}) => entry));

/**
 * The entropy at each word, as a share of the highest.
 * @param {{entries: Pick<HighlightEntry, 'entropy'>[]}[]} words
 */
export function relativeEntropies(words) {
  const found = words.map(({entries}) => entries[0].entropy ?? 0), highest = Math.max(...found) || 1;
  return found.map(entropy => entropy / highest);
}
