// The Lab's cache page: an experiment is run on the server, and its result is shown as it grows.
/** @import {CacheRun} from './run_link.js' */
/** @import {BranchRequest, CacheView, ComponentArguments, News, Server} from '../../web/core/types.d.ts' */
import * as words from './cache_sentences.js';
import {PlotList} from './plots.js';
import {ReadingProgress} from '../../web/ui/reading_progress.js';
import {copyText, downloadFile, find, make} from '../../web/ui/elements.js';
import {keepAcrossReloads} from '../../web/net/tab_storage.js';
import {pageElements} from '../../web/ui/page_elements.js';
import {progressRequests} from '../../web/ui/progress_requests.js';
import {runLink, runOf} from './run_link.js';

const START = 'Choose a prompt and run the experiment: its result is shown here.';
const NO_PROMPT = 'Write a prompt: the branches begin after it.';
const WAITING = 'The experiment begins when the model is ready.';
const STOPPED = 'Stopped. The figures are those of the depths that were compared.';
const NO_PLOTS = 'The plots could not be loaded; the table has their figures.';
const PLOT_INTERVAL = 2000;  // milliseconds between two drawings during a run: they take the processor's time, which the run measures
const OUTSIDE = 'is a whole number from';

/** @param {ComponentArguments} component */
export async function start({props, server}) {
  const page = await pageElements({form: '.cache-form', result: '#lab-cache'});
  new CachePage(page, server, props.value.plotly).start();
}

class CachePage {
  revision = 0;   // of the run
  /** @type {CacheView | null} */
  view = null;
  /** @type {CacheRun | null} */
  run = null;     // the one that is shown
  drawn = 0;      // the time of the last drawing of the plots

  /** @param {{form: HTMLElement, result: HTMLElement}} elements @param {Server} server @param {string} plotly its address */
  constructor({form, result}, server, plotly) {
    this.result = result;
    this.prompt = find(form, '#cache-prompt', HTMLTextAreaElement);
    this.inputs = {
      k: find(form, '#cache-k', HTMLInputElement),
      depth: find(form, '#cache-depth', HTMLInputElement),
      levels: find(form, '#cache-levels', HTMLSelectElement),
    };
    this.precisions = find(form, '#cache-precisions', HTMLInputElement);
    this.runButton = find(form, '.run');
    this.halt = find(form, '.halt');
    this.linkButton = find(form, '.link');
    this.found = find(result, '.found');
    this.plots = new PlotList(find(result, '.plots'), plotly);
    this.line = new ReadingProgress(find(result, '.says'), {waiting: WAITING, announcement: find(result, '.announcement'), marked: result});
    this.requests = progressRequests(server, this.line, {
      revision: () => this.revision, makeRequest: () => this.#makeRequest(), onNews: (news) => this.#takeNews(news),
    });
  }

  start() {
    this.runButton.addEventListener('click', () => this.#begin());
    this.halt.addEventListener('click', () => this.#stop());
    this.linkButton.addEventListener('click', () => this.#copyLink());
    for (const input of [this.inputs.k, this.inputs.depth])
      input.addEventListener('keydown', ({key}) => { if (key === 'Enter') this.#begin(); });
    find(this.result, '.csv').addEventListener('click', () => { if (this.view) downloadFile(words.csvOf(this.view), 'lookahead-cache.csv', 'text/csv'); });
    for (const format of /** @type {const} */ (['svg', 'png']))
      find(this.result, `.${format}`).addEventListener('click', () => this.plots.save(format, 'lookahead-cache').catch(() => this.line.show(NO_PLOTS, 'error')));
    keepAcrossReloads('lab-cache', {holds: () => false, take: () => this.#chosen, give: stored => this.#fill(stored)});
    this.line.show(START, 'empty');
    const open = () => this.#openLink();
    addEventListener('hashchange', open);
    open();
  }

  get #chosen() {
    const {k, depth, levels} = this.inputs;
    return {prompt: this.prompt.value, k: Number(k.value), depth: Number(depth.value), levels: Number(levels.value), precisions: this.precisions.checked};
  }

  /** @param {Partial<CacheRun>} run */
  #fill({prompt, precisions, ...options}) {
    if (prompt !== undefined) this.prompt.value = prompt;
    if (precisions !== undefined) this.precisions.checked = precisions;
    for (const [name, value] of Object.entries(options)) this.inputs[/** @type {'k'} */ (name)].value = String(value);
  }

  /** Open the run of the page's address: fill in the form, and run it if the link holds a prompt. */
  #openLink() {
    const run = runOf(location.hash);
    if (!run) return;
    this.#fill(run);
    if (run.prompt) this.#begin();
  }

  /** Why the form cannot be run; empty if it can. */
  get #complaint() {
    if (!this.prompt.value) return NO_PROMPT;
    const wrong = [this.inputs.k, this.inputs.depth].find(input => !input.validity.valid || !input.value);
    if (!wrong) return '';
    const name = wrong.labels?.[0].querySelector('span')?.textContent;
    return `${name} ${OUTSIDE} ${wrong.min} to ${wrong.max}.`;
  }

  #begin() {
    const complaint = this.#complaint;
    if (complaint) {
      this.line.show(complaint, 'error');
      return;
    }
    this.revision += 1;
    this.run = this.#chosen;
    this.view = null;
    this.found.hidden = true;
    this.#showRunning(true);
    this.line.show('Starting …', 'thinking', 0);
    this.requests.schedule();
  }

  #stop() {
    if (!this.requests.active) return;
    this.requests.cancel();
    this.revision += 1;
    this.#showRunning(false);
    this.line.show(this.view ? STOPPED : 'Stopped.', 'settled');
    if (this.view) this.#drawPlots(this.view);
  }

  async #copyLink() {
    const address = new URL(runLink(this.#chosen), location.href).href, copied = await copyText(address);
    this.line.announce('');
    this.line.show(copied ? 'The link is copied. It repeats this run.' : `Copy this link: ${address}`, this.line.state);
  }

  /** @param {boolean} running */
  #showRunning(running) { this.halt.setAttribute('aria-disabled', String(!running)); }

  /** @returns {BranchRequest | null} */
  #makeRequest() {
    const {revision, run} = this;
    if (!run) return null;
    const {prompt, ...experiment} = run;
    return {k: 1, depth: 1, revision, text: prompt, experiment};
  }

  /** @param {News} news */
  #takeNews(news) {
    if (news.state === 'error') {
      this.#showRunning(false);
      this.line.show(news.sentence ?? '', 'error');
      return;
    }
    if (news.view) this.#show(news.view, news.state === 'settled');
    if (news.state === 'settled') this.#showRunning(false);
  }

