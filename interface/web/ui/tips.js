// The sentence of a control or a figure, while it is pointed at, touched or has the focus: one element for the whole page.
// Screen readers have the sentence as the control's description.
import {findAll, isTextField, make} from './elements.js';
import {tipPosition} from '../core/tip_position.js';

const TOOLBARS = '.controls, .column-head, .compare-foot';
const CONTROLS = ':is(.controls, .column-head, .compare-foot) :is(button, input, select, textarea, summary, label), [role=tab]';
const COVERAGE = '.cover .sum';   // its figure is what many sentences are about
// What a figure of the branches is a part of: its sentence stands beside that, and over no row either.
const FRAMES = '.cover, .rows, .branch-view .rest';
const BUTTONS = `${CONTROLS}, ${COVERAGE}, .bar :is(button, .button)`;   // beside other figures
const ROWS = `${BUTTONS}, .branch, .more`;
const HEADER = '.masthead';   // its sentence stands under it, though over names of tabs: else it would be far away
const OPENING = '[aria-expanded], .onward, #highlights-next';   // what a tap shows would be below its sentence
const CELLS = '.box, td';
const OTHERS = `${CELLS}, ${COVERAGE}, .branch, .more, .bar :is(button, .button)`;   // not covered by the sentence of a control if there is another place

/** @param {EventTarget | null} target */
const tipped = target => (target instanceof Element ? /** @type {HTMLElement | null} */ (target.closest('[data-tip]')) : null);

/** @param {Element} element */
const isVisible = element => element.checkVisibility();

/** Shows the sentence in `data-tip` of what is pointed at or touched, or else of what has the focus. */
export class Tips {
  /** @type {HTMLElement | null} */
  #owner = null;
  #touched = false;   // whether the sentence was asked for by a finger
  /** @type {Element | null} */
  #dismissed = null;  // what has the focus, if its sentence was closed since
  #at = '';           // the place of the pointer, as text
  #clicked = false;   // whether a mouse click is being answered
  #asks = false;      // whether the pointer was moved to a control or a figure since something was used or written
  /** @type {HTMLElement | null} */
  #arrived = null;    // what has come to lie under a pointer that rested
  // A sentence of another figure than the one that is seen would contradict it: a paint of the rows changes both.
  #changes = new MutationObserver(() => this.#show(this.#owner?.isConnected && isVisible(this.#owner) ? this.#owner : null));

