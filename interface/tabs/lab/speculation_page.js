// The Lab's speculation page: the passes of speculative decoding one after the other, and draws by rejection sampling.
/** @import {ComponentArguments, News, RejectionDrawsView, Server, SpeculationView} from '../../web/core/types.d.ts' */
/** @import {Run} from './run_link.js' */
import * as words from './speculation_sentences.js';
import {DrawButton, drawsBegin, stoppedDraws} from './draw_button.js';
import {ExperimentPage, elementsOf} from './experiment_page.js';
import {NO_PLOTS, PlotList} from './plots.js';
import {ODDS_HEADS, SPREAD_NOTE, oddsPlot, oddsRows} from './odds.js';
import {PassPlayer} from './pass_player.js';
import {ReadingProgress} from '../../web/ui/reading_progress.js';
import {downloadFile, find, make} from '../../web/ui/elements.js';
import {explain} from '../../web/ui/tips.js';
import {draftSvg, keySentence, keysOf} from './speculation_tree.js';
import {drawingColours} from '../../web/ui/drawing_colours.js';
import {formatNumber} from '../../web/core/figures_and_labels.js';
import {markCropped} from '../../web/ui/cropped.js';
import {measuredWidth} from '../../web/ui/measured_width.js';
import {pageElements} from '../../web/ui/page_elements.js';
import {progressRequests} from '../../web/ui/progress_requests.js';
import {savePngOf} from '../../web/ui/png_file.js';
import {scrollToNoteAfterTaps, showDrawing, showPointed} from './drawing.js';
import {table} from './tables.js';

const POINT = 'Point at a token, or tap it, to see who proposed it and what became of it; the arrow keys choose one too.';
const NO_PICTURE = 'The picture could not be saved; try SVG.';
const WAITING = 'The tokens are drawn when the model is ready.';
const DRAWS = 1000;
const PLOT_INTERVAL = 500;   // milliseconds between two drawings of a plot while its figures come in
const FILE = 'lookahead-speculation';
/** @type {Record<string, import('./run_link.js').FieldKind>} */
const KINDS = {
  prompt: 'text', tokens: {low: 2, high: 60}, suffix: 'switch', recycled: 'switch', model: 'switch',
  temperature: {low: 0, high: 2, step: 0.1}, top_k: {low: 0, high: 200}, top_p: {low: 0.05, high: 1, step: 0.05}, seed: {low: 0, high: 999_999},
};

/** @param {ComponentArguments} component */
export async function start({props, server}) {
  const page = await pageElements(elementsOf('speculation'));
  new SpeculationPage(page, server, props.value.plotly).start();
}

/** @extends {ExperimentPage<SpeculationView>} */
class SpeculationPage extends ExperimentPage {
  drawRevision = 0;
  /** @type {Run | null} */
  drawRun = null;   // whose first tokens are drawn
  drawnAs = '';     // says with which options
  plotted = 0;      // the time of the last drawing of the plot of draws
  /** @type {string | null} */
  chosenKey = null;   // of the chosen token of the tree

