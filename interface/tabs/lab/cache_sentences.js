// The result of the cache experiment as sentences, and as rows of tables.
/** @import {CacheRow, CacheView} from '../../web/core/types.d.ts' */
import {formatCount, formatNumber} from '../../web/core/figures_and_labels.js';

/** A number with three significant digits. @param {number} value */
const figure = value => String(Number(value.toPrecision(3)));

/** A small part as per cent. @param {number | null} part */
const percent = part => (part === null ? 'not a number' : `${figure(100 * part)} %`);

/** @param {CacheView} view */
export const lastRow = ({steps}) => steps[steps.length - 1];

/** The numbers that the model computes with, by what is compared. @param {string} compared */
const numbersOf = compared => (compared === 'logit' ? 'numbers of 32 bits' : 'numbers of 16 bits');

/** Why differences up to the limit count as rounding. @param {string} compared */
const reasonOf = compared => (compared === 'logit' ? 'these hold seven digits, and long sums of them lose one or two' : 'with the default model two right computations differ by up to 7 % and one with a wrong attention mask by 15 % or more, and the limit lies between');

/** The value of a prediction that its differences are a share of, in the fewest words. @param {string} compared */
const scaleName = compared => (compared === 'logit' ? 'largest logit' : 'log-probability farthest from 0');

/** The same value in a sentence, told exactly. @param {string} compared */
const scaleOf = compared => (compared === 'logit' ? `the ${scaleName(compared)} of the same prediction, whatever its sign` : `the ${scaleName(compared)} in the same prediction, that of its least likely token`);

/** The answer to the question of the form, whether the cache is right. @param {CacheView} view @param {boolean} settled whether the run has ended */
export const verdictOf = ({equal}, settled) => (!equal ? 'No, the predictions differ' : settled ? 'Yes, the cache is right' : 'So far yes, the cache is right');

/**
 * What was measured, and what it means. Where rounding makes another token the likeliest, texts differ, and either is right.
 * @param {CacheView} view
 */
export function verdictSentence(view) {
  const {steps, equal} = view, {bound, compared} = lastRow(view), values = `${compared === 'logit' ? 'logits' : 'log-probabilities'} with the cache and without it`;
  const first = steps.find(row => !row.equal), limit = `Up to ${figure(100 * bound)} % is rounding`;
  if (!equal) return `The ${values} differ first at depth ${first?.depth}, by ${percent(first?.relative_difference ?? null)}. ${limit}, so one of the two is wrong.`;
  const worst = Math.max(...steps.map(row => row.relative_difference ?? Infinity)), others = steps.reduce((sum, row) => sum + row.other_tokens, 0);
  const predictions = formatCount(steps.reduce((sum, {rows}) => sum + rows, 0), 'prediction');
  const likeliest = others ? `In ${formatCount(others, 'prediction')} two tokens are so close that rounding decides which is the likeliest.`
    : 'The likeliest token is the same in all of them.';
  return `In ${predictions} the ${values} differ by at most ${percent(worst)}. ${limit}, so both are right. ${likeliest}`;
}

/** How many times as much one side needs. @param {number} cached @param {number} uncached */
const times = (cached, uncached) => (cached > 0 ? withUnit(uncached / cached, '×') : '–');

/**
 * What is computed next.
 * @param {CacheView} view the result so far
 * @param {number} depths of each run
 * @param {number} runs
 */
export function progressSentence({runs: counts}, depths, runs) {
  const done = counts[counts.length - 1] ?? 0;
  if (done === depths && counts.length === runs) return 'Comparing float32 and bfloat16 …';
  return `Depth ${done} of ${depths}${runs > 1 ? ` in run ${counts.length} of ${runs}` : ''}`;
}

/** A figure and its unit, which stay on one line. @param {number} value @param {string} unit */
const withUnit = (value, unit) => `${figure(value)}\u00a0${unit}`;

/**
 * A time in seconds, or in milliseconds if it is short, with its spread in the same unit. A line may break before either, and
 * before "to": the widest form would not fit into a column on a phone.
 * @param {number} median in seconds, as the others
 * @param {number} [least]
 * @param {number} [most]
 */
function duration(median, least = median, most = median) {
  const [factor, unit] = median < 0.1 ? [1000, 'ms'] : [1, 's'];
  return withUnit(factor * median, unit) + (most > least ? ` (${figure(factor * least)} to\u00a0${figure(factor * most)})` : '');
}

/**
 * The rows of the table of costs: what is counted, with the cache, without it, and the second divided by the first.
 * @param {CacheView} view
 * @returns {string[][]}
 */
