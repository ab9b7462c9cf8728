// What is drawn around a text box: the mirror below it with the chosen spans and the ghost text, the strip of typed and
// chosen stretches, and the count of words.
/** @import {Span} from '../core/types.d.ts' */
/** @import {TextOwner} from './text_owner.js' */
import {SELECTION, caretSentence} from '../core/branch_sentences.js';
import {markedStretches, mirrorStart, stripCells} from '../core/text_marks.js';
import {continuedLetters, formatCount, formatNumber} from '../core/figures_and_labels.js';
import {countWords} from '../core/text_words.js';
import {find, make} from './elements.js';
import {markGoesOn} from './hidden_text.js';
import {onDetail} from './events.js';

const COUNT_SETTLES = 200;       // milliseconds
const LINE = 24;                 // pixels below the box that are more than its padding
const BREAK_POINT = '\u200b';    // so that the ghost text does not pull the last word to the next line
const FADE = 16;                 // pixels at the lower edge of the box in which its text fades out
const CLOSING_SIGNS = /^[\p{Po}\p{Pe}\p{Pf}-]{1,3}/u;

/**
 * A text as nodes, with its chosen stretches as elements.
 * @param {string} text
 * @param {Span[]} spans
 * @param {number} [start] of the part that is shown
 * @returns {Node[]}
 */
export const markedNodes = (text, spans, start) => [...markedStretches(text, spans, start)]
  .map(({text, chosen}) => (chosen ? make('span', {className: 'chosen', text}) : document.createTextNode(text)));

/**
 * The ghost text as an element. Closing signs at its beginning, as a comma, which belong to the word before it, are an element
 * of their own inside it, `signs`; null if there are none. Line breaks at its end, which nothing else would show, are signs too.
 * @param {string} text of the ghost
 * @param {string} before the text before it
 * @returns {{ghost: HTMLElement, signs: HTMLElement | null}}
 */
function ghostElement(text, before) {
  const found = /\S$/.test(before) ? CLOSING_SIGNS.exec(text)?.[0] ?? '' : '', signs = found ? make('span', {className: 'signs', text: found}) : null;
  return {ghost: make('span', {className: 'ghost'}, ...(signs ? [signs] : []), text.slice(found.length).replace(/\n+$/, breaks => '↵'.repeat(breaks.length))), signs};
}

/** @type {(one: Element, other: Element) => boolean} */
function isBelow(one, other) {
  const [rect] = one.getClientRects();
  return rect !== undefined && rect.top > other.getBoundingClientRect().bottom - 1;
}

/** @param {{share: number, chosen: boolean}} cell */
function stripElement({share, chosen}) {
  const made = make('i', {className: chosen ? 'of-chosen' : 'of-typed'});
  made.style.flexGrow = String(share);
  return made;
}

/** The mirror of a draft's text box. */
export class TextMirror {
  #ghost = '';
  #isNew = false;        // whether the ghost text has not been visible yet
  #painted = '';         // the ghost text that the last paint has shown
  #isOld = false;        // whether anything but the ghost text has changed since the last paint
  #breaksWord = false;   // whether the ghost text would continue the last word on the next line
  #scrollsToEnd = false; // whether the next paint scrolls the box to its end
  #frame = 0;   // the animation frame that will paint, or 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #counting;

