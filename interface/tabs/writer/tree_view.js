// The tree of the writer's branches: what it shows follows from the branch view and the draft, and a click goes through both.
/** @import {BranchViewElement, Choice, ChoiceSource, DrawnRow, DrawnView, LaidNode, StoredSettings, TreeNode} from '../../web/core/types.d.ts' */
/** @import {TextOwner} from '../../web/ui/text_owner.js' */
import {GUESS_FIRST} from '../../web/core/branch_sentences.js';
import {READABLE, READABLE_LOW} from '../../web/core/tree_scale.js';
import {SeenViews} from '../../web/core/seen_views.js';
import {TreeInput} from './tree_input.js';
import {TreePainter} from './tree_painter.js';
import {TreeViewport} from '../../web/ui/tree_viewport.js';
import {branchTree} from '../../web/core/branch_tree.js';
import {savePng, saveSvg} from './tree_files.js';
import {atNextClick, dispatch, onDetail} from '../../web/ui/events.js';
import {drawingColours} from '../../web/ui/drawing_colours.js';
import {drawingSentence, figuresSentence, nodeSentence, thicknessSentence} from '../../web/core/tree_sentences.js';
import {announce} from '../../web/ui/announce.js';
import {find, findAll, setAttribute, setSpokenText, setText} from '../../web/ui/elements.js';
import {hereIn} from '../../web/core/tree_moves.js';
import {layoutInArea} from '../../web/core/tree_layout.js';
import {sessionTree} from '../../web/core/session_tree.js';
import {spokenBreaks, spokenSentence} from '../../web/core/figures_and_labels.js';
import {setTip} from '../../web/ui/tips.js';
import {SteepMoves} from '../../web/ui/steep_moves.js';
import {LOW} from '../../web/ui/window_sizes.js';

const TYPING_RESTS = 150;   // milliseconds: a paint never comes between two keys
const PASSING = 160;        // milliseconds on another node before it is described
const LEAVING = 1000;       // milliseconds beside all nodes and the line below before none is described
const UNKNOWN = 'The text of that node is no longer known.';
const NOTHING_TO_INSERT = 'This node inserts nothing.';   // the end of the text, and the other tokens after a token of a row
const WENT_BACK = 'The text is as it was there. Undo brings back the one before.';

/** The least scale before *Fit* is pressed: a low window has no room for letters that are larger than needed. */
const leastReadable = () => (matchMedia(LOW).matches ? READABLE_LOW : READABLE);

/**
 * @typedef {object} TreeHooks
 * @property {() => string} exampleText the text of stored branches, while there is none of the person's
 * @property {(text: string) => boolean} hidesRows whether the branches after a text are hidden
 * @property {(ending: string) => string} fileName of the document, with this ending
 * @property {(sentence: string) => void} notice shows a sentence to the person
 */

/**
 * Draws the branches, or the whole session, as a tree or a river. Events: `change`, when a person or `set` changes its settings,
 * and `seen`, when a view was recorded.
 */
export class TreeView extends EventTarget {
  /** The views that were shown for this document. */
  seen = new SeenViews();
  /** @type {TextOwner | null} */
  draft = null;
  /** @type {TreeHooks | null} */
  hooks = null;
  #end = {text: '', revision: -1};   // the text before the caret, and its revision
  #painting = false;                 // whether the next frame paints
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #lazy;                             // the timer of a paint that can wait
  #centred = '';                     // what the drawing was last centred for
  #painted = '';                     // the text of the drawing
  #unannounced = false;              // whether a screen reader has not been told of the drawing
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #pointTimer;                       // a delayed call of #describe: the pointer may only pass over a node
  /** @type {TreeNode | null | undefined} */
  #passed;                           // the node that it describes, or null for none; undefined without such a call
  #steepMoves = new SteepMoves();
  /** @type {TreeNode | null} */
  #described = null;
  #isDelayed = false;   // whether the drawing waits for complete rows, so that the focus leaves a node that is gone only once
  #isPinned = false;    // whether a finger has asked for the description: it stays until the next tap
  #hasBanned = false;   // whether the button has banned a token, and the pointer may still be on it

