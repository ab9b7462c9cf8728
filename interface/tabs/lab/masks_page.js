// The Lab's mask page: the tree of branches, the slots of the cache and the mask as one figure, pass by pass.
/** @import {AttentionRecord, ComponentArguments, Server} from '../../web/core/types.d.ts' */
/** @import {Arrangement} from './mask_figure.js' */
import {ExperimentPage, elementsOf} from './experiment_page.js';
import {SLOT_HEADS, maskSize, maskSvg, nodesUpTo, passSentence, slotRows, slotSentence} from './mask_figure.js';
import {downloadFile, find, scrollBehavior} from '../../web/ui/elements.js';
import {drawingColours} from '../../web/ui/drawing_colours.js';
import {pageElements} from '../../web/ui/page_elements.js';
import {READABLE, fittingScale} from '../../web/core/tree_scale.js';
import {markCropped} from '../../web/ui/cropped.js';
import {measuredWidth} from '../../web/ui/measured_width.js';
import {FINGER, LOW, WIDE} from '../../web/ui/window_sizes.js';
import {PassPlayer} from './pass_player.js';
import {savePngOf} from '../../web/ui/png_file.js';
import {scrollToNoteAfterTaps, showDrawing, showPointed} from './drawing.js';
import {table} from './tables.js';

const TITLE = 'The tree of branches, the slots of the cache, and the mask';
const POINT = 'Point at a token, a slot or a row, or tap it, to see what the token attends to; the arrow keys choose one too.';
const TAPPABLE = 0.77;    // the least scale for a finger: slots are 16 pixels apart; the rest is swiped
const NO_PICTURE = 'The picture could not be saved; try SVG.';
/** @type {Record<string, import('./run_link.js').FieldKind>} */
const KINDS = {prompt: 'text', k: {low: 1, high: 6}, depth: {low: 1, high: 8}};

/** @param {ComponentArguments} component */
export async function start({server}) {
  const page = await pageElements(elementsOf('masks'));
  new MasksPage(page, server).start();
}

/** @extends {ExperimentPage<AttentionRecord>} */
class MasksPage extends ExperimentPage {
  /** @type {number | null} */
  slot = null;   // the chosen one
  #settled = false;   // whether all passes are there

