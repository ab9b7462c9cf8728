// The words of an analysed text: the highlights among them, the card with the details of one word, and the keys that lead
// from word to word.
/** @import {AlternativeFit, MarkedWord} from '../../web/core/types.d.ts' */
import {atNextClick, closestTo, wheelDistance} from '../../web/ui/events.js';
import {beginningOf} from '../../web/core/text_words.js';
import {chanceFigure, expectationSentence, highlightSentence, spokenDetails} from './highlight_sentences.js';
import {find, findAll, make, setAttribute} from '../../web/ui/elements.js';
import {listenToHolds} from '../../web/ui/holds.js';
import {markMore, paintWordDetails} from './word_details.js';
import {relativeEntropies} from './marked_words.js';
import {spokenSentence, spokenText, visibleText} from '../../web/core/figures_and_labels.js';
import {WIDE} from '../../web/ui/window_sizes.js';

const POINTING_TIME = 150;    // milliseconds on a word before its alternatives are checked
const STRONGEST = 60;         // per cent: the band under the word with the highest entropy
const AROUND = 8;            // pixels between a word and the bar above the text
const LEAST_SEEN = 96;       // pixels of the text: where fewer are in the window, the page scrolls to a word
const WORD_JOINER = '\u2060';   // forbids a line break between a word and its figure
const SPOKEN = /[\p{L}\p{N}]/u;   // a character with which every screen reader says a word
/** @type {Record<string, number>} */
const MOVES = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity};
/** @type {Record<string, number>} */
const HIGHLIGHT_MOVES = {ArrowUp: -1, ArrowDown: 1};   // to the previous and the next highlight

/** Draws the words of an analysed text, and shows the card of the one that is pointed at or has the focus. */
export class HighlightedWords {
  /** The check of a word's alternatives that began last. @type {Promise<void> | null} */
  checking = null;
  /** @type {MarkedWord[]} */
  #words = [];
  isStale = false;    // whether the text has changed since it was analysed
  #hasFigures = false;   // whether figures are shown
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #pointing;
  #still = false;     // whether the pointer has not moved since branches were opened or the next highlight was shown
  #isHeld = false;    // whether a finger has asked for the card: it stays until the next tap
  #visited = false;   // whether a highlight of this text was gone to
  /** @type {HTMLElement | null} */
  #pointed = null;
  /** The word with the description of its card: it keeps that without the card, until it is left. @type {HTMLElement | null} */
  #described = null;
  /** @type {Map<number, AlternativeFit[]>} */
  #fits = new Map();   // which alternatives fit, of each word that was checked; the keys are the starts of the words

  /**
   * @param {object} parts
   * @param {HTMLElement} parts.shown holds the words
   * @param {HTMLElement} parts.details the card
   * @param {HTMLButtonElement} parts.next shows the next highlight
   * @param {(word: MarkedWord) => Promise<AlternativeFit[] | null>} parts.findFits finds which of a word's alternatives fit in
   *   its place; null if that stays unknown
   * @param {(word: MarkedWord) => void} parts.onOpen called when a word is chosen, to show branches in its place
   * @param {() => void} parts.onClose called when it is chosen again, to take them away
   * @param {(sentence: string) => void} parts.announce announces a sentence, also the same one again
   */
  constructor({shown, details, next, findFits, onOpen, onClose, announce}) {
    this.shown = shown;
    this.details = details;
    this.next = next;
    this.findFits = findFits;
    this.onOpen = onOpen;
    this.onClose = onClose;
    this.announce = announce;
  }

