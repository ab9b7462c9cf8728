// The Lab's decoding page: one prompt continued by several methods, drawn as one tree, and the odds that samples are drawn by.
/** @import {ComponentArguments, DecodingNode, DecodingView, LaidNode, News, SentRequest, Server} from '../../web/core/types.d.ts' */
/** @import {Shown} from './decoding_tree.js' */
/** @import {Run} from './run_link.js' */
import * as words from './decoding_sentences.js';
import {DecodingItems} from './decoding_items.js';
import {DrawButton, drawsBegin, stoppedDraws} from './draw_button.js';
import {ExperimentPage, elementsOf} from './experiment_page.js';
import {NO_PLOTS, PlotList} from './plots.js';
import {ReadingProgress} from '../../web/ui/reading_progress.js';
import {TreeFocus} from '../../web/ui/tree_focus.js';
import {READABLE_LOW} from '../../web/core/tree_scale.js';
import {TreeViewport} from '../../web/ui/tree_viewport.js';
import {decodingLayout, decodingSvg, decodingTree, nodeSentence} from './decoding_tree.js';
import {downloadFile, find, findAll} from '../../web/ui/elements.js';
import {drawingColours} from '../../web/ui/drawing_colours.js';
import {formatCount, formatNumber, visibleText} from '../../web/core/figures_and_labels.js';
import {measuredWidth} from '../../web/ui/measured_width.js';
import {pageElements} from '../../web/ui/page_elements.js';
import {progressRequests} from '../../web/ui/progress_requests.js';
import {ODDS_HEADS, SPREAD_NOTE, drawsSentence, oddsPlot, oddsRows} from './odds.js';
import {savePngOf} from '../../web/ui/png_file.js';
import {nodeInPlaceOf} from '../../web/core/tree_moves.js';
import {scrollToNoteAfterTaps, showDrawing, showPointed} from './drawing.js';
import {table} from './tables.js';

const WAITING = 'The chances are computed when the model is ready.';
const TITLE = 'The texts of all decoding methods as a tree';
const NO_PICTURE = 'The picture could not be saved; try SVG.';
const DRAWS = 10_000;
const PLOT_INTERVAL = 500;   // milliseconds between two drawings of the plot while tokens are drawn
const TREE_HEIGHT = 560;     // pixels that the whole tree fits into, unless its letters become too small
const NEAR = 0.85;          // of the picture's height: the prompt and the first token of a text are seen together
/** @type {Record<string, import('./run_link.js').FieldKind>} */
const KINDS = {
  prompt: 'text', tokens: {low: 1, high: 40}, greedy: 'switch', samples: {low: 0, high: 8}, beams: {low: 0, high: 6},
  temperature: {low: 0, high: 2, step: 0.1}, top_k: {low: 0, high: 200}, top_p: {low: 0.05, high: 1, step: 0.05}, min_p: {low: 0, high: 1, step: 0.05},
  repetition_penalty: {low: 1, high: 2, step: 0.1}, frequency_penalty: {low: 0, high: 2, step: 0.1}, presence_penalty: {low: 0, high: 2, step: 0.1},
  seed: {low: 0, high: 999_999},
};

/** @param {ComponentArguments} component */
export async function start({props, server}) {
  const page = await pageElements(elementsOf('decoding'));
  new DecodingPage(page, server, props.value.plotly).start();
}

/** @extends {ExperimentPage<DecodingView>} */
class DecodingPage extends ExperimentPage {
  oddsRevision = 0;
  /** @type {Run | null} */
  oddsRun = null;   // the prompt and options that the plot is of
  /** @type {Run | null} */
  askedRun = null;  // those of the newest request for odds
  part = 'odds';    // that the newest request for odds asks for: "odds", or "draws" too
  plotted = 0;      // the time of the last drawing of the plot
  /** @type {DecodingNode | null} */
  tree = null;
  hasBeams = false;   // whether a beam search is shown
  hasDraws = false;   // whether draws are shown
  scrolled = false;   // whether the person has moved the tree
  isGrowing = false;  // whether texts are being written
  isDelayed = false;  // whether the drawing waits for the complete texts, or until the focus has left it