  /** @param {{form: HTMLElement, result: HTMLElement}} elements @param {Server} server */
  constructor(elements, server) {
    super(elements, server, '#lab-masks', KINDS);
    const {result} = this;
    this.figure = find(result, '.figure');
    this.player = new PassPlayer(result, {onPass: () => this.#showPass(), announce: (...said) => this.line.announce(...said)});
  }

  /** @override */
  start() {
    const {result, figure} = this;
    // Not "pointerover": a new drawing under a resting pointer is no choice.
    for (const event of ['pointermove', 'click']) figure.addEventListener(event, ({target}) => this.#point(/** @type {Element} */ (target)));
    scrollToNoteAfterTaps(figure, find(result, '.pointed'));
    figure.addEventListener('keydown', event => this.#move(event));
    find(result, '.svg').addEventListener('click', () => downloadFile(this.#svg(), 'lookahead-mask.svg', 'image/svg+xml'));
    find(result, '.png').addEventListener('click', () => savePngOf(this.#svg(), 'lookahead-mask.png').catch(() => this.line.show(NO_PICTURE, 'error')));
    new MutationObserver(() => this.#draw()).observe(document.body, {attributeFilter: ['class']});
    const draw = () => this.#draw({spoken: false});
    new ResizeObserver(draw).observe(figure);
    addEventListener('resize', draw);
    super.start();
  }

  /** @override */
  begin() {
    const {complaint} = this;
    if (!complaint) {
      this.player.pause();
      this.slot = null;
      this.found.hidden = true;
    }
    super.begin();
    // In a low window the result stands below the form, and fills the window.
    if (!complaint && matchMedia(`${WIDE} and ${LOW}`).matches) this.result.scrollIntoView({block: 'start', behavior: scrollBehavior()});
  }

  /** @override */
  get stoppedSentence() { return 'Stopped. The figure shows the passes so far.'; }

  /** The pass that is shown, from 1. */
  get pass() { return this.player.pass; }

  /** The passes so far. Which tokens get no slot is known when all are there. @returns {AttentionRecord | null} */
  get record() { return this.view && (this.#settled ? this.view : {...this.view, leaves: []}); }

  /** @override @param {AttentionRecord} view @param {boolean} settled */
  show(view, settled) {
    this.line.show(settled ? `${view.nodes.length} slots, ${view.passes} passes.` : `Pass ${view.passes}`, settled ? 'settled' : 'thinking', settled ? null : 0);
    if (!view.nodes.length) return;
    this.#settled = settled;
    const isNew = Boolean(this.found.hidden);
    this.found.hidden = false;
    find(this.result, '.slots .wide').replaceChildren(table(SLOT_HEADS, slotRows(view)));
    this.player.setPasses(view.passes, isNew);
  }

  #showPass() {
    const {record} = this;
    if (!record) return;
    this.player.describe(passSentence(record, this.pass));
    if (!nodesUpTo(record, this.pass).some(({slot}) => slot === this.slot)) this.slot = null;
    this.#draw({spoken: false});
  }

  /** @param {Element} target */
  #point(target) {
    const slot = target.closest('[data-slot]')?.getAttribute('data-slot');
    if (slot === null || slot === undefined || Number(slot) === this.slot) return;
    this.slot = Number(slot);
    this.#draw();
  }

  /** Choose the next token or the one before with the arrow keys, and none with Escape. @param {KeyboardEvent} event */
  #move(event) {
    const {view} = this, step = {ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1}[event.key];
    if (!view || (step === undefined && event.key !== 'Escape')) return;
    const slots = nodesUpTo(view, this.pass).map(({slot}) => slot), at = this.slot === null ? (step === 1 ? -1 : slots.length) : slots.indexOf(this.slot);
    this.slot = step === undefined ? null : slots[Math.max(0, Math.min(slots.length - 1, at + step))];
    this.#draw();
    event.preventDefault();
  }

  #svg() { return this.record ? this.#svgOf(this.record, this.#layout(this.record).arrangement) : ''; }

  /** @param {AttentionRecord} record @param {Arrangement} arrangement */
  #svgOf(record, arrangement) {
    const {pass, slot} = this;
    return maskSvg(record, {pass, slot, colours: drawingColours(this.figure), title: TITLE, ...arrangement});
  }

  /** The arrangement in which the figure is larger in the width of the card and the greatest height, and its scale. @param {AttentionRecord} record */
  #layout(record) {
    const {figure} = this, area = {width: figure.clientWidth, height: parseFloat(getComputedStyle(figure).maxHeight)};
    const found = [false, true].map(isBeside => {
      const arrangement = {isBeside, widthOf: measuredWidth}, size = maskSize(record, arrangement);
      return {arrangement, scale: fittingScale(size, area)};
    });
    return found[1].scale > found[0].scale ? found[1] : found[0];
  }

  /** Enlarge the figure as far as it fits, but draw it no smaller than it can be read. @param {number} fitting the scale at which it fits */
  #fit(fitting) {
    const {figure} = this, svg = figure.querySelector('svg');
    if (!svg || !figure.clientWidth) return;
    const scale = Math.max(fitting, matchMedia(FINGER).matches ? TAPPABLE : READABLE);
    for (const [side, {baseVal: {value}}] of Object.entries({width: svg.width, height: svg.height})) svg.style.setProperty(side, `${scale * value}px`);
    markCropped(figure);
  }

  /** @param {{spoken?: boolean}} [options] `spoken`: whether what is said of the chosen token is announced */
  #draw({spoken = true} = {}) {
    const {view, record} = this;
    if (!view || !record) return;
    const {arrangement, scale} = this.#layout(record);
    showDrawing(this.figure, this.#svgOf(record, arrangement));
    this.#fit(scale);
    showPointed(find(this.result, '.pointed'), this.slot === null ? POINT : slotSentence(view, this.slot, this.pass), this.slot !== null, spoken && this.slot !== null);
  }
}
