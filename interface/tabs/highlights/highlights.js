// The Highlights tab: a text is analysed by the server, and the result is drawn over a copy of it. Nothing here changes
// the text.
/**
 * @import {AlternativeFit, BranchViewElement, BranchRequest, ComponentArguments, HighlightsView, MarkedWord, News, SentRequest,
 *   Server, ShowDetail} from '../../web/core/types.d.ts'
 */
import {READY_INSTRUCTIONS} from '../rewrite/ready_instructions.js';
import {ReadingProgress} from '../../web/ui/reading_progress.js';
import {withTimeout} from '../../web/net/requests.js';
import {atNextClick, closestTo, dispatch} from '../../web/ui/events.js';
import {fillField, offerExample} from '../../web/ui/example_button.js';
import {find, findAll, make, setAttribute} from '../../web/ui/elements.js';
import {formatCount, spokenText, visibleText} from '../../web/core/figures_and_labels.js';
import {keepAcrossReloads} from '../../web/net/tab_storage.js';
import {listenToHolds} from '../../web/ui/holds.js';
import {meet} from '../../web/core/tip_position.js';
import {markedEntries, markedWords, relativeEntropies, replacedPart} from './marked_words.js';
import {pageElements} from '../../web/ui/page_elements.js';
import {progressRequests} from '../../web/ui/progress_requests.js';
import {paintWordDetails, placeBesideWord} from './word_details.js';
import {chanceFigure, expectationSentence, highlightSentence, markedSentence, notableCount, replacementSentence, spokenDetails, spokenSentence} from './highlight_sentences.js';
import {markRows, tokenTable} from './token_table.js';

const TEXT_SETTLES = 400;     // milliseconds without a key before a text is analysed
const POINTING_TIME = 150;    // milliseconds on a word before its alternatives are checked
const SHOWN_AT_FIRST = 10;    // highlights: more than a reader takes in are no help
const STRONGEST = 60;         // per cent: the band under the word with the highest entropy
const SETTINGS = {k: 5, depth: 5, mode: 'likely', until: 'tokens'};
const EXAMPLE = 'I was born in a lighthouse by the sea. Every evening my father climbed the stairs and lit the lamp with a borrowed spoon. The ships '
  + 'were grateful, because the sea was made of soup, and on Thursdays it always went out to lunch.';
const EMPTY = 'Write or paste a text: the words are highlighted here where the model would have gone elsewhere.';
const LOADING = 'Your text is read when the model is ready.';
const WINDOWS = 'This text is longer than what the model sees at once: it was read in windows.';
const READ_ONLY = 'Highlights only read: nothing is inserted into your text here.';
const SPOKEN = /[\p{L}\p{N}]/u;   // a character with which every screen reader says a word
/** @type {Record<string, number>} */
const MOVES = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity};
/** @type {Record<string, number>} */
const HIGHLIGHT_MOVES = {ArrowUp: -1, ArrowDown: 1};   // to the previous and the next highlight

/** @param {ComponentArguments} component */
export async function start({server}) {
  const page = await pageElements({source: '.sheet.given', result: '.read', branches: '#highlights-branches', replaced: '#highlights-replaced'});
  new HighlightsTab(page, server).start();
}

class HighlightsTab {
  revision = 0;     // of the text and its prompt
  opened = 0;       // how often branches were opened
  /**
   * The start of the word whose branches are requested; null: the text is requested.
   * @type {number | null}
   */
  branchStart = null;
  /**
   * The start of the word to open as soon as the text is analysed.
   * @type {number | null}
   */
  #openLater = null;
  #settledSentence = '';
  /** @type {(HighlightsView & {words: MarkedWord[]}) | null} */
  found = null;
  #stale = false;   // whether the text has changed since it was analysed
  /** The text before a reload and the number of its highlights, until a text is analysed. @type {{text: string, count: number | null} | null} */
  #restored = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #settling;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #pointing;
  #still = false;     // whether the pointer has not moved since branches were opened
  #isHeld = false;    // whether a finger has asked for the card: it stays until the next tap
  #visited = false;   // whether a highlight of this result was gone to
  /** @type {Promise<void> | null} */
  #checking = null;
  /** @type {HTMLElement | null} */
  #pointed = null;
  /** The word with the description of its card: it keeps that without the card, until it is left. @type {HTMLElement | null} */
  #described = null;
  /** @type {Map<number, AlternativeFit[]>} */
  #fits = new Map();   // by the starts of words