  /** @param {{form: HTMLElement, result: HTMLElement}} elements @param {Server} server @param {string} plotly its address */
  constructor(elements, server, plotly) {
    super(elements, server, '#lab-speculation', KINDS);
    const {result} = this;
    this.figure = find(result, '.tree');
    this.player = new PassPlayer(result, {onPass: () => this.#showPass(), announce: (...said) => this.line.announce(...said)});
    this.plots = new PlotList(find(result, '.running'), plotly);
    this.drawn = find(result, '.rejection');
    find(this.drawn, '.spread').textContent = SPREAD_NOTE;
    this.drawPlots = new PlotList(find(this.drawn, '.plots'), plotly);
    this.drawLine = new ReadingProgress(find(this.drawn, '.says'), {waiting: WAITING, announcement: find(this.drawn, '.announcement')});
    this.drawRequests = progressRequests(server, this.drawLine, {
      revision: () => this.drawRevision, makeRequest: () => this.#drawRequest(), onNews: news => this.#takeDraws(news),
    });
    this.drawing = new DrawButton(find(result, '.draw'), {begin: () => this.#draw(), stop: () => this.#stopDraws()});
  }

  /** @override */
  start() {
    const {result, figure} = this, say = (/** @type {string} */ sentence) => this.line.show(sentence, 'error');
    for (const event of ['pointermove', 'click']) figure.addEventListener(event, ({target}) => this.#point(/** @type {Element} */ (target)));
    scrollToNoteAfterTaps(figure, find(result, '.pointed'));
    figure.addEventListener('keydown', event => this.#move(event));
    new ResizeObserver(() => markCropped(figure)).observe(figure);
    find(result, '.csv').addEventListener('click', () => { if (this.view) downloadFile(words.csvOf(this.view), `${FILE}.csv`, 'text/csv'); });
    find(result, '.svg').addEventListener('click', () => downloadFile(this.#svg(), `${FILE}.svg`, 'image/svg+xml'));
    find(result, '.png').addEventListener('click', () => savePngOf(this.#svg(), `${FILE}.png`).catch(() => say(NO_PICTURE)));
    for (const format of /** @type {const} */ (['svg', 'png']))
      find(result, `.plot-${format}`).addEventListener('click', () => this.plots.save(format, FILE).catch(() => say(NO_PLOTS)));
    new MutationObserver(() => this.#drawTree()).observe(document.body, {attributeFilter: ['class']});
    super.start();
  }

  /** Fill in the form. The small model stays off where there is none. @override @param {Run} run */
  fill(run) {
    super.fill(run);
    const model = /** @type {HTMLInputElement} */ (this.fields.model);
    if (model.disabled) model.checked = false;
  }

  /** @override */
  get complaint() {
    const {suffix, recycled, model} = this.chosen;
    return super.complaint || (suffix || recycled || model ? '' : 'Choose at least one drafter: without one no token is drafted.');
  }

  /** @override */
  begin() {
    if (!this.complaint) {
      this.player.pause();
      this.chosenKey = null;
      this.found.hidden = true;
      this.#forgetDraws();
    }
    super.begin();
  }

  /** @override @param {Run} options */
  experimentOf(options) { return {...options, part: 'text'}; }

  /** @override */
  get stoppedSentence() { return 'Stopped. The passes so far are shown.'; }

  /** The pass that is shown, from 1. */
  get pass() { return this.player.pass; }

  /** @override @param {SpeculationView} view @param {boolean} settled */
  show(view, settled) {
    const all = 2 * Number(this.run?.tokens ?? 1), written = view.token_ids.length + view.plain_token_ids.length;
    const phase = view.plain_token_ids.length ? `The text without drafts: ${view.plain_token_ids.length} tokens` : `With drafts: ${view.token_ids.length} tokens`;
    this.line.show(settled ? words.passesSentence(view) : phase, settled ? 'settled' : 'thinking', settled ? null : written / all);
    if (settled) this.line.announce(`${words.verdictSentence(view)} ${words.passesSentence(view)}`);
    if (!view.passes.length) return;
    const isNew = Boolean(this.found.hidden);
    this.found.hidden = false;
    this.#showVerdict(view);
    find(this.result, '.plain').textContent = view.plain_texts.join('').trimStart();
    explain(find(this.result, '.initials'), words.sourcesSentence(view)).textContent = words.initialsSentence(view);
    find(this.result, '.method').textContent = words.drafterSentence(view);
    this.player.setPasses(view.passes.length, isNew);
  }

  /** @param {SpeculationView} view */
  #showVerdict(view) {
    const verdict = find(this.result, '.verdict');
    verdict.hidden = view.equal === null;
    this.result.dataset.equal = String(view.equal !== false);
    find(verdict, 'strong').textContent = view.equal ? 'Equal' : 'Different';
    find(verdict, 'span').textContent = words.verdictSentence(view);
  }

  #showPass() {
    const {view, pass, result} = this;
    if (!view?.passes.length) return;
    if (this.chosenKey !== null && !keysOf(view, pass).includes(this.chosenKey)) this.chosenKey = null;
    this.player.describe(words.passSentence(view, pass));
    find(result, '.tokens .wide').replaceChildren(table(words.TOKEN_HEADS, words.tokenRows(view, pass)));
    find(result, '.drafters').replaceChildren(table(words.DRAFTER_HEADS, words.drafterRows(view, pass)));
    find(result, '.drafted').replaceChildren(...this.#draftedText(view, pass));
    this.#drawTree({spoken: false});
    this.plots.draw([runningPlot(view, pass)]).catch(() => this.line.show(NO_PLOTS, 'error'));
  }

  /** The text up to a pass; what was drafted is underlined, and what is of this pass marked. @type {(view: SpeculationView, pass: number) => HTMLElement[]} */
  #draftedText({passes, texts}, pass) {
    const [first = '', ...others] = texts, shown = [first.trimStart(), ...others];
    return passes.slice(0, pass).map(one => {
      const end = one.before + words.acceptedIn(one), parts = [make('u', {text: shown.slice(one.before, end).join('')}), make('span', {text: shown[end] ?? ''})];
      return make(one.number === pass ? 'mark' : 'span', {}, ...parts.filter(({textContent}) => textContent));
    });
  }

  /** @param {Element} target */
  #point(target) {
    const key = target.closest('[data-key]')?.getAttribute('data-key') ?? null;
    if (key !== null && key !== this.chosenKey) this.#choose(key);
  }

  /** Choose the next token of the draft or the one before with the arrow keys, and none with Escape. @param {KeyboardEvent} event */
  #move(event) {
    const {view} = this, step = {ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1}[event.key];
    if (!view || (step === undefined && event.key !== 'Escape')) return;
    const keys = keysOf(view, this.pass), at = this.chosenKey === null ? (step === 1 ? -1 : keys.length) : keys.indexOf(this.chosenKey);
    this.#choose(step === undefined ? null : keys[Math.max(0, Math.min(keys.length - 1, at + step))]);
    event.preventDefault();
  }

  /** @param {string | null} key */
  #choose(key) {
    this.chosenKey = key;
    this.#drawTree();
  }

  #svg() {
    const {view, pass, figure, chosenKey} = this;
    return view?.passes.length ? draftSvg(view, {number: pass, prompt: String(this.run?.prompt ?? ''), chosen: chosenKey, colours: drawingColours(figure), widthOf: measuredWidth}) : '';
  }

  /** @param {{spoken?: boolean}} [options] `spoken`: whether what is said of the chosen token is announced */
  #drawTree({spoken = true} = {}) {
    const {view, pass, chosenKey} = this;
    if (!view?.passes.length) return;
    showDrawing(this.figure, this.#svg());
    markCropped(this.figure);
    showPointed(find(this.result, '.pointed'), chosenKey === null ? POINT : keySentence(view, pass, chosenKey), chosenKey !== null, spoken && chosenKey !== null);
  }

  /** Draw first tokens with the options of the form. */
  #draw() {
    const {complaint} = this;
    if (complaint) {
      this.drawLine.show(complaint, 'error');
      return;
    }
    this.drawRun = this.chosen;
    const instead = this.drawRun.temperature ? '' : ', as at 0 nothing is drawn,';
    this.drawRun.temperature ||= 1;
    this.drawnAs = `Drawn at temperature ${this.drawRun.temperature}${instead} with the seed ${this.drawRun.seed}.`;
    this.drawRevision += 1;
    this.drawing.show(true);
    this.drawLine.show('Starting …', 'thinking', 0);
    this.drawLine.announce(drawsBegin(DRAWS));
    this.drawRequests.schedule();
  }

  #stopDraws() {
    this.#endDraws();
    this.drawLine.show(stoppedDraws(!find(this.drawn, '.outcome').hidden), 'settled');
  }

  #endDraws() {
    this.drawRequests.cancel();
    this.drawRevision += 1;
    this.drawing.show(false);
  }

  #forgetDraws() {
    this.#endDraws();
    this.drawLine.show('', 'settled');
    find(this.drawn, '.outcome').hidden = true;
  }

  #drawRequest() {
    if (!this.drawRun) return null;
    const {prompt, ...options} = this.drawRun;
    return {k: 1, depth: 1, revision: this.drawRevision, text: String(prompt), experiment: {...options, part: 'draws'}};
  }