  /**
   * @param {TextOwner} draft
   * @param {{mirror: HTMLElement, strip: HTMLElement, count: HTMLElement, caretNote?: HTMLElement}} parts `caretNote`: where it is
   * said where the rows continue, if that is not the end of the text
   */
  constructor(draft, {mirror, strip, count, caretNote}) {
    this.draft = draft;
    this.box = draft.box;
    this.strip = strip;
    this.count = count;
    this.caretNote = caretNote;
    this.mirror = mirror;
    this.page = find(mirror, '.mirror-page');
    onDetail(draft, 'change', ({kind}) => this.#changed(kind));
    draft.addEventListener('caret', () => this.#moved());
    this.box.addEventListener('input', () => this.#paintSoon());
    this.box.addEventListener('scroll', () => this.#scroll(), {passive: true});
    new ResizeObserver(() => this.#paintSoon()).observe(this.box);
    this.#changed('load');
  }

  /**
   * Set the ghost text; it is visible only where the caret stands at the end. Returns whether it is.
   * @param {string | null} text
   */
  ghost(text) {
    this.#isNew = this.#isNew || (text ?? '') !== this.#ghost;
    this.#ghost = text ?? '';
    this.#breaksWord = false;
    this.#requestFrame();
    return this.ghostShown;
  }

  get ghostShown() {
    const {draft} = this;
    return Boolean(this.#ghost) && !this.#breaksWord && !draft.composing && !draft.selected && draft.caret === draft.text.length
      && mirrorStart(draft.text) !== null;
  }

  /** @param {string} kind of the change */
  #changed(kind) {
    if (kind !== 'caret') this.#ghost = '';
    if (kind === 'load') this.#paintCount();   // the count of the text before is no count of this one
    this.#moved();
  }

  #moved() {
    // The browser scrolls to the caret only in a box that has the focus, and leaves the padding below the last line out of sight.
    this.#scrollsToEnd = this.draft.caret === this.draft.text.length && !this.draft.selected;
    this.#paintSoon();
    clearTimeout(this.#counting);
    this.#counting = setTimeout(() => this.#paintCount(), COUNT_SETTLES);
  }

  /** The ghost text as it is to be visible; empty if it is not. */
  get #shownGhost() { return this.ghostShown ? this.#ghost : ''; }

  #paintSoon() {
    this.#isOld = true;
    this.#requestFrame();
  }

  /** Paint in the next frame, unless by then nothing differs from the last paint. */
  #requestFrame() {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#isOld || this.#painted !== this.#shownGhost) this.#paint();
      else this.#isNew = false;
    });
  }

  #paint() {
    const {text, spans} = this.draft, start = mirrorStart(text);
    // As wide as the box without its scroll bar, to the fraction of a pixel: else a word that just fits would be on another line.
    this.mirror.style.width = `${this.box.getBoundingClientRect().width - (this.box.offsetWidth - this.box.clientWidth)}px`;
    this.mirror.style.height = `${this.box.clientHeight}px`;
    this.page.style.minHeight = start ? `${this.box.scrollHeight}px` : '';
    this.#breaksWord = this.#isOld = false;
    const body = make('div'), end = make('span'), {ghost, signs} = ghostElement(this.#shownGhost, text);
    if (start !== null) body.append(...markedNodes(text, spans, start), end, BREAK_POINT, ghost);
    this.page.replaceChildren(body);
    this.#breaksWord = continuedLetters(text.slice(-1), this.#ghost) !== '' && isBelow(ghost, end);
    // No line begins with a sign that belongs to the word before: it stands in the margin.
    if (signs && isBelow(signs, end)) signs.classList.add('hanging');
    const shown = this.#shownGhost;
    if (!shown) ghost.textContent = '';
    if (!shown || this.#isNew) this.#makeRoom(0);
    this.#painted = shown;
    this.box.dataset.ghost = shown ? 'shown' : '';
    if (this.#scrollsToEnd) this.box.scrollTop = this.box.scrollHeight;
    this.#scrollsToEnd = false;
    this.#scroll();
    if (shown && this.#isNew) this.#reveal(end, ghost);
  }

  /**
   * Scroll a new ghost text into view, if the caret is in view: the browser knows nothing of the lines behind the caret.
   * @param {Element} end of the text, where the caret is
   * @param {Element} ghost
   */
  #reveal(end, ghost) {
    this.#isNew = false;
    const bottom = this.box.getBoundingClientRect().bottom - FADE;
    if (end.getBoundingClientRect().bottom > bottom || ghost.getBoundingClientRect().bottom <= bottom) return;
    this.#scrollToEnd();
    const hidden = ghost.getBoundingClientRect().bottom - bottom;
    if (hidden <= 0 || mirrorStart(this.draft.text)) return;
    this.#makeRoom(Math.min(hidden, this.box.clientHeight / 2));
    this.#scrollToEnd();
  }

  /** Let the box scroll further beyond its text, for a ghost text of several lines. @param {number} height in pixels; 0 for none */
  #makeRoom(height) {
    this.box.style.paddingBottom = '';
    if (height) this.box.style.paddingBottom = `${parseFloat(getComputedStyle(this.box).paddingBottom) + height}px`;
  }

  #scrollToEnd() {
    this.box.scrollTop = this.box.scrollHeight;
    this.#scroll();
  }

  #scroll() {
    const {scrollTop, parentElement} = this.box;
    this.page.style.translate = `0 ${-scrollTop}px`;
    parentElement?.toggleAttribute('data-scrolled', scrollTop > 0);
    markGoesOn(this.box, LINE);
  }

  #paintCount() {
    const {text, spans} = this.draft, {words, chosen} = countWords(text, spans);
    this.count.textContent = `${formatCount(words, 'word')}, ${formatNumber(chosen)} from rows`;
    this.strip.replaceChildren(...[...stripCells(text.length, spans)].map(stripElement));
    this.strip.setAttribute('aria-label', words ? `${formatNumber(chosen)} of ${formatCount(words, 'word')} ${chosen === 1 || words === 1 ? 'was' : 'were'} chosen from the branches.` : 'Nothing is written yet.');
    if (!this.caretNote) return;
    const continued = caretSentence(text, this.draft.caret);
    this.caretNote.textContent = continued && this.draft.selected ? SELECTION : continued;
    this.caretNote.hidden = !this.caretNote.textContent;
  }
}
