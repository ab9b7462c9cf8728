// The Lab's cache page: an experiment is run on the server, and its result is shown as it grows.
/** @import {CacheView, ComponentArguments, Server} from '../../web/core/types.d.ts' */
import * as words from './cache_sentences.js';
import {ExperimentPage, elementsOf} from './experiment_page.js';
import {NO_PLOTS, PlotList} from './plots.js';
import {downloadFile, find, make} from '../../web/ui/elements.js';
import {pageElements} from '../../web/ui/page_elements.js';
import {table} from './tables.js';

const PLOT_INTERVAL = 2000;  // milliseconds between two drawings during a run: they take the processor's time, which the run measures
const TABLE = 'the table of every depth';
/** @type {Record<string, import('./run_link.js').FieldKind>} */
const KINDS = {prompt: 'text', k: {low: 1, high: 20}, depth: {low: 1, high: 100}, levels: {low: 1, high: 3}, runs: {low: 1, high: 9}, precisions: 'switch'};

/** @param {ComponentArguments} component */
export async function start({props, server}) {
  const page = await pageElements(elementsOf('cache'));
  new CachePage(page, server, props.value.plotly).start();
}

/** @extends {ExperimentPage<CacheView>} */
class CachePage extends ExperimentPage {
  drawn = 0;      // the time of the last drawing of the plots

  /** @param {{form: HTMLElement, result: HTMLElement}} elements @param {Server} server @param {string} plotly its address */
  constructor(elements, server, plotly) {
    super(elements, server, '#lab-cache', KINDS);
    this.plots = new PlotList(find(this.result, '.plots'), plotly);
  }

  /** @override */
  start() {
    find(this.result, '.csv').addEventListener('click', () => { if (this.view) downloadFile(words.csvOf(this.view), 'lookahead-cache.csv', 'text/csv'); });
    for (const format of /** @type {const} */ (['svg', 'png']))
      find(this.result, `.${format}`).addEventListener('click', () => this.plots.save(format, 'lookahead-cache').catch(() => this.line.show(NO_PLOTS, 'error')));
    super.start();
  }

  /** @override */
  begin() {
    if (!this.complaint) this.found.hidden = true;
    super.begin();
  }

  /** @override */
  get stoppedSentence() { return 'Stopped. The figures are those of the depths that were compared.'; }

  /** @override */
  stopped() { if (this.view) this.#drawPlots(this.view); }

  /**
   * Show the result so far, or the whole one.
   * @override
   * @param {CacheView} view
   * @param {boolean} settled
   */
  show(view, settled) {
    const depths = view.steps.length, all = Number(this.run?.depth ?? depths), runs = Number(this.run?.runs ?? 1);
    const part = view.runs.reduce((sum, count) => sum + count, 0) / (all * runs);
    this.line.show(settled ? `Compared to depth ${depths}.` : words.progressSentence(view, all, runs), settled ? 'settled' : 'thinking', settled ? null : part);
    this.found.hidden = false;
    this.result.dataset.equal = String(view.equal);
    const shown = find(this.result, '.verdict'), verdict = words.verdictOf(view, settled), sentence = words.verdictSentence(view);
    find(shown, 'strong').textContent = verdict;
    find(shown, 'span').textContent = sentence;
    if (settled) this.line.announce(`${verdict}. ${sentence}`);
    find(this.result, '.sums').replaceChildren(table(['Cost', 'With the cache', 'Without it', 'Without ÷ with'], words.costRows(view)));
    find(this.result, '.depths .wide').replaceChildren(table(words.depthHeads(view), view.steps.map(words.depthCells)));
    find(this.result, '.depths .note').textContent = words.equalNote(view);
    find(this.result, '.texts ol', HTMLOListElement).replaceChildren(...view.branches.map(text => make('li', {text})));
    find(this.result, '.precisions').textContent = words.precisionSentence(view);
    find(this.result, '.method').textContent = words.methodSentence(view);
    if (settled || performance.now() - this.drawn > PLOT_INTERVAL) this.#drawPlots(view);
  }

  /** @param {CacheView} view */
  #drawPlots(view) {
    this.drawn = performance.now();
    this.plots.draw(plotsOf(view)).catch(() => this.line.show(NO_PLOTS, 'error'));
  }
}

/**
 * The plots of a result, by depth: differences, times and their ratio, and the two precisions if they were compared.
 * @param {CacheView} view
 * @returns {import('./plots.js').Plot[]}
 */
function plotsOf({steps, precisions}) {
  const x = steps.map(({depth}) => depth), {runs} = steps[steps.length - 1];
  /** @type {(value: number | null) => number | null} */
  const positive = value => (value && value > 0 ? value : null);
  return [
    {title: 'How much predictions with and without the cache differ at most, in per cent', unit: 'difference', x, table: TABLE, logarithmic: true, parts: true, lines: [
      {name: 'difference', y: steps.map(row => positive(row.relative_difference))}, {name: 'counts as equal', y: steps.map(({bound}) => bound), dash: 'dash', faint: true},
    ]},
    {title: `The time from the prompt to this depth${runs > 1 ? `, the median of ${runs} runs, with the shortest and the longest` : ''}`, unit: 'seconds', x, table: TABLE, lines: [
      {name: 'with the cache', y: steps.map(row => row.cached_seconds), range: steps.map(row => [row.cached_seconds_least, row.cached_seconds_most])},
      {name: 'without it', y: steps.map(row => row.uncached_seconds), range: steps.map(row => [row.uncached_seconds_least, row.uncached_seconds_most]), dash: 'dot'},
    ]},
    {title: 'How many times as long it takes without the cache', unit: 'times', x, table: TABLE, lines: [
      {name: 'ratio', y: steps.map(row => row.uncached_seconds / row.cached_seconds)},
    ]},
    ...precisions.length ? [{title: 'How far the logits in float32 and in bfloat16 differ, in per cent of a prediction’s largest logit', unit: 'difference', parts: true, x: precisions.map(({depth}) => depth), table: 'the sentence above', lines: [
      {name: 'difference', y: precisions.map(step => step.relative_difference)},
      {name: 'another token is the likeliest', y: precisions.map(step => (step.other_tokens ? step.relative_difference : null)), points: true},
    ]}] : [],
  ];
}
