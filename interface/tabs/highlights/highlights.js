// The Highlights tab: a text is analysed by the server, and the result is drawn over a copy of it. Nothing here changes
// the text.
/**
 * @import {BranchViewElement, BranchRequest, ComponentArguments, HighlightsView, MarkedWord, News, SentRequest, Server,
 *   ShowDetail} from '../../web/core/types.d.ts'
 */
import {HighlightedWords} from './highlighted_words.js';
import {READY_INSTRUCTIONS} from '../rewrite/ready_instructions.js';
import {ReadingProgress} from '../../web/ui/reading_progress.js';
import {withTimeout} from '../../web/net/requests.js';
import {dispatch} from '../../web/ui/events.js';
import {fillField, offerExample, offerWrittenText} from '../../web/ui/example_button.js';
import {find, make, setSpokenText} from '../../web/ui/elements.js';
import {followHiddenText} from '../../web/ui/hidden_text.js';
import {listenToKeysBetween} from '../../web/ui/keys_between.js';
import {noRowsSentence} from '../../web/core/branch_sentences.js';
import {formatCount, spokenQuote, spokenText, visibleText} from '../../web/core/figures_and_labels.js';
import {keepAcrossReloads} from '../../web/net/tab_storage.js';
import {markedEntries, markedWords, replacedPart} from './marked_words.js';
import {pageElements} from '../../web/ui/page_elements.js';
import {progressRequests} from '../../web/ui/progress_requests.js';
import {WIDE} from '../../web/ui/window_sizes.js';
import {markedSentence, notableCount, replacementSentence} from './highlight_sentences.js';
import {markRows, tokenTable} from './token_table.js';

const TEXT_SETTLES = 400;     // milliseconds without a key before a text is analysed
const SHOWN_AT_FIRST = 10;    // highlights: more than a reader takes in are no help
const ABOVE_WORD = 24;        // pixels of the text above a clicked word, where the page scrolls to its rows
const SETTINGS = {k: 5, depth: 5, mode: 'likely', until: 'tokens'};
const EXAMPLE = 'I was born in a lighthouse by the sea. Every evening my father climbed the stairs and lit the lamp with a borrowed spoon. The ships '
  + 'were grateful, because the sea was made of soup, and on Thursdays it always went out to lunch.';
const EMPTY = 'Write or paste a text: the words that the model did not expect are highlighted here.';
const LOADING = 'Your text is read when the model is ready.';
const HOW_TO_CLOSE = 'Escape on the word, or the button Close, leads back.';
const CLOSED = 'The branches are closed.';
const NO_BRANCHES = 'No branches are open: Enter on a word of the analysed text opens them.';
const WINDOWS = 'This text is longer than what the model sees at once: it was read in windows.';
const READ_ONLY = 'Highlights only read: nothing is inserted into your text here.';