  /** @param {News} news */
  #takeDraws({state, sentence, view}) {
    if (state === 'error') this.drawLine.show(sentence ?? '', 'error');
    if (state === 'settled' || state === 'error') this.drawing.show(false);
    if (!view) return;
    const found = /** @type {RejectionDrawsView} */ (/** @type {unknown} */ (view)), settled = state === 'settled', number = found.draws?.number ?? 0;
    find(this.drawn, '.outcome').hidden = false;
    find(this.drawn, '.outcome > p').textContent = this.drawnAs;
    find(this.drawn, '.odds .wide').replaceChildren(table(ODDS_HEADS, oddsRows(found)));
    if (settled) this.drawLine.show(words.rejectionSentence(found), 'settled');
    else this.drawLine.show(`${formatNumber(number)} of ${formatNumber(DRAWS)} tokens are drawn`, 'thinking', number / DRAWS);
    if (!settled && performance.now() - this.plotted < PLOT_INTERVAL) return;
    this.plotted = performance.now();
    this.drawPlots.draw([oddsPlot(found)]).catch(() => this.drawLine.show(NO_PLOTS, 'error'));
  }
}

/**
 * The plot of the tokens that each pass up to this one added to the text, and their average so far.
 * @type {(view: SpeculationView, pass: number) => import('./plots.js').Plot}
 */
function runningPlot({passes}, pass) {
  const shown = passes.slice(0, pass), won = shown.map(one => words.acceptedIn(one) + 1), rest = passes.slice(pass).map(() => null);
  let sum = 0;
  const averages = won.map((tokens, index) => (sum += tokens) / (index + 1));
  return {
    title: `Tokens per pass, up to pass ${pass}: ${averages[averages.length - 1].toFixed(2)} on average`, unit: 'tokens', below: 'pass', table: 'the file that Save CSV saves',
    x: passes.map(({number}) => number), lines: [
      {name: 'average so far', y: [...averages, ...rest]}, {name: 'of the pass', y: [...won, ...rest], points: true},
      {name: 'without drafts', y: passes.map(() => 1), dash: 'dot', faint: true},
    ],
  };
}