  /**
   * @param {{source: HTMLElement, result: HTMLElement, branches: BranchViewElement, replaced: HTMLElement}} elements
   * @param {Server} server
   */
  constructor({source, result, branches, replaced}, server) {
    this.server = server;
    this.source = source;
    this.branches = branches;
    this.replaced = replaced;
    this.text = find(source, '#highlights-text', HTMLTextAreaElement);
    this.prompt = find(source, '#highlights-prompt', HTMLInputElement);
    this.shown = find(result, '#highlights');
    this.count = find(result, '#highlights-count', HTMLInputElement);
    this.output = find(result, 'output', HTMLOutputElement);
    this.countCaption = find(result, '.of');
    this.line = new ReadingProgress(find(result, '.says'), {waiting: LOADING, announcement: find(result, '.announcement')});
    this.legend = find(result, '.legend');
    this.details = find(result, '.about');
    this.figures = find(result, '.figures', HTMLDetailsElement);
    this.next = find(result, '#highlights-next', HTMLButtonElement);
    this.withFigures = find(result, '#highlights-with-figures', HTMLInputElement);
    find(source, 'datalist').append(...READY_INSTRUCTIONS.map(value => make('option', {value})));
    this.requests = progressRequests(server, this.line, {
      revision: () => this.revision, makeRequest: () => this.#makeRequest(), onNews: (news, request) => this.#takeNews(news, request),
    });
  }