  /**
   * @param {HTMLElement} panel
   * @param {BranchViewElement} branches
   */
  constructor(panel, branches) {
    super();
    this.panel = panel;
    this.branches = branches;
    this.svg = find(panel, '.tree-drawing', SVGSVGElement);
    this.painter = new TreePainter(this.svg);
    const scroll = find(panel, '.tree-scroll');
    this.viewport = new TreeViewport(scroll, this.svg, {
      onResize: () => this.#schedule(), onScale: scale => scroll.classList.toggle('crowded', this.painter.fitTexts(scale)), anchor: () => this.#anchor(),
      readable: leastReadable,
    });
    this.viewport.connect(find(panel, '.zooms'));
    this.input = new TreeInput(this.svg, {painter: this.painter, viewport: this.viewport, actions: {
      activate: (node, choice, source) => this.#activate(node, choice, source),
      point: (node, byKeyboard) => this.#point(node, byKeyboard),
      hold: node => this.#hold(node),
      ban: () => this.branches.branchView.banPointed(),
      leave: () => this.draft?.box.focus(),
    }});
    this.svg.addEventListener('pointermove', event => this.#onMove(event));
    this.session = find(panel, '#tree-session', HTMLInputElement);
    for (const label of findAll(panel, '[data-tip]')) setTip(label, label.dataset.tip ?? '');
  }

  /**
   * Connect the tree to the text.
   * @param {TextOwner} draft
   * @param {TreeHooks} hooks
   */
  start(draft, hooks) {
    this.draft = draft;
    this.hooks = hooks;
    this.#listen(draft);
  }

  /** @returns {StoredSettings} */
  get settings() { return {shape: this.#river ? 'river' : 'tree', session: this.session.checked}; }

  /**
   * Take the settings of a document, a file or a link. Values that are not possible here change nothing.
   * @param {StoredSettings} settings unchecked
   */
  set({shape, session}) {
    const button = this.#shapes.find(({value}) => value === shape);
    if (button) button.checked = true;
    if (typeof session === 'boolean') this.session.checked = session;
    this.#changed();
  }

  /** @param {boolean} shown */
  show(shown) {
    this.panel.hidden = !shown;
    this.#begin();
    this.#schedule();
  }

  /** The next drawing is another one: it is centred, and announced. */
  #begin() {
    this.#centred = '';
    this.#unannounced = true;
    announce(find(this.panel, '.tree-announcement'), '');
  }

  get #shapes() { return [...this.panel.querySelectorAll('input')].filter(({type}) => type === 'radio'); }

  get #river() { return this.#shapes.some(({value, checked}) => checked && value === 'river'); }

  /** @param {TextOwner} draft */
  #listen(draft) {
    const {panel, branches} = this;
    onDetail(draft, 'change', ({revision, kind}) => {
      this.#end = {text: draft.before, revision};
      if (kind === 'load') {
        this.seen.clear();
        this.viewport.reset();
      }
      if (kind === 'type') this.#scheduleLater();
      else this.#schedule();
    });
    branches.addEventListener('drawn', () => this.#onDrawn());
    branches.addEventListener('progress', () => { if (!panel.hidden && !this.#described) this.#saySummary(); });
    const foot = find(panel, '.tree-foot'), ban = find(foot, '.tree-ban');
    foot.addEventListener('pointerenter', () => this.#stopTimer());
    foot.addEventListener('pointerleave', event => {
      if (event.pointerType === 'touch') return;
      this.#hasBanned = false;
      this.#point(null);
    });
    panel.addEventListener('keydown', () => { this.#hasBanned = false; }, {capture: true});
    // A click on the button takes neither the focus nor the caret from the text box, and a second one not the focus from its node.
    foot.addEventListener('mousedown', event => { if (event.target === ban || this.#hasBanned) event.preventDefault(); });
    ban.addEventListener('click', () => {
      this.#hasBanned = true;
      branches.branchView.banPointed();
    });
    // Also when rows change below a pointer that rests.
    branches.addEventListener('point', () => this.#showBan());
    branches.addEventListener('enter', event => { if (!panel.hidden && this.input.focusFirst()) event.preventDefault(); });
    panel.addEventListener('change', () => {
      this.#begin();
      this.viewport.release();
      this.#changed();
    });
    /** @type {(selector: string, run: () => void) => void} */
    const on = (selector, run) => find(panel, selector).addEventListener('click', run);
    on('.save-svg', () => this.#save('svg'));
    on('.save-png', () => this.#save('png'));
  }

  /**
   * What the buttons zoom around: the node that has the focus or that a finger reads, else the end of the text and the first row.
   * A node that the mouse passes on its way to a button does not count.
   */
  #anchor() {
    const nodes = this.painter.layout?.nodes ?? [], end = nodes.length ? hereIn(nodes) : null;
    const first = nodes.find(({parent, node}) => parent === end && node.state === 'ahead') ?? end;
    const held = this.input.focused ?? (this.#isPinned ? nodes.find(({node}) => node === this.#described) : null);
    const left = held ?? end, top = held ?? first;
    return left && top && {x: left.x, y: top.y - top.height / 2};
  }

  #changed() {
    dispatch(this, 'change');
    this.#schedule();
  }

  /** The branches have changed: record what can be seen, and draw it. */
  #onDrawn() {
    const {branchView} = this.branches, {rows} = branchView.drawn(), {text, revision} = this.#end;
    const own = rows.length > 0 && rows.every(row => row.revision === revision);
    if (own && text && branchView.state() === 'settled') {
      this.seen.add(text, branchView.drawn());
      dispatch(this, 'seen');
    }
    // Hidden rows leave the drawing as soon as they leave the rows.
    if (own || branchView.isVeiled()) this.#schedule();
    else this.#scheduleLater();
  }

  /**
   * Record the rows of the column in which something is chosen now: that of the first column is recorded where it is drawn.
   * @param {DrawnView<DrawnRow>} drawn
   */
  recordColumn(drawn) {
    if (this.#end.text && drawn.rows.length) this.seen.add(this.#end.text, drawn);
  }

  #scheduleLater() {
    clearTimeout(this.#lazy);
    this.#lazy = setTimeout(() => this.#schedule(), TYPING_RESTS);
  }

  #schedule() {
    if (this.#painting || this.panel.hidden || !this.draft) return;
    this.#painting = true;
    const {draft} = this;
    requestAnimationFrame(() => {
      this.#painting = false;
      if (!this.panel.hidden) this.#paint(draft);
    });
  }

  /** @param {TextOwner} draft */
  #tree(draft) {
    const {branchView} = this.branches, text = draft.before || (this.hooks?.exampleText() ?? ''), {spans} = draft;
    const chosen = spans.some(([from, to]) => from < text.length && to >= text.length);
    const ahead = branchTree(branchView.drawn(), {text, chosen, revision: branchView.expected()});
    return this.session.checked ? sessionTree({text, spans, past: draft.pastTexts, seen: this.seen.list, ahead, hides: this.hooks?.hidesRows}) : ahead;
  }

  /** @param {TextOwner} draft */
  #paint(draft) {
    const {svg, painter, viewport, input} = this;
    // Before the area is measured: a longer sentence leaves less of it.
    setText(find(this.panel, '.tree-figures'), figuresSentence({river: this.#river, session: this.session.checked}));
    const layout = layoutInArea(this.#tree(draft), {river: this.#river, area: viewport.area, least: leastReadable()}), {focused} = input;
    const isSameText = this.#painted === draft.before, {branchView} = this.branches, wasDelayed = this.#isDelayed;
    const isGone = focused !== null && !layout.nodes.some(({node}) => node.key === focused.node.key);
    this.#isDelayed = isGone && isSameText && branchView.state() === 'thinking';
    if (this.#isDelayed) {
      branchView.point(null);
      return;
    }
    painter.paint(layout);
    viewport.resize(layout);
    const sentence = this.#sentence(layout.nodes), here = hereIn(layout.nodes);
    setAttribute(svg, 'aria-label', `${this.session.checked ? 'The session' : 'The branches'} as a ${this.#river ? 'river' : 'tree'}: ${sentence}`);
    const described = isSameText ? layout.nodes.find(({node}) => node.key === this.#described?.key)?.node ?? null : null;
    this.#describe(described, this.#isPinned && described !== null);
    this.#announce(sentence);
    input.keepTabStop(layout.nodes);
    input.keepFocus(focused, isSameText);
    if (wasDelayed && focused && !isGone) this.#point(focused.node, true);
    this.#painted = draft.before;
    // The drawing moves only when the text has. While branches grow it moves to where it had no room to move to before.
    const centred = `${this.#end.revision} ${this.session.checked}`;
    if (centred !== this.#centred || viewport.lacksRoom) viewport.reveal(here.x, here.y);
    this.#centred = centred;
  }

  /** Announce the first complete drawing since the tree was shown or its settings changed. @param {string} sentence */
  #announce(sentence) {
    if (!this.#unannounced || this.branches.branchView.state() === 'thinking') return;
    announce(find(this.panel, '.tree-announcement'), sentence);
    this.#unannounced = false;
  }

  /** Say beside the drawing what it shows, and how far it is computed: there is room, so that nothing moves. */
  #saySummary() {
    const {links = [], nodes = []} = this.painter.layout ?? {}, {branchView} = this.branches;
    const thickness = links.length && !branchView.isVeiled() ? thicknessSentence({river: this.#river}) : '';
    this.#say([this.#sentence(nodes), branchView.progress(), thickness].filter(Boolean).join(' '));
  }

  /** @param {LaidNode[]} nodes */
  #sentence(nodes) { return this.branches.branchView.isVeiled() ? GUESS_FIRST : drawingSentence(nodes); }

  /**
   * A node that the pointer has left stays described while the pointer may be on its way to the button below or above the drawing.
   * @param {TreeNode | null} node
   * @param {boolean} [byKeyboard]
   */
  #point(node, byKeyboard = false) {
    this.#stopTimer();
    if (byKeyboard || (node && !this.#described)) this.#describe(node);
    else this.#pass(node);
  }

  /** Describe a node, or none, once the mouse has rested there. @param {TreeNode | null} node */
  #pass(node) {
    clearTimeout(this.#pointTimer);
    this.#passed = node;
    this.#pointTimer = setTimeout(() => {
      this.#passed = undefined;
      this.#describe(node);
    }, node ? PASSING : LEAVING);
  }

  /** What is described stays so. */
  #stopTimer() {
    clearTimeout(this.#pointTimer);
    this.#passed = undefined;
  }

  /** On its way to the button, however slow, the mouse passes. @param {PointerEvent} event */
  #onMove(event) {
    const {bottom} = find(this.panel, '.tree-foot').getBoundingClientRect(), isAbove = bottom < event.clientY;
    if (this.#passed !== undefined && this.#steepMoves.includes(event, {isUp: isAbove})) this.#pass(this.#passed);
    this.#steepMoves.moved(event);
  }

  /** @param {TreeNode} node */
  #hold(node) {
    this.#stopTimer();
    this.#hasBanned = false;
    this.#describe(node, true);
    atNextClick(() => { if (this.#isPinned) this.#describe(null); }, '.tree-foot');
  }

  /** @param {TreeNode | null} node @param {boolean} [isPinned] */
  #describe(node, isPinned = false) {
    this.#described = node;
    this.#isPinned = isPinned;
    const {branch, piece} = node?.piece ?? {};
    this.branches.branchView.point(branch !== undefined && piece !== undefined && !node?.inert && !this.#isDelayed ? {branch, piece} : null);
    const nodes = this.painter.layout?.nodes ?? [], before = nodes.find(laid => laid.node === node)?.parent?.node.text;
    if (node) this.#say(nodeSentence(node, before, isPinned && this.viewport.isTooSmall), true);
    else this.#saySummary();
    this.#showBan();
  }

  /** @param {string} sentence @param {boolean} [isOfNode] */
  #say(sentence, isOfNode = false) {
    setSpokenText(find(this.panel, '.tree-says'), sentence, spokenBreaks(sentence));
    find(this.panel, '.tree-foot').toggleAttribute('data-described', isOfNode);
  }

  /** The button beside the sentence bans what is pointed at. After a ban the focus goes to another node, which a second press does not mean. */
  #showBan() {
    const ban = find(this.panel, '.tree-ban'), label = this.branches.branchView.banLabel();
    ban.hidden = !label || this.#hasBanned;
    setText(ban, label);
    setAttribute(ban, 'aria-label', spokenSentence(label));
  }

  /**
   * Do what a click on a node does: accept a branch up to the node, as a click in its row does; go back to the text of the node;
   * or, for the node of the other tokens after the text, open the list below the rows.
   * @param {TreeNode} node
   * @param {Choice | null} choice
   * @param {ChoiceSource} source
   */
  #activate(node, choice, source) {
    const nodes = this.painter.layout?.nodes ?? [], isRest = nodes.length > 0 && node.key === `${hereIn(nodes).node.key}/rest`;
    const more = isRest ? this.branches.querySelector('.more') : null;
    if (more instanceof HTMLButtonElement) {
      more.click();
      if (source.byKeyboard) more.focus();
    } else if (choice) this.branches.branchView.accept(choice, source);
    else if (node.goal !== undefined) this.#goBack(node.goal, source);
    else if (source.byKeyboard) dispatch(this.branches, 'refuse', {because: NOTHING_TO_INSERT});
  }

  /**
   * Go back to an earlier text. On a phone it may be out of sight: a notice says what has happened.
   * @param {NonNullable<TreeNode['goal']>} goal
   * @param {ChoiceSource} source
   */
  #goBack(goal, {pointer}) {
    if (!this.draft?.goTo(goal)) this.hooks?.notice(UNKNOWN);
    else if (pointer === 'touch') this.hooks?.notice(WENT_BACK);
  }

  /** @param {'svg' | 'png'} ending */
  async #save(ending) {
    const {painter: {layout}, hooks} = this;
    if (!layout || !hooks) return;
    const options = {colours: drawingColours(this.panel), title: this.svg.getAttribute('aria-label') ?? '', name: hooks.fileName(ending)};
    try {
      await (ending === 'svg' ? saveSvg : savePng)(layout, options);
      announce(find(this.panel, '.tree-announcement'), `Exported: ${options.name}.`, {again: true});
    } catch (error) {
      hooks.notice(/** @type {Error} */ (error).message);
    }
  }
}
