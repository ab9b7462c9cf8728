// The odds of the next token beside how often it was drawn: as rows of a table, as a sentence and as a plot.
/** @import {OddsView} from '../../web/core/types.d.ts' */
import {formatNumber, formatPercent, visibleText} from '../../web/core/figures_and_labels.js';

export const ODDS_HEADS = ['Token', 'The model’s chances', 'With the options', 'Drawn'];

/**
 * The rows of the table of odds: each token, and all others together.
 * @param {OddsView} view
 * @returns {string[][]}
 */
export function oddsRows({odds, others, draws}) {
  const left = draws ? draws.number - draws.counts.reduce((sum, count) => sum + count, 0) : 0;
  /** @type {(count: number) => string} */
  const drawn = count => (draws ? formatPercent({p: count / draws.number}) : '–');
  return [
    ...odds.map(({text, raw, processed}, index) => [
      visibleText(text), formatPercent({p: raw}), formatPercent({p: processed}), drawn(draws?.counts[index] ?? 0),
    ]),
    ['all others', formatPercent({p: others[0]}), formatPercent({p: others[1]}), drawn(left)],
  ];
}

/**
 * Two standard deviations of a frequency: in 95 of 100 experiments it is no farther from the odds.
 * @param {number} p the odds
 * @param {number} number of draws
 */
export const spreadOf = (p, number) => 2 * Math.sqrt(p * (1 - p) / number);

/** What the diamonds of the plot and the lines through them are. */
export const SPREAD_NOTE = 'Diamond: how often the token was drawn. Line through it: two standard deviations to each side. The more tokens are drawn, the shorter it is, until the diamond hides it. About 95 of 100 such lines reach the chance with the options.';

/** How near the frequencies are to the odds, in one sentence. @param {OddsView} view */
export function drawsSentence({odds, draws}) {
  if (!draws) return '';
  const {number, counts} = draws;
  const possible = odds.flatMap(({processed: p}, index) => (p > 0 ? [Math.abs(counts[index] / number - p) <= spreadOf(p, number)] : []));
  return `${formatNumber(number)} tokens are drawn: ${possible.filter(Boolean).length} of ${possible.length} frequencies lie within two standard deviations of the chances, as 95 of 100 do on average.`;
}

/**
 * The plot of the odds of the next token: the model's, those with the options, and how often each was drawn.
 * @param {OddsView} view
 * @returns {import('./plots.js').Plot}
 */
export function oddsPlot({odds, draws}) {
  return {
    title: 'The likeliest next tokens: the model’s chances, and the chances by which samples are drawn', unit: 'chance', parts: true, below: 'token', table: 'the table below',
    x: odds.map((_, index) => index), labels: odds.map(({text}) => visibleText(text).trim()),
    lines: [
      {name: 'the model’s chances', y: odds.map(({raw}) => raw)}, {name: 'with the options', y: odds.map(({processed}) => processed)},
      ...draws ? [{
        name: 'drawn ± 2 standard deviations', points: true, y: draws.counts.map(count => count / draws.number), spread: odds.map(({processed}) => spreadOf(processed, draws.number)),
      }] : [],
    ],
  };
}