/** @param {ComponentArguments} component */
export async function start({server}) {
  const page = await pageElements({source: '.sheet.given', result: '.read', branches: '#highlights-branches', replaced: '#highlights-replaced', details: '#highlights-about'});
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
  /** The text before a reload and the number of its highlights, until a text is analysed. @type {{text: string, count: number | null} | null} */
  #restored = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #settling;

  /**
   * @param {{source: HTMLElement, result: HTMLElement, branches: BranchViewElement, replaced: HTMLElement, details: HTMLElement}} elements
   * @param {Server} server
   */
  constructor({source, result, branches, replaced, details}, server) {
    this.server = server;
    this.source = source;
    this.branches = branches;
    this.replaced = replaced;
    find(branches, '.rows').setAttribute('aria-describedby', find(replaced, 'p').id);
    this.text = find(source, '#highlights-text', HTMLTextAreaElement);
    this.prompt = find(source, '#highlights-prompt', HTMLInputElement);
    this.count = find(result, '#highlights-count', HTMLInputElement);
    this.output = find(result, 'output', HTMLOutputElement);
    this.countCaption = find(result, '.of');
    this.line = new ReadingProgress(find(result, '.says'), {waiting: LOADING, announcement: find(result, '.announcement')});
    this.legend = find(result, '.legend');
    this.figuresLegend = find(result, '.legend.of-figures');
    this.figures = find(result, '.figures', HTMLDetailsElement);
    this.next = find(result, '#highlights-next', HTMLButtonElement);
    this.words = new HighlightedWords({
      shown: find(result, '#highlights'), details, next: this.next, findFits: word => this.#findFits(word),
      onOpen: word => this.#open(word), onClose: () => this.#close(), announce: sentence => this.line.announce(sentence, {again: true}),
    });
    this.withFigures = find(result, '#highlights-with-figures', HTMLInputElement);
    find(source, 'datalist').append(...READY_INSTRUCTIONS.map(value => make('option', {value})));
    this.requests = progressRequests(server, this.line, {
      revision: () => this.revision, makeRequest: () => this.#makeRequest(), onNews: (news, request) => this.#takeNews(news, request),
    });
  }

  start() {
    for (const field of [this.text, this.prompt]) field.addEventListener('input', () => this.#changed());
    this.count.addEventListener('input', () => this.#mark());
    this.figures.addEventListener('toggle', () => this.#tabulate());
    this.withFigures.addEventListener('change', () => this.#showFigures());
    this.branches.addEventListener('accept', event => {
      /** @type {CustomEvent} */ (event).detail.because = READ_ONLY;
      event.preventDefault();
    });
    this.branches.addEventListener('leave', () => this.words.focusOpened());
    listenToKeysBetween(this.branches, {
      toRows: () => { if (!this.branches.branchView.focus()) this.line.announce(this.#noRowsSentence, {again: true}); },
      toText: () => {
        if (!this.words.shown.contains(document.activeElement) && this.words.focusOpened()) return;
        if (matchMedia(WIDE).matches) this.words.close(false);   // there the branches stand in its place
        this.text.focus();
      },
    });
    find(this.replaced, 'button').addEventListener('click', ({detail}) => this.words.close(detail === 0));
    document.addEventListener('lookahead:ready', () => this.#analyse());
    keepAcrossReloads('highlights', {
      boxes: [this.text],
      holds: () => this.text.value,
      take: () => ({text: this.text.value, prompt: this.prompt.value, figures: this.withFigures.checked, count: this.#countOfText()}),
      give: ({text = '', prompt = '', figures = false, count = null}) => {
        [this.text.value, this.prompt.value, this.withFigures.checked] = [text, prompt, figures === true];
        this.#restored = {text, count: Number.isInteger(count) ? count : null};
        this.#showFigures();
      },
    });
    offerExample(this.source, {holds: () => this.text.value, fill: () => fillField(this.text, EXAMPLE), field: this.text, changes: [this.text]});
    offerWrittenText(this.source, this.text);
    followHiddenText(this.text);
    this.words.listen();
    this.#analyse();
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
    this.words.leave();
    this.words.setStale(Boolean(this.found));
    this.#allowNext();
    this.#show({revision: this.opened += 1, state: 'empty', view: null});
    this.#showReplaced('');
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
    if (state === 'settled') this.words.checkPointed();
  }

  /**
   * Name the word, or the part of it, that the branches would replace above them.
   * @param {string} part empty if there are no branches
   * @param {string} [begun] what the word has before it
   */
  #showReplaced(part, begun = '') {
    setSpokenText(find(this.replaced, 'q'), visibleText(part), spokenText(part));
    setSpokenText(find(this.replaced, '.after'), begun && `after “${visibleText(begun)}”`, begun && `after ${spokenQuote(begun)}`);
    this.replaced.hidden = !part;
    this.branches.setAttribute('aria-label', part ? `Branches instead of ${spokenQuote(part)}` : 'Branches');
  }

  /**
   * Where the rows stand below the clicked word, scroll the page no further than needed to see their place, or as much of it as fits
   * below the word, which stays in sight.
   */
  #revealBranches() {
    if (matchMedia(WIDE).matches) return;
    const word = this.words.shown.querySelector('[aria-current]') ?? this.replaced, room = word.getBoundingClientRect().top - ABOVE_WORD;
    const {top, bottom} = (this.replaced.closest('.card') ?? this.branches).getBoundingClientRect();
    scrollBy({top: Math.max(0, Math.min(bottom - innerHeight, room)) + Math.min(0, top)});
  }

  /**
   * The number of highlights that a person sees, or saw before a reload of the page, for the text in the box. Null if that text
   * was not analysed yet: then a threshold decides.
   */
  #countOfText() {
    if (this.found && !this.words.isStale) return this.count.valueAsNumber;
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
    this.found = {...view, words};
    this.words.draw(words, 'settled');
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
    if (start !== null) this.words.openAt(start);
  }

  /** Show as many highlights as the slider says. */
  #mark() {
    const most = this.found?.marks.length ?? 0, count = this.count.valueAsNumber;
    this.output.value = String(most ? count : 0);
    this.count.ariaValueText = `${count} of ${formatCount(most, 'place')}`;
    this.#allowNext();
    this.countCaption.textContent = markedSentence(this.found?.words ?? [], count);
    this.words.mark(count);
    this.line.announce('');   // what was said of a highlight, its number among others
    this.#markRows();
  }

  /** No highlight can be gone to where none is shown, nor while they are those of an earlier text. */
  #allowNext() { this.next.disabled = !this.found?.marks.length || !this.count.valueAsNumber || this.words.isStale; }

  /** Show figures with their legend in the text, in the card and in the table, or hide them. */
  #showFigures() {
    const {checked} = this.withFigures;
    for (const part of [this.figures, this.figuresLegend]) part.hidden = !checked || !this.found;
    this.words.showFigures(checked);
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
    this.requests.cancel();
    this.found = null;
    this.words.draw([], state);
    this.legend.hidden = true;
    this.#showFigures();
    Object.assign(this.count, {max: 0, disabled: true});
    this.#mark();
    this.line.show(sentence, state);
  }

  /**
   * Ask which of a word's alternatives fit in its place. Returns null if the server does not say, or the text has changed meanwhile.
   * @param {MarkedWord} word
   */
  async #findFits({entry}) {
    const {revision} = this, {text, instruction} = this.#makeRequest();
    const request = {...SETTINGS, page: this.requests.page, number: 0, revision, text, instruction, start: entry.start};
    /** @type {Awaited<ReturnType<Server['fit']>>} */
    const {fits, unknown, sentence} = await withTimeout(this.server.fit(request)).catch(() => ({}));
    if (revision !== this.revision) return null;
    if (unknown) this.#analyse();
    if (sentence) this.line.show(sentence, 'error');
    return fits ?? null;
  }

  /** Why no key leads to rows: there are none. */
  get #noRowsSentence() {
    return this.branchStart === null ? NO_BRANCHES : noRowsSentence({state: this.branches.branchView.state(), paused: false, selected: false});
  }

  /** Take the branches away. */
  #close() {
    if (this.branchStart !== null) this.requests.cancel();
    this.branchStart = this.#openLater = null;
    this.#show({revision: this.opened += 1, state: 'empty', view: null});
    this.#showReplaced('');
    this.line.announce(CLOSED, {again: true});
  }

  /**
   * Show branches that replace a word and all text after it.
   * @param {MarkedWord} word
   */
  async #open(word) {
    const {start} = word.entry, opened = this.opened += 1;
    this.#showReplaced(replacedPart(word), word.begun.trim());
    const hides = matchMedia(WIDE).matches ? ' The text field is hidden meanwhile.' : '';
    this.line.announce(`Branches instead of ${spokenQuote(replacedPart(word))} follow.${hides} ${HOW_TO_CLOSE}`, {again: true});
    dispatch(this.branches, 'expect', {revision: opened});
    this.#revealBranches();
    await this.words.checking;   // the meter counts what these branches cost, and nothing else
    if (opened !== this.opened || !this.found || this.words.isStale) return;
    // A server that has forgotten the text analyses it first.
    if (this.line.state === 'thinking') {
      this.#openLater = start;
    } else {
      this.branchStart = start;
      this.requests.schedule();
    }
  }

  /** @param {ShowDetail} detail */
  #show(detail) { dispatch(this.branches, 'show', detail); }
}