  /**
   * Show the result so far, or the whole one.
   * @param {CacheView} view
   * @param {boolean} settled
   */
  #show(view, settled) {
    this.view = view;
    const depth = view.steps.length, all = this.run?.depth ?? depth;
    const last = depth === all ? 'Comparing float32 and bfloat16 …' : `Depth ${depth} of ${all}`;
    this.line.show(settled ? `Compared to depth ${depth}.` : last, settled ? 'settled' : 'thinking', settled ? null : depth / all);
    this.found.hidden = false;
    this.result.dataset.equal = String(view.equal);
    const verdict = find(this.result, '.verdict'), sentence = words.verdictSentence(view);
    find(verdict, 'strong').textContent = view.equal ? 'True' : 'False';
    find(verdict, 'span').textContent = sentence;
    if (settled) this.line.announce(`${view.equal ? 'True' : 'False'}: ${sentence}`);
    find(this.result, '.sums').replaceChildren(table(['', 'With the cache', 'Without it', 'Ratio'], words.costRows(view)));
    find(this.result, '.depths .wide').replaceChildren(table(words.DEPTH_HEADS, view.steps.map(words.depthCells)));
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

/** @param {string[]} heads @param {string[][]} rows */
function table(heads, rows) {
  const head = make('tr', {}, ...heads.map(text => make('th', {text, scope: 'col'})));
  const body = rows.map(([first, ...cells]) => make('tr', {}, make('th', {text: first, scope: 'row'}), ...cells.map(text => make('td', {text}))));
  return make('table', {}, make('thead', {}, head), make('tbody', {}, ...body));
}

/**
 * The plots of a result, by depth: differences, times and their ratio, and the two precisions if they were compared.
 * @param {CacheView} view
 * @returns {import('./plots.js').Plot[]}
 */
function plotsOf({steps, precisions}) {
  const x = steps.map(({depth}) => depth), positive = (/** @type {number | null} */ value) => (value && value > 0 ? value : null);
  return [
    {title: 'The largest difference in a row of logits, as a part of the row’s largest logit', unit: 'difference', x, logarithmic: true, lines: [
      {name: 'difference', y: steps.map(row => positive(row.relative_difference))}, {name: 'counts as equal', y: steps.map(({bound}) => bound), dash: 'dash', faint: true},
    ]},
    {title: 'The time from the prompt to this depth', unit: 'seconds', x, lines: [
      {name: 'with the cache', y: steps.map(row => row.cached_seconds)}, {name: 'without it', y: steps.map(row => row.uncached_seconds), dash: 'dot'},
    ]},
    {title: 'How many times as long it takes without the cache', unit: 'times', x, lines: [
      {name: 'ratio', y: steps.map(row => row.uncached_seconds / row.cached_seconds)},
    ]},
    ...precisions.length ? [{title: 'How far the logits in float32 and in bfloat16 differ, as a part of the row’s largest logit', unit: 'difference', x: precisions.map(({depth}) => depth), lines: [
      {name: 'difference', y: precisions.map(step => step.relative_difference)},
      {name: 'another token is the likeliest', y: precisions.map(step => (step.other_tokens ? step.relative_difference : null)), points: true},
    ]}] : [],
  ];
}