  /** @param {HTMLElement} page */
  constructor(page) {
    this.element = make('div', {className: 'tip', hidden: true, ariaHidden: 'true'});
    page.append(this.element);
    document.addEventListener('pointerover', event => this.#onOver(event));
    document.addEventListener('pointermove', event => this.#onMove(event), {passive: true});
    // A tap moves the focus after it has shown a sentence, which stays until the next tap.
    document.addEventListener('focusin', () => {
      // Where a click leads the focus to a field, its sentence would cover what the click has opened.
      this.#dismissed = this.#clicked ? document.activeElement : null;
      if (!this.#touched) this.#show(this.#focused());
    });
    document.addEventListener('focusout', () => { if (!this.#touched) this.#show(null); });
    document.addEventListener('keydown', ({key}) => {
      this.#touched = false;
      if (key === 'Escape') this.#dismiss();
    }, {capture: true});
    // A control that was used needs no explanation: what it has changed is to be seen. A tap explains other controls first.
    document.addEventListener('click', ({target, detail}) => {
      this.#clicked = detail > 0;
      setTimeout(() => { this.#clicked = false; });
      const owner = target instanceof Node && this.#owner?.contains(target) ? this.#owner : null;
      if (owner && (!this.#touched || owner.matches(OPENING))) this.#dismiss();
    }, {capture: true});
    // A finger that scrolls asks for no sentence.
    document.addEventListener('pointercancel', () => this.#dismiss());
    // Not over the rows that answer an input.
    document.addEventListener('input', () => this.#dismiss(), {capture: true});
    // Nor beside a control that has moved: the sentence of the focus goes with it, since a focus may scroll.
    addEventListener('resize', () => this.#moved());
    addEventListener('scroll', ({target}) => { if (target instanceof Node && target.contains(this.#owner)) this.#moved(); }, {capture: true, passive: true});
  }

  /**
   * The pointer is over something else. Where it has not been moved, something has come to lie under it: that has no sentence,
   * unless it takes the place of what was pointed at, as the rows of a new paint do.
   * @param {PointerEvent} event
   */
  #onOver(event) {
    const {target, pointerType} = event, owner = tipped(target);
    this.#touched = pointerType === 'touch';
    if (this.#wasMoved(event) || this.#touched) this.#asks = owner !== null;
    this.#arrived = this.#asks ? null : owner;
    // A finger asks for what it taps alone: the focus is often in a field that the page has opened.
    this.#show((this.#asks ? owner : null) ?? (this.#touched ? null : this.#focused()));
  }

  /** Show the sentence of what has come to lie under the pointer once that is moved. @param {PointerEvent} event */
  #onMove(event) {
    if (!this.#wasMoved(event) || !this.#arrived) return;
    if (this.#arrived === tipped(event.target)) {
      this.#asks = true;
      this.#show(this.#arrived);
    }
    this.#arrived = null;
  }

  /** Whether the pointer is at another place than at its event before. @param {PointerEvent} event */
  #wasMoved({clientX, clientY}) {
    const before = this.#at;
    this.#at = `${clientX} ${clientY}`;
    return this.#at !== before;
  }

  #focused() {
    const focused = document.activeElement;
    return focused?.matches(':focus-visible') && focused !== this.#dismissed && !isWritten(focused) ? tipped(focused) : null;
  }

  /** Hide the sentence, and do not show that of the focus again while the focus stays there. */
  #dismiss() {
    this.#dismissed = document.activeElement;
    this.#asks = false;
    this.#show(null);
  }

  /** Follow the sentence of an element while it is shown. @param {HTMLElement | null} owner */
  #watch(owner) {
    this.#changes.disconnect();
    if (!owner) return;
    this.#changes.observe(owner, {attributeFilter: ['data-tip', 'hidden']});
    // A row that a paint removes takes its sentence along.
    const frame = owner.closest(FRAMES);
    if (frame) this.#changes.observe(frame, {attributeFilter: ['hidden'], childList: true, subtree: true});
  }

  /** @param {HTMLElement | null} owner */
  #show(owner) {
    const sentence = owner?.dataset.tip ?? '';
    if (owner === this.#owner && sentence === this.element.textContent) return;
    if (owner !== this.#owner) this.#watch(owner);
    // The sentence may stand above the toolbar: the mark says which control it is about.
    this.#owner?.removeAttribute('data-explained');
    if (sentence && owner?.closest(TOOLBARS)) owner.setAttribute('data-explained', '');
    this.#owner = owner;
    this.element.textContent = sentence;
    this.element.hidden = !sentence;
    if (owner && sentence) this.#place(owner);
  }

  /** Move the sentence to its control if that has the focus, or else hide it. */
  #moved() {
    const owner = this.#owner;
    if (owner && owner === this.#focused()) this.#place(owner);
    else this.#show(null);
  }

  /** @param {HTMLElement} owner */
  #place(owner) {
    const frame = owner.closest(`${TOOLBARS}, ${FRAMES}`) ?? owner;
    const spared = frame.matches(TOOLBARS) ? CONTROLS : frame.matches(FRAMES) ? ROWS : BUTTONS;
    const boxes = (/** @type {string} */ selector) => [...document.querySelectorAll(selector)].filter(isVisible).map(one => one.getBoundingClientRect());
    const controls = owner.closest(HEADER) ? [] : boxes(spared), text = frame.matches(FRAMES) ? paragraphBoxes() : [];
    const {left, top} = tipPosition({
      control: owner.getBoundingClientRect(), toolbar: frame.getBoundingClientRect(), toolbars: boxes(`${TOOLBARS}, .cover`), beside: frame.matches(FRAMES),
      controls: [...controls, ...text], others: frame.matches(TOOLBARS) ? [...boxes(OTHERS), ...paragraphBoxes()] : boxes(CELLS),
      size: this.element.getBoundingClientRect(), page: {width: innerWidth, height: innerHeight},
    });
    Object.assign(this.element.style, {left: `${left}px`, top: `${top}px`});
  }
}

/** The boxes of the paragraphs in text boxes, as far as they are not scrolled away. */
function paragraphBoxes() {
  return findAll(document, '.mirror').filter(isVisible).flatMap(mirror => {
    const {top: start, bottom: end} = mirror.getBoundingClientRect();
    return findAll(mirror, '.mirror-page > div').map(one => one.getBoundingClientRect())
      .map(({left, top, right, bottom}) => ({left, right, top: Math.max(start, top), bottom: Math.min(end, bottom)})).filter(({top, bottom}) => top < bottom);
  });
}

/** Whether something is written in a field. @param {Element} field */
const isWritten = field => isTextField(field) && field.value !== '';

/**
 * Give a figure or the head of a column its sentence: the Tab key reaches it, and screen readers read the sentence.
 * @template {HTMLElement} T
 * @param {T} element
 * @param {string} tip
 */
export function explain(element, tip) {
  element.classList.add('explained');
  element.dataset.tip = tip;
  element.tabIndex = 0;
  element.setAttribute('aria-description', tip);
  return element;
}

/**
 * Give a control its sentence: shown on hover and focus, and read by screen readers.
 * @param {HTMLElement} label
 * @param {string} tip
 */
export function setTip(label, tip) {
  label.dataset.tip = tip;
  label.querySelector('input, select, textarea')?.setAttribute('aria-description', tip);
}