export function costRows(view) {
  const last = lastRow(view), {cached_seconds: cachedTime, uncached_seconds: uncachedTime, runs} = last;
  const [median, first, each] = runs > 1 ? [`, median of ${runs} runs (shortest to longest)`, `, first of ${runs} runs`, ' in each run'] : ['', '', ''];
  /** @type {(name: string, cached: number, uncached: number, write: (value: number) => string) => string[]} */
  const row = (name, cached, uncached, write) => [name, write(cached), write(uncached), times(cached, uncached)];
  return [
    row(`Tokens computed${each}`, last.cached_tokens, last.uncached_tokens, formatNumber),
    [
      `Time${median}`, duration(cachedTime, last.cached_seconds_least, last.cached_seconds_most),
      duration(uncachedTime, last.uncached_seconds_least, last.uncached_seconds_most), times(cachedTime, uncachedTime),
    ],
    row(`Processor time${first}`, last.cached_cpu_seconds, last.uncached_cpu_seconds, duration),
    row(`Forward passes${each}`, last.cached_passes, last.uncached_passes, formatNumber),
    row(`Energy${first}`, last.cached_joules, last.uncached_joules, value => withUnit(value, 'J')),
    ['Memory of the cache', formatBytes(last.cache_bytes), 'none', '–'],
  ];
}

/** @param {number} bytes */
export const formatBytes = bytes => (bytes < 1e6 ? withUnit(bytes / 1e3, 'KB') : withUnit(bytes / 1e6, 'MB'));

/** The heads of the table of every depth, with units and the limit of what counts as equal. @param {CacheView} view @returns {string[]} */
export function depthHeads(view) {
  const {bound, compared} = lastRow(view);
  return [
    'Depth', `Equal within ${percent(bound)}`, `Difference in % of the ${scaleName(compared)}`, 'Other likeliest tokens', 'Time with the cache', 'Time without it', 'Time without ÷ with',
    'Tokens with the cache', 'Tokens without it',
  ];
}

/** What the columns of the table of every depth mean that compare the predictions. @param {CacheView} view */
export function equalNote(view) {
  const {bound, compared} = lastRow(view);
  return `Difference: how far the two ${compared === 'logit' ? 'logits' : 'log-probabilities'} of a token, with the cache and without it, are apart at most, in per cent of ${scaleOf(compared)}. `
    + `Equal: “yes” if the difference is at most ${percent(bound)}, which counts as rounding of ${numbersOf(compared)}: ${reasonOf(compared)}. It does not say that the likeliest token is the same. `
    + 'Other likeliest tokens: the number of predictions whose likeliest token with the cache is not the one without it.';
}

/**
 * The cells of the table's row for one depth. Times and tokens are summed from the prompt to this depth.
 * @param {CacheRow} row
 */
export const depthCells = row => [
  String(row.depth), row.equal ? 'yes' : 'no', row.relative_difference === null ? 'not a number' : figure(100 * row.relative_difference), `${row.other_tokens} of ${row.rows}`, `${row.cached_seconds.toFixed(3)} s`, `${row.uncached_seconds.toFixed(3)} s`,
  figure(row.uncached_seconds / row.cached_seconds), formatNumber(row.cached_tokens), formatNumber(row.uncached_tokens),
];

/**
 * Where the likeliest tokens in float32 and in bfloat16 part, in one sentence; empty if they were not compared.
 * @param {CacheView} view
 */
export function precisionSentence({precisions, branches}) {
  if (!precisions.length) return '';
  const parted = precisions.filter(step => step.other_tokens), worst = Math.max(...precisions.map(step => step.relative_difference ?? Infinity));
  const far = `their logits differ by up to ${figure(100 * worst)} % of the largest logit`;
  if (!parted.length) return `In float32 and in bfloat16 every likeliest token is the same; ${far}.`;
  const [{depth, other_tokens: others}] = parted;
  return `In float32 and in bfloat16 the likeliest tokens part first at depth ${depth}, in ${others} of ${formatCount(branches.length, 'branch', 'branches')}, and at ${formatCount(parted.length, 'depth')} in all; ${far}.`;
}

/** @param {CacheView} view */
export const methodSentence = ({energy_source: source}) =>
  `With the cache, all branches are computed in one pass for each depth, by the same code as in the Write tab. Without it, the model’s original code, from the library transformers, reads the prompt and a whole branch again for every new token, several branches in one pass. Processor time and energy are those of the first run; energy is ${source}.`;

/**
 * All figures as comma-separated values, with a line of names.
 * @param {CacheView} view
 */
export function csvOf({steps}) {
  const names = Object.keys(steps[0]);
  return [names.join(','), ...steps.map(row => names.map(name => row[/** @type {keyof CacheRow} */ (name)] ?? '').join(','))].join('\n') + '\n';
}