  listen() {
    const {shown, details, next} = this, wordAt = (/** @type {Event} */ event) => closestTo(event, '.word');
    // The second click of a double click does not close what the first has opened.
    shown.addEventListener('click', event => this.#toggle(wordAt(event), event.detail < 2));
    shown.addEventListener('pointerover', event => {
      const word = event.pointerType !== 'touch' && !this.#still ? wordAt(event) : null;
      if (word) this.#point(word);
    });
    // A word that scrolls under a resting pointer does not show its card. A clicked word does only after the pointer has left it.
    document.addEventListener('pointermove', event => {
      if (!event.movementX && !event.movementY) return;   // the page has scrolled, not the pointer moved
      const word = this.#still && event.pointerType !== 'touch' ? wordAt(event) : null;
      this.#still = false;
      if (word && shown.contains(word) && !word.hasAttribute('aria-current')) this.#point(word);
    }, {capture: true, passive: true});
    shown.addEventListener('pointerleave', event => { if (event.pointerType !== 'touch') this.#point(shown.querySelector('.word:focus-visible')); });
    shown.addEventListener('hold', event => {
      this.#point(wordAt(event));
      this.#isHeld = true;
      atNextClick(() => { if (this.#isHeld) this.#point(null); });
    });
    listenToHolds(shown, '.word');
    shown.addEventListener('focusin', event => {
      const word = wordAt(event);
      if (word) this.#uncover(word);
      this.#point(word);
    });
    // Details that are higher than their card take the focus from their word, and give it back.
    shown.addEventListener('focusout', ({relatedTarget}) => { if (relatedTarget !== details) this.leave(); });
    details.addEventListener('focusout', ({relatedTarget}) => { if (relatedTarget !== this.#pointed) this.leave(); });
    const close = find(/** @type {HTMLElement} */ (details.parentElement), '.close');
    close.addEventListener('mousedown', event => event.preventDefault());   // the focus stays, or the details would be gone before the click
    close.addEventListener('click', () => this.leave());
    details.addEventListener('keydown', event => this.#onDetailsKey(event));
    shown.addEventListener('keydown', event => this.#onKey(event));
    next.addEventListener('click', () => this.#showNext());
    next.addEventListener('blur', () => this.leave());
    next.addEventListener('keydown', event => { if (event.key === 'Escape') this.#hideDetails(); });
    for (const target of [shown, next]) target.addEventListener('wheel', event => this.#scrollDetails(event), {passive: false});
    details.addEventListener('scroll', () => markMore(details), {passive: true});
    new ResizeObserver(() => markMore(details)).observe(details);
  }

  /**
   * Draw the words of an analysed text in place of the earlier ones. They stay scrolled as they are if both begin alike, as after
   * a replacement.
   * @param {MarkedWord[]} words
   * @param {string} state the element's `data-state`
   */
  draw(words, state) {
    this.leave();
    this.#fits.clear();
    this.#visited = false;
    const isOther = beginningOf(words) !== beginningOf(this.#words);
    this.#words = words;
    this.shown.replaceChildren(...wordNodes(words));
    if (isOther) this.shown.scrollTop = 0;
    this.shown.dataset.state = state;
    this.setStale(false);
  }

  /** While the words are stale, none is pointed at or chosen. @param {boolean} stale whether the text has changed since it was analysed */
  setStale(stale) {
    this.isStale = stale;
    this.shown.toggleAttribute('data-stale', stale);
  }

  /** Mark the words whose rank is below a number. @param {number} count */
  mark(count) {
    for (const word of findAll(this.shown, '.word')) {
      const {rank, text} = this.#wordOf(word), marked = rank < count;
      word.toggleAttribute('data-marked', marked);
      // For screen readers a mark is a part of the name; other words are named by what they show, and signs by their names.
      const name = marked ? `${spokenText(text).trim()}, marked` : SPOKEN.test(text) ? null : spokenText(text);
      if (word.ariaLabel !== name) word.ariaLabel = name;
      if (word !== this.#described) this.#describeBriefly(word);
    }
  }

  /** Show figures in the text and in the card, or hide them. @param {boolean} shown */
  showFigures(shown) {
    this.#hasFigures = shown;
    for (const part of [this.details, this.shown]) part.toggleAttribute('data-figures', shown);
    if (this.#described) this.#paintDetails(this.#described);
  }

  /** Hide the card: no word is pointed at. */
  leave() { this.#point(null); }

  /** Check the alternatives of the word that is pointed at, unless they are known. */
  checkPointed() {
    const word = this.#pointed;
    if (word && !this.#fits.has(this.#wordOf(word).entry.start)) this.checking = this.#check(word);
  }

  /** Choose the word that starts at a character, if there is one. @param {number} start */
  openAt(start) {
    this.#open(findAll(this.shown, '.word').find(word => this.#wordOf(word).entry.start === start));
  }

  /** Take the branches of the chosen word away. @param {boolean} focus whether the word gets the focus */
  close(focus) {
    const [word] = findAll(this.shown, '[aria-current]');
    if (!word) return;
    if (focus) this.focusOpened();
    this.#close(word);
  }

  /** Focus the word whose branches were opened. Returns whether there is one that did not have the focus. */
  focusOpened() {
    const word = findAll(this.shown, '[aria-current]')[0];
    if (!word || word === document.activeElement) return false;
    word.focus({preventScroll: true});
    this.#bringIntoView(word);
    return true;
  }

  /** @param {HTMLElement} element */
  #wordOf(element) { return this.#words[Number(element.dataset.word)]; }

  /** A marked word is described by what the model expected, also without its card. Other words have no description then. @param {HTMLElement} word */
  #describeBriefly(word) {
    setAttribute(word, 'aria-description', word.hasAttribute('data-marked') ? spokenSentence(expectationSentence(this.#wordOf(word))) : null);
  }

  /**
   * Show the details of a word while it is pointed at or has the focus.
   * @param {HTMLElement | null} word
   */
  #point(word) {
    if (word && word === this.#pointed) return;
    this.#hideDetails();
    if (this.#described) this.#describeBriefly(this.#described);
    this.#described = null;
    if (!word || this.isStale) return;
    this.#pointed = word;
    const {entry} = this.#wordOf(word);
    this.details.hidden = false;
    this.details.scrollTop = 0;
    this.#paintDetails(word);
    if (entry.alternatives.length && !this.#fits.has(entry.start)) {
      this.#pointing = setTimeout(() => {
        this.#pointing = undefined;
        this.checking = this.#check(word);
      }, POINTING_TIME);
    }
  }

  /** @param {HTMLElement} word */
  #paintDetails(word) {
    const marked = this.#wordOf(word), {entry} = marked;
    const fits = this.#fits.get(entry.start) ?? [];
    paintWordDetails(this.details, entry, fits, marked);
    markMore(this.details);
    this.#described = word;
    word.setAttribute('aria-description', spokenDetails(marked, fits, this.#hasFigures));
  }

  #hideDetails() {
    clearTimeout(this.#pointing);
    this.#pointing = undefined;
    this.#pointed?.removeAttribute('data-shown');
    this.#pointed = null;
    this.#isHeld = false;
    this.details.hidden = true;
  }

  /**
   * Escape and Shift+Tab give the focus back to the word of the details. Tab leads to what comes after the text.
   * @param {KeyboardEvent} event
   */
  #onDetailsKey(event) {
    const {key, shiftKey} = event;
    if (key !== 'Escape' && key !== 'Tab') return;
    this.#pointed?.focus();
    if (key === 'Escape') this.#hideDetails();
    else if (shiftKey) event.preventDefault();
  }

  /**
   * The wheel on a word, or on the button that has shown it, scrolls its details, where they are higher than their card.
   * @param {WheelEvent} event
   */
  #scrollDetails(event) {
    const {details} = this, before = details.scrollTop;
    if (event.ctrlKey || !this.#pointed || (event.currentTarget !== this.next && closestTo(event, '.word') !== this.#pointed)) return;
    details.scrollTop += wheelDistance(event);
    if (details.scrollTop !== before) event.preventDefault();
  }

  /** Find which of a word's alternatives fit in its place, and show it in its card. @param {HTMLElement} word */
  async #check(word) {
    const marked = this.#wordOf(word), fits = await this.findFits(marked);
    if (!fits) return;
    this.#fits.set(marked.entry.start, fits);
    if (word !== this.#described) return;
    this.#paintDetails(word);
  }

  /**
   * Choose a word and show its branches, or take them away if it is chosen already.
   * @param {HTMLElement | null | undefined} word
   * @param {boolean} [mayClose] false for the second click of a double click, which leaves branches as they are
   */
  #toggle(word, mayClose = true) {
    if (!word?.hasAttribute('aria-current') || this.isStale) this.#open(word);
    else if (mayClose) this.#close(word);
  }

  /** Hide the details of a word that has the focus, and take its branches away if it is chosen. @param {HTMLElement} word */
  #escape(word) {
    this.#hideDetails();
    if (word.hasAttribute('aria-current')) this.#close(word);
  }

  /** @param {HTMLElement} word that is chosen */
  #close(word) {
    markChosen(word, false);
    this.#still = false;
    this.onClose();
  }

  /** Choose a word. @param {HTMLElement | null | undefined} word */
  #open(word) {
    if (!word || this.isStale) return;
    for (const other of findAll(this.shown, '[aria-current]')) markChosen(other, false);
    markChosen(word, true);
    this.#moveTabStop(word);
    // On a phone the details would cover the branches. Alternatives that are not checked yet stay so: branches cost no more than a view.
    if (this.#pointing || !matchMedia(WIDE).matches) this.#hideDetails();
    this.#still = true;
    // In a small window the text is lower now.
    if (word.getBoundingClientRect().bottom > this.shown.getBoundingClientRect().bottom) this.#bringIntoView(word);
    this.onOpen(this.#wordOf(word));
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const word = closestTo(event, '.word'), {key} = event;
    if (!word || event.altKey || event.ctrlKey || event.metaKey) return;
    if (key === 'Enter' || key === ' ') this.#toggle(word);
    else if (key === 'Escape') this.#escape(word);
    else if (key === 'Tab' && !event.shiftKey && this.details.tabIndex === 0) this.details.focus();
    else if (HIGHLIGHT_MOVES[key]) this.#moveFocus(word, HIGHLIGHT_MOVES[key], one => one === word || one.hasAttribute('data-marked'));
    else if (MOVES[key]) this.#moveFocus(word, this.#inReadingOrder(MOVES[key]));
    else return;
    event.preventDefault();
  }

  /**
   * In a text from right to left, the next word is at the left.
   * @param {number} by
   */
  #inReadingOrder(by) { return Number.isFinite(by) && getComputedStyle(this.shown).direction === 'rtl' ? -by : by; }

  /**
   * Show the highlight after the word that was shown or had the focus last; after the last one, the first. The focus stays, and
   * branches of an earlier word are taken away.
   */
  #showNext() {
    const words = findAll(this.shown, '.word'), marked = words.filter(word => word.hasAttribute('data-marked'));
    const from = words.findIndex(word => word.tabIndex === 0), began = words[from] === marked[0] && !this.#visited;
    const next = began ? marked[0] : marked.find(word => words.indexOf(word) > from) ?? marked[0];
    if (!next) return;
    this.#visited = true;
    this.close(false);
    this.#moveTabStop(next);
    this.#scrollTo(next);
    this.leave();
    this.#still = true;
    next.dataset.shown = '';
    this.#point(next);
    this.announce(spokenSentence(highlightSentence(this.#wordOf(next), marked.indexOf(next) + 1, marked.length)));
  }

  /**
   * Scroll the text so that a word is in the middle of what is seen of the text. The page moves only where the word is outside of
   * the window then; in a narrow window it moves once, until the whole text is above the details.
   * @param {HTMLElement} word
   */
  #scrollTo(word) {
    if (!matchMedia(WIDE).matches) this.shown.scrollIntoView({block: 'nearest', behavior: 'instant'});
    const outer = this.shown.getBoundingClientRect(), inner = word.getBoundingClientRect(), seen = this.#seenText;
    const {top, bottom} = seen.bottom - seen.top < LEAST_SEEN ? outer : seen;
    this.shown.scrollTop += (inner.top + inner.bottom - top - bottom) / 2;
    this.#bringIntoView(word);
    this.#uncover(word);
  }

  /**
   * Scroll the text and the page no further than needed to see a word, and the text to a whole line: its edges cut none in half.
   * @param {HTMLElement} word
   */
  #bringIntoView(word) {
    word.scrollIntoView({block: 'nearest'});
    const {shown} = this, {lineHeight, paddingTop} = getComputedStyle(shown), lines = Math.round(shown.scrollTop / parseFloat(lineHeight));
    shown.scrollTop = lines && lines * parseFloat(lineHeight) + parseFloat(paddingTop);
  }

  /** The upper and the lower edge of what is seen of the text. */
  get #seenText() {
    const {top, bottom} = this.shown.getBoundingClientRect();
    return {top: Math.max(top, this.#barBottom()), bottom: Math.min(bottom, innerHeight)};
  }

  /** The lower edge of the bar above the text. It stays in the window where the tab does not fit, and the text scrolls under it. */
  #barBottom() { return this.next.closest('.controls')?.getBoundingClientRect().bottom ?? 0; }

  /** Scroll the page back where a word is under the bar. @param {HTMLElement} word */
  #uncover(word) {
    scrollBy({top: Math.min(0, word.getBoundingClientRect().top - AROUND - this.#barBottom()), behavior: 'instant'});
  }

  /**
   * @param {HTMLElement} word
   * @param {number} by how many words to move
   * @param {(word: HTMLElement) => boolean} [among] the words that count
   */
  #moveFocus(word, by, among = () => true) {
    const words = findAll(this.shown, '.word').filter(among);
    const next = words[Math.max(0, Math.min(words.length - 1, words.indexOf(word) + by))];
    this.#moveTabStop(next);
    next.focus({preventScroll: true});
    this.#bringIntoView(next);
    this.#uncover(next);
  }

  /**
   * One word is where the Tab key leads.
   * @param {HTMLElement} word
   */
  #moveTabStop(word) {
    this.shown.querySelector('[tabindex="0"]')?.setAttribute('tabindex', '-1');
    word.tabIndex = 0;
  }
}

/**
 * The words as elements, with the white space between them.
 * @param {MarkedWord[]} words
 */
function wordNodes(words) {
  const bands = relativeEntropies(words);
  return words.flatMap((own, index) => {
    const {text} = own;
    const [, before, inner, after] = /^(\s*)(.*?)(\s*)$/su.exec(text) ?? ['', '', text, ''], blank = !inner;
    const word = make('span', {text: blank ? text : inner, className: blank ? 'word blank' : 'word', tabIndex: index ? -1 : 0});
    Object.assign(word.dataset, {word: index, fork: bands[index].toFixed(3), chance: WORD_JOINER + chanceFigure(own)});
    if (blank) word.dataset.sign = visibleText(text);
    word.setAttribute('role', 'button');
    word.ariaExpanded = 'false';
    word.style.setProperty('--fork', `${Math.round(STRONGEST * bands[index])}%`);
    return blank ? [word] : [before, word, after].filter(Boolean);
  });
}

/**
 * Mark a word as the one whose branches are open, or take the mark away.
 * @param {Element} word
 * @param {boolean} isChosen
 */
function markChosen(word, isChosen) {
  setAttribute(word, 'aria-current', isChosen ? 'true' : null);
  setAttribute(word, 'aria-expanded', String(isChosen));
}