  /** @param {{form: HTMLElement, result: HTMLElement}} elements @param {Server} server @param {string} plotly its address */
  constructor(elements, server, plotly) {
    super(elements, server, '#lab-decoding', KINDS);
    const {result} = this;
    this.next = find(result, '.next');
    this.picture = find(result, '.tree');
    this.viewport = new TreeViewport(this.picture, find(this.picture, 'svg', SVGSVGElement), {
      height: TREE_HEIGHT, largest: 1, least: READABLE_LOW,
    });
    this.viewport.connect(find(result, '.zooms'));
    this.items = new DecodingItems(this.picture);
    this.focus = new TreeFocus(this.picture, this.items, this.viewport);
    this.spread = find(result, '.spread');
    this.spread.textContent = SPREAD_NOTE;
    this.pointed = find(result, '.pointed');
    this.switches = /** @type {HTMLInputElement[]} */ (findAll(result, '.shown input'));
    this.plots = new PlotList(find(result, '.plots'), plotly);
    this.oddsLine = new ReadingProgress(find(this.next, '.says'), {waiting: WAITING, announcement: find(this.next, '.announcement')});
    this.oddsRequests = progressRequests(server, this.oddsLine, {
      revision: () => this.oddsRevision, makeRequest: () => this.#oddsRequest(), onNews: (news, request) => this.#takeOdds(news, request),
    });
    this.drawing = new DrawButton(find(result, '.draw'), {begin: () => this.#askForOdds('draws'), stop: () => this.#stopDraws()});
  }

  /** @override */
  start() {
    const {form, result} = this;
    find(result, '.csv').addEventListener('click', () => { if (this.view) downloadFile(words.csvOf(this.view), 'lookahead-decoding.csv', 'text/csv'); });
    find(result, '.svg').addEventListener('click', () => downloadFile(this.#svg(), 'lookahead-decoding.svg', 'image/svg+xml'));
    find(result, '.png').addEventListener('click', () => savePngOf(this.#svg(), 'lookahead-decoding.png').catch(() => this.line.show(NO_PICTURE, 'error')));
    for (const field of this.switches) field.addEventListener('change', () => this.#drawTree());
    find(form, '.sampling').addEventListener('input', () => this.#optionsChanged());
    for (const event of ['pointerover', 'click']) this.picture.addEventListener(event, ({target}) => this.#point(this.items.nodeOf(/** @type {Element} */ (target))));
    scrollToNoteAfterTaps(this.picture, this.pointed);
    this.#listenToKeys();
    // A finger that is lifted leaves too, but its token stays chosen.
    find(result, '.drawing').addEventListener('pointerleave', ({pointerType}) => { if (pointerType === 'mouse') this.pointed.classList.remove('held'); });
    for (const event of ['wheel', 'pointerdown', 'keydown']) this.picture.addEventListener(event, () => { this.scrolled = true; }, {passive: true});
    new MutationObserver(() => this.#drawTree()).observe(document.body, {attributeFilter: ['class']});
    super.start();
  }

  #listenToKeys() {
    const {picture, items, focus} = this;
    // A click on a node takes no focus: the drawing would wait for the complete texts.
    picture.addEventListener('mousedown', event => { if (items.nodeOf(/** @type {Element} */ (event.target))) event.preventDefault(); });
    picture.addEventListener('keydown', event => focus.takeKey(event));
    picture.addEventListener('focusin', ({target}) => {
      const laid = items.nodeOf(/** @type {Element} */ (target));
      if (!laid) return;
      focus.moveTabStop(laid);
      this.#point(laid, false);
    });
    picture.addEventListener('focusout', ({relatedTarget}) => {
      if (picture.contains(/** @type {Element | null} */ (relatedTarget))) return;
      this.pointed.classList.remove('held');
      if (this.isDelayed) requestAnimationFrame(() => this.#drawTree());
    });
  }

  /** @override */
  begin() {
    if (!this.complaint) {
      this.found.hidden = true;
      this.tree = null;
      this.picture.replaceChildren();
      this.viewport.reset();
      this.scrolled = false;
      this.oddsLine.show('', 'settled');
      this.#askForOdds('odds');
    }
    super.begin();
  }

  /** @override @param {Run} options */
  experimentOf(options) { return {...options, part: 'texts'}; }

  /** @override */
  get changedSentence() {
    // The plot follows the form at once: while it is computed, it counts as what it is going to be.
    const ofPlot = this.oddsRequests.active ? this.askedRun : this.oddsRun;
    const plotted = (/** @type {Run | null} */ run) => run !== null && ofPlot !== null && chancesKey(run) === chancesKey(ofPlot);
    return words.changedSentence({form: plotted(this.chosen), run: plotted(this.run)});
  }

  /** @override */
  get stoppedSentence() { return 'Stopped. The texts are as far as they were written.'; }

  /** @override @param {DecodingView} view @param {boolean} settled */
  show(view, settled) {
    const all = Number(this.run?.tokens ?? 1), written = Math.max(0, ...view.texts.map(({token_ids: ids}) => ids.length));
    const [last] = view.texts.slice(-1), phase = last?.method === 'beam' ? 'Beam search' : 'Texts';
    const count = last?.method === 'beam' ? last.token_ids.length : written;
    this.line.show(settled ? `${formatCount(view.texts.length, 'text')} of up to ${formatCount(all, 'token')}.` : `${phase}: ${formatNumber(count)} of ${all} tokens`, settled ? 'settled' : 'thinking', settled ? null : count / all);
    this.found.hidden = !view.texts.length;
    this.hasBeams = view.tree.length > 0;
    this.#showBoxes();
    this.tree = decodingTree(String(this.run?.prompt ?? ''), view);
    this.isGrowing = !settled;
    this.#drawTree();
    find(this.result, '.texts').replaceChildren(table(words.TEXT_HEADS, words.textRows(view)));
    find(this.result, '.method').textContent = words.TEXT_NOTE;
    const dropped = find(this.result, 'details.dropped');
    dropped.hidden = !this.hasBeams;
    if (settled) find(dropped, '.wide').replaceChildren(table(words.DROPPED_HEADS, words.droppedRows(view)));
  }

  /** The sampling options have changed: their effect on the odds is shown at once. */
  #optionsChanged() {
    if (this.complaint || this.next.hidden) return;
    this.#askForOdds('odds');
  }

  /** @param {'odds' | 'draws'} part */
  #askForOdds(part) {
    const {complaint} = this;
    if (complaint) {
      (part === 'draws' ? this.oddsLine : this.line).show(complaint, 'error');
      return;
    }
    this.part = part;
    this.askedRun = this.chosen;
    this.oddsRevision += 1;
    this.drawing.show(part === 'draws');
    if (part === 'draws') this.oddsLine.show('Starting …', 'thinking', 0);
    this.oddsLine.announce(part === 'draws' ? drawsBegin(DRAWS) : '');
    this.oddsRequests.schedule();
  }

  #stopDraws() {
    this.oddsRequests.cancel();
    this.oddsRevision += 1;
    this.drawing.show(false);
    this.oddsLine.show(stoppedDraws(this.hasDraws), 'settled');
    this.changeUpdated();
  }

  #oddsRequest() {
    const {prompt, ...options} = this.chosen;
    return {k: 1, depth: 1, revision: this.oddsRevision, text: String(prompt), experiment: {...options, part: this.part}};
  }

  /** @param {News} news @param {SentRequest} request that they answer */
  #takeOdds({state, sentence, view}, {text, experiment}) {
    if (state === 'settled' || state === 'error') this.drawing.show(false);
    if (state === 'error') {
      this.oddsLine.show(sentence ?? '', 'error');
      this.changeUpdated();
    }
    if (!view) return;
    const found = /** @type {DecodingView} */ (/** @type {unknown} */ (view)), {draws} = found, settled = state === 'settled';
    this.hasDraws = Boolean(draws);
    this.oddsRun = {...experiment, prompt: text ?? ''};
    this.changeUpdated();
    this.next.hidden = false;
    this.spread.hidden = !draws;
    find(this.next, '.options').textContent = words.optionsSentence(found);
    find(this.next, '.odds .wide').replaceChildren(table(ODDS_HEADS, oddsRows(found)));
    if (settled) this.oddsLine.show(drawsSentence(found), 'settled');
    else if (draws) this.oddsLine.show(`${formatNumber(draws.number)} of ${formatNumber(DRAWS)} tokens are drawn`, 'thinking', draws.number / DRAWS);
    if (!settled && draws && performance.now() - this.plotted < PLOT_INTERVAL) return;
    this.plotted = performance.now();
    this.plots.draw([oddsPlot(found)]).catch(() => this.oddsLine.show(NO_PLOTS, 'error'));
  }

  /** Show above the tree the boxes of those methods alone that the run has. */
  #showBoxes() {
    const {greedy, samples, beams} = this.run ?? {};
    /** @type {Record<string, boolean>} */
    const has = {greedy: Boolean(greedy), sample: Number(samples) > 0, beam: Number(beams) > 0, dropped: Number(beams) > 0};
    for (const {value, labels} of this.switches) if (labels) labels[0].hidden = !has[value];
  }

  /** Which paths the tree shows. @returns {Shown} */
  get #shown() { return /** @type {Shown} */ (Object.fromEntries(this.switches.map(({value, checked}) => [value, checked]))); }

  /** Columns are closer where the whole tree is in view then at *Fit*. */
  get #measures() { return {widthOf: measuredWidth, room: this.viewport.area.width / READABLE_LOW - 1}; }

  #svg() {
    const {prompt} = this.run ?? {};
    return this.tree ? decodingSvg(this.tree, {shown: this.#shown, colours: drawingColours(this.picture), title: `${TITLE}, after “${visibleText(String(prompt ?? ''))}”`, ...this.#measures}) : '';
  }

  /** Draw the tree. While texts are written it waits as long as it has the focus: a screen reader would say each new drawing. */
  #drawTree() {
    const {tree, picture, viewport, focus, items} = this, {focused} = focus;
    this.isDelayed = focused !== null && this.isGrowing;
    if (!tree || this.isDelayed) return;
    const svg = showDrawing(picture, this.#svg());
    viewport.svg = svg;
    viewport.resize({width: svg.width.baseVal.value, height: svg.height.baseVal.value});
    items.take(svg, decodingLayout(tree, this.#shown, this.#measures));
    focus.keepTabStop(items.nodes);
    if (!this.scrolled) this.#showRoot();
    showPointed(this.pointed, words.pointSentence(this.hasBeams), false);
    if (focused) focus.focusOn(nodeInPlaceOf(items.nodes, focused) ?? items.nodes[0]);
  }

  /** Scroll to the left edge of the tree, with the prompt and the first token of the first text visible if both fit, else the prompt. */
  #showRoot() {
    const {picture} = this, root = picture.querySelector('[data-key=""]');
    const first = picture.querySelector(`[data-key="${this.tree?.children[0]?.key}"]`);
    if (!root) return;
    const prompt = middleOf(root), token = first ? middleOf(first) : prompt;
    const isNear = Math.abs(token - prompt) < NEAR * picture.clientHeight, shown = isNear ? (prompt + token) / 2 : prompt;
    picture.scrollTo(0, picture.scrollTop + shown - picture.getBoundingClientRect().top - picture.clientHeight / 2);
  }

  /** Say what the node is that is pointed at. @param {LaidNode | null} laid @param {boolean} [spoken] whether that is announced */
  #point(laid, spoken = true) {
    if (laid?.node.key) showPointed(this.pointed, nodeSentence(/** @type {DecodingNode} */ (laid.node)), true, spoken);
  }
}

/** @param {Element} element */
function middleOf(element) {
  const {top, height} = element.getBoundingClientRect();
  return top + height / 2;
}

/** What the chances of the next token depend on, as a text: the prompt and the sampling options of a run. @param {Run} run */
const chancesKey = ({prompt, temperature, top_k, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty}) =>
  JSON.stringify([prompt, temperature, top_k, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty]);