  start() {
    for (const field of [this.text, this.prompt]) field.addEventListener('input', () => this.#changed());
    this.count.addEventListener('input', () => this.#mark());
    this.next.addEventListener('click', () => this.#showNext());
    this.next.addEventListener('blur', () => this.#point(null));
    this.next.addEventListener('keydown', event => { if (event.key === 'Escape') this.#hideDetails(); });
    this.figures.addEventListener('toggle', () => this.#tabulate());
    this.withFigures.addEventListener('change', () => this.#showFigures());
    this.branches.addEventListener('accept', event => {
      /** @type {CustomEvent} */ (event).detail.because = READ_ONLY;
      event.preventDefault();
    });
    document.addEventListener('lookahead:ready', () => this.#analyse());
    keepAcrossReloads('highlights', {
      holds: () => this.text.value,
      take: () => ({text: this.text.value, prompt: this.prompt.value, figures: this.withFigures.checked, count: this.#countOfText()}),
      give: ({text = '', prompt = '', figures = false, count = null}) => {
        [this.text.value, this.prompt.value, this.withFigures.checked] = [text, prompt, figures === true];
        this.#restored = {text, count: Number.isInteger(count) ? count : null};
        this.#showFigures();
      },
    });
    offerExample(this.source, {holds: () => this.text.value, fill: () => fillField(this.text, EXAMPLE), field: this.text, changes: [this.text]});
    this.#listen();
    this.#analyse();
  }

  #listen() {
    const {shown} = this, wordAt = (/** @type {Event} */ event) => closestTo(event, '.word');
    shown.addEventListener('click', event => this.#open(wordAt(event)));
    shown.addEventListener('pointerover', event => { if (event.pointerType !== 'touch' && !this.#still) this.#point(wordAt(event)); });
    // Words that are scrolled under a pointer at rest are not pointed at, and a word that was clicked is only when it is entered again.
    document.addEventListener('pointermove', event => {
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
    shown.addEventListener('focusin', event => this.#point(wordAt(event)));
    shown.addEventListener('focusout', () => this.#point(null));
    shown.addEventListener('keydown', event => this.#onKey(event));
    for (const target of [shown, window]) target.addEventListener('scroll', () => this.#followWord(), {passive: true});
  }

  /** The text has changed: analyse it once it rests. */
  #changed() {
    clearTimeout(this.#settling);
    this.requests.cancel();
    this.#makeStale();
    this.#settling = setTimeout(() => this.#analyse(), TEXT_SETTLES);
  }

  #makeStale() {
    this.revision += 1;
    this.branchStart = this.#openLater = null;
    this.#point(null);
    this.#setStale(Boolean(this.found));
    this.#show({revision: this.opened += 1, state: 'empty', view: null});
    this.#showReplaced('');
  }

  /** @param {boolean} stale */
  #setStale(stale) {
    this.#stale = stale;
    this.shown.toggleAttribute('data-stale', stale);
  }

  #analyse() {
    this.branchStart = null;
    if (this.text.value) {
      this.line.show('Reading …', 'thinking');
      this.requests.schedule({length: this.text.value.length});
    } else {
      this.#clear(EMPTY, 'empty');
    }
  }

  /** @returns {BranchRequest} */
  #makeRequest() {
    const {revision, branchStart, opened} = this, instruction = this.prompt.value.trim() ? this.prompt.value : null;
    const branches = branchStart === null ? {} : {start: branchStart, opened};
    return {...SETTINGS, revision, text: this.text.value, instruction, ...branches};
  }

  /** @param {News} news @param {SentRequest} request */
  #takeNews(news, request) {
    if (request.start !== undefined) this.#showBranches(news, request);
    else if (news.state === 'error') this.#clear(news.sentence ?? '', 'error');
    else if (news.view) this.#showResult(news.view);
    else if (news.reading) this.line.progress(news.reading);
  }

  /** @param {News} news @param {SentRequest} request */
  #showBranches({state, view = null, reading = null, sentence}, {opened: revision, start}) {
    const replaced = replacedPart(this.found?.words.find(({entry}) => entry.start === start));
    this.#show({revision, state, view, reading, note: sentence ?? (state === 'settled' ? replacementSentence(replaced) : null)});
    this.line.show(this.#settledSentence, 'settled');
    if (state === 'settled') this.#revealBranches();
    const word = this.#pointed;
    if (state === 'settled' && word && !this.#fits.has(this.#wordOf(word).entry.start)) this.#checking = this.#check(word);
  }

  /**
   * Name the word, or the part of it, that the branches would replace above them.
   * @param {string} part empty if there are no branches
   * @param {string} [begun] what the word has before it
   */
  #showReplaced(part, begun = '') {
    find(this.replaced, 'q').textContent = visibleText(part);
    find(this.replaced, '.after').textContent = begun && `after “${visibleText(begun)}”`;
    this.replaced.hidden = !part;
  }

  /** Scroll the page down so far that the rows are seen, or the first of them where the window is too low. */
  #revealBranches() {
    const {top} = this.replaced.getBoundingClientRect(), {bottom} = find(this.branches, '.rows').getBoundingClientRect();
    scrollBy({top: Math.max(0, Math.min(bottom - innerHeight, top))});
  }

  /**
   * The number of highlights that a person sees, or saw before a reload of the page, for the text in the box. Null if that text
   * was not analysed yet: then a threshold decides.
   */
  #countOfText() {
    if (this.found && !this.#stale) return this.count.valueAsNumber;
    return this.#restored?.text === this.text.value ? this.#restored.count : null;
  }

  /**
   * Draw an analysed text word by word.
   * @param {HighlightsView} view
   */
  #showResult(view) {
    const count = this.#countOfText();
    this.#restored = null;
    const words = markedWords(view, Boolean(this.prompt.value.trim()));
    this.#point(null);
    this.#fits.clear();
    this.#visited = false;
    this.found = {...view, words};
    this.shown.replaceChildren(...wordNodes(words));
    this.#setStale(false);
    this.shown.dataset.state = 'settled';
    const most = view.marks.length;
    Object.assign(this.count, {max: most, value: count ?? notableCount(words, SHOWN_AT_FIRST), disabled: !most});
    this.legend.hidden = false;
    this.#showFigures();
    this.#mark();
    this.#tabulate();
    const seenFrom = Math.max(...view.entries.map(entry => entry.seen_from));
    this.#settledSentence = view.sentence || (seenFrom ? WINDOWS : '');
    this.line.show(this.#settledSentence, 'settled');
    this.line.announce([markedSentence(words, this.count.valueAsNumber), this.#settledSentence].filter(Boolean).join(' '));
    const start = this.#openLater;
    this.#openLater = null;
    if (start !== null) this.#open(findAll(this.shown, '.word').find(word => this.#wordOf(word).entry.start === start));
  }

  /** Show as many highlights as the slider says. */
  #mark() {
    const most = this.found?.marks.length ?? 0, count = this.count.valueAsNumber;
    this.output.value = String(most ? count : 0);
    this.count.ariaValueText = `${count} of ${formatCount(most, 'place')}`;
    this.next.disabled = !most || !count;
    this.countCaption.textContent = markedSentence(this.found?.words ?? [], count);
    for (const word of findAll(this.shown, '.word')) {
      const {rank, text} = this.#wordOf(word), marked = rank < count;
      word.toggleAttribute('data-marked', marked);
      // For screen readers a mark is a part of the name; other words are named by what they show, and signs by their names.
      const name = marked ? `${spokenText(text).trim()}, marked` : SPOKEN.test(text) ? null : spokenText(text);
      if (word.ariaLabel !== name) word.ariaLabel = name;
      if (word !== this.#described) this.#describeBriefly(word);
    }
    this.#markRows();
  }

  /** A marked word is described by what the model expected, also without its card. Other words have no description then. @param {HTMLElement} word */
  #describeBriefly(word) {
    setAttribute(word, 'aria-description', word.hasAttribute('data-marked') ? spokenSentence(expectationSentence(this.#wordOf(word))) : null);
  }

  /** @param {HTMLElement} element */
  #wordOf(element) { return /** @type {NonNullable<typeof this.found>} */ (this.found).words[Number(element.dataset.word)]; }

  /** Show figures in the text, in the card and in the table, or hide them. */
  #showFigures() {
    const {checked} = this.withFigures;
    for (const part of [this.details, this.shown]) part.toggleAttribute('data-figures', checked);
    this.figures.hidden = !checked || !this.found;
    if (this.#described) this.#paintDetails(this.#described);
    this.#followWord();
  }

  #tabulate() {
    const {figures, found} = this;
    if (figures.open && found) find(figures, '.wide').replaceChildren(tokenTable(found));
    this.#markRows();
  }

  /** The table shows the same highlights as the text. */
  #markRows() {
    if (this.found) markRows(this.figures, this.found.entries, markedEntries(this.found.words, this.count.valueAsNumber));
  }

  /** @param {string} sentence @param {string} state */
  #clear(sentence, state) {
    this.#point(null);
    this.requests.cancel();
    this.found = null;
    this.shown.replaceChildren();
    this.shown.dataset.state = state;
    this.#setStale(false);
    this.legend.hidden = true;
    this.#showFigures();
    Object.assign(this.count, {max: 0, disabled: true});
    this.#mark();
    this.line.show(sentence, state);
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
    if (!word || !this.found || this.#stale) return;
    this.#pointed = word;
    const {entry} = this.#wordOf(word);
    this.#paintDetails(word);
    this.details.showPopover();
    this.#followWord();
    if (entry.alternatives.length && !this.#fits.has(entry.start)) {
      this.#pointing = setTimeout(() => { this.#checking = this.#check(word); }, POINTING_TIME);
    }
  }

  /** @param {HTMLElement} word */
  #paintDetails(word) {
    const marked = this.#wordOf(word), {entry} = marked;
    const fits = this.#fits.get(entry.start) ?? [];
    paintWordDetails(this.details, entry, fits, marked);
    this.#described = word;
    word.setAttribute('aria-description', spokenDetails(marked, fits, this.withFigures.checked));
  }

  #hideDetails() {
    clearTimeout(this.#pointing);
    this.#pointed?.removeAttribute('data-shown');
    this.#pointed = null;
    this.#isHeld = false;
    this.details.hidePopover();
  }

  #followWord() {
    const word = this.#pointed;
    if (!word) return;
    const after = findAll(this.shown, '[data-marked]').filter(one => word.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
    placeBesideWord(this.details, word, {text: this.shown, after, keep: word.dataset.shown === undefined ? [] : [this.next]});
  }

  /**
   * Ask which of a word's alternatives fit in its place.
   * @param {HTMLElement} word
   */
  async #check(word) {
    const {revision} = this, {entry} = this.#wordOf(word), {text, instruction} = this.#makeRequest();
    const request = {...SETTINGS, page: this.requests.page, number: 0, revision, text, instruction, start: entry.start};
    /** @type {Awaited<ReturnType<Server['fit']>>} */
    const {fits, unknown, sentence} = await withTimeout(this.server.fit(request)).catch(() => ({}));
    if (revision !== this.revision) return;
    if (unknown) this.#analyse();
    if (sentence) this.line.show(sentence, 'error');
    if (!fits) return;
    this.#fits.set(entry.start, fits);
    if (word !== this.#described) return;
    this.#paintDetails(word);
    this.#followWord();
    this.#uncoverNext();
  }

  /**
   * Show branches that replace a word and all text after it.
   * @param {HTMLElement | null | undefined} word
   */
  async #open(word) {
    if (!word || !this.found || this.#stale) return;
    for (const other of findAll(this.shown, '[aria-current]')) other.removeAttribute('aria-current');
    word.setAttribute('aria-current', 'true');
    this.#moveTabStop(word);
    // The details would cover the branches.
    this.#hideDetails();
    this.#still = true;
    const marked = this.#wordOf(word), {start} = marked.entry, opened = this.opened += 1;
    this.#showReplaced(replacedPart(marked), marked.begun.trim());
    dispatch(this.branches, 'expect', {revision: opened});
    await this.#checking;   // the meter counts what these branches cost, and nothing else
    if (opened !== this.opened || !this.found || this.#stale) return;
    // A server that has forgotten the text analyses it first.
    if (this.line.state === 'thinking') {
      this.#openLater = start;
    } else {
      this.branchStart = start;
      this.requests.schedule();
    }
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const word = closestTo(event, '.word'), {key} = event;
    if (!word || event.altKey || event.ctrlKey || event.metaKey) return;
    if (key === 'Enter' || key === ' ') this.#open(word);
    else if (key === 'Escape') this.#hideDetails();
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

  /** Show the highlight after the word that was shown or had the focus last; after the last one, the first. The focus stays. */
  #showNext() {
    const words = findAll(this.shown, '.word'), marked = words.filter(word => word.hasAttribute('data-marked'));
    const from = words.findIndex(word => word.tabIndex === 0), began = words[from] === marked[0] && !this.#visited;
    const next = began ? marked[0] : marked.find(word => words.indexOf(word) > from) ?? marked[0];
    if (!next) return;
    this.#visited = true;
    this.#moveTabStop(next);
    this.#scrollTo(next);
    this.#point(null);
    next.dataset.shown = '';
    this.#point(next);
    this.#uncoverNext();
    this.line.announce(spokenSentence(highlightSentence(this.#wordOf(next), marked.indexOf(next) + 1, marked.length)));
  }

  /** Where the details of a word cover the button that shows the next one, scroll the page so that there is room below the word. */
  #uncoverNext() {
    const shown = this.#pointed?.dataset.shown !== undefined;
    if (!shown || !meet(this.details.getBoundingClientRect(), this.next.getBoundingClientRect())) return;
    this.next.scrollIntoView({block: 'start'});
    this.#followWord();
  }

  /**
   * Scroll the text so that a word is in its middle. The page moves only where the word is outside of the window.
   * @param {HTMLElement} word
   */
  #scrollTo(word) {
    const outer = this.shown.getBoundingClientRect(), inner = word.getBoundingClientRect();
    this.shown.scrollTop += (inner.top + inner.bottom - outer.top - outer.bottom) / 2;
    word.scrollIntoView({block: 'nearest'});
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
    next.scrollIntoView({block: 'nearest'});
  }

  /**
   * One word is where the Tab key leads.
   * @param {HTMLElement} word
   */
  #moveTabStop(word) {
    this.shown.querySelector('[tabindex="0"]')?.setAttribute('tabindex', '-1');
    word.tabIndex = 0;
  }

  /** @param {ShowDetail} detail */
  #show(detail) { dispatch(this.branches, 'show', detail); }
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
    Object.assign(word.dataset, {word: index, fork: bands[index].toFixed(3), chance: chanceFigure(own)});
    if (blank) word.dataset.sign = visibleText(text);
    word.setAttribute('role', 'button');
    word.style.setProperty('--fork', `${Math.round(STRONGEST * bands[index])}%`);
    return blank ? [word] : [before, word, after].filter(Boolean);
  });
}
