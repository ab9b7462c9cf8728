// The Highlights tab: a text goes to the server to be read, and what comes back is drawn over it. Nothing here writes
// into the text.
import * as header from '../../web/ui/header.js';
import {READY_INSTRUCTIONS} from '../rewrite/ready_instructions.js';
import {ReadingProgress} from '../../web/ui/reading_progress.js';
import {ServerRequests, withTimeout} from '../../web/net/requests.js';
import {formatNumber, visibleText} from '../../web/core/branch_sentences.js';
import {relativeEntropies, markedWords} from './marked_words.js';
import {keepAcrossReloads} from '../../web/net/tab_storage.js';
import {make} from '../../web/ui/elements.js';
import {paintWordDetails, placeBesideWord} from './word_details.js';
import {tokenTable} from './token_table.js';
import {pageElements} from '../../web/ui/page_elements.js';

const SETTLES = 400;    // milliseconds without a key before a text is read
const POINTS = 150;     // milliseconds on a word before it is asked what fits there
const STRONGEST = 60;   // per cent: the band under the word that the model was least sure of
const ASKED = {k: 5, depth: 5, mode: 'likely', until: 'tokens'};
const EMPTY = 'Write or paste a text: the words are highlighted here where the model would have gone elsewhere.';
const WAITING = 'Your text is read when the model is ready.';
const WINDOWS = 'This text is longer than what the model sees at once: it was read in windows.';
const READS_ONLY = 'Highlights only read: nothing is inserted into your text here.';
const SHARES = 'Share: the odds of its first piece, as the model gives them. Nothing of this enters your text.';
const MOVES = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity};
const MARKS = {ArrowUp: -1, ArrowDown: 1};   // to the highlight before, and to the next

export async function start({server}) {
  const page = await pageElements({given: '.sheet.given', read: '.read', branches: '#highlights-branches'});
  new HighlightsTab(page, server).start();
}

class HighlightsTab {
  revision = 0;     // of the text and what the model is told of it
  opened = 0;       // counts what the branch view was asked to show
  at = null;        // the word whose branches are asked for, or null: the text is to be read
  #opens = null;    // the word whose branches are wanted as soon as the text is read
  #settled = '';    // what there was to say when the text was read
  found = null;     // what was read: {revision, words, entries, …}
  #settling = 0;
  #pointing = 0;
  #fitting = null;
  #shown = null;
  #fits = new Map();

  constructor({given, read, branches}, server) {
    const find = selector => read.querySelector(selector);
    Object.assign(this, {
      server, branches, text: given.querySelector('#highlights-text'), prompt: given.querySelector('#highlights-prompt'),
      shown: find('#highlights'), count: find('#highlights-count'), output: find('output'), of: find('.of'),
      line: new ReadingProgress(find('.says'), {waiting: WAITING}),
      legend: find('.legend'), about: find('.about'), figures: find('.figures'),
    });
    given.querySelector('datalist').append(...READY_INSTRUCTIONS.map(value => make('option', {value})));
    this.requests = new ServerRequests({
      server,
      given: () => this.given(),
      heard: (news, request) => this.heard(news, request),
      lost: sentence => this.line.say(sentence, 'error'),
      unknown: () => {},
    });
  }

  start() {
    for (const field of [this.text, this.prompt]) field.addEventListener('input', () => this.changed());
    this.count.addEventListener('input', () => this.mark());
    this.figures.addEventListener('toggle', () => this.tabulate());
    this.branches.addEventListener('accept', event => {
      event.detail.because = READS_ONLY;
      event.preventDefault();
    });
    document.addEventListener('lookahead:ready', () => this.look());
    keepAcrossReloads('highlights', {
      holds: () => this.text.value,
      take: () => ({text: this.text.value, prompt: this.prompt.value}),
      give: ({text = '', prompt = ''}) => { [this.text.value, this.prompt.value] = [text, prompt]; },
    });
    this.listen();
    this.look();
  }

  listen() {
    const {shown} = this, wordAt = ({target}) => target.closest('.word');
    shown.addEventListener('click', event => this.open(wordAt(event)));
    shown.addEventListener('pointerover', event => { if (event.pointerType !== 'touch') this.point(wordAt(event)); });
    shown.addEventListener('pointerleave', () => this.point(shown.querySelector('.word:focus-visible')));
    shown.addEventListener('focusin', event => this.point(wordAt(event)));
    shown.addEventListener('focusout', () => this.point(null));
    shown.addEventListener('keydown', event => this.key(event));
    for (const target of [shown, window]) target.addEventListener('scroll', () => this.#follow(), {passive: true});
  }

  // The text is another; it is read once it rests.
  changed() {
    clearTimeout(this.#settling);
    this.requests.drop();
    this.#stale();
    this.#settling = setTimeout(() => this.look(), SETTLES);
  }

  #stale() {
    this.revision += 1;
    this.at = this.#opens = null;
    this.point(null);
    this.shown.toggleAttribute('data-stale', Boolean(this.found));
    this.tell('show', {revision: this.opened += 1, state: 'empty', view: null});
  }

  look() {
    this.at = null;
    if (!this.text.value) return this.clear(EMPTY, 'empty');
    this.line.say('Reading …', 'thinking');
    this.requests.ask({length: this.text.value.length});
  }

  given() {
    const {revision, at, opened} = this, instruction = this.prompt.value.trim() ? this.prompt.value : null;
    const where = at === null ? {} : {start: at, opened};
    return {...ASKED, revision, text: this.text.value, instruction, ...where};
  }

  heard(news, request) {
    if (request.revision !== this.revision) return;
    if (news.state === 'waiting') return this.line.wait(news);
    header.clearErrors(this);
    if (request.start !== undefined) this.grown(news, request);
    else if (news.state === 'error') this.clear(news.sentence, 'error');
    else if (news.view) this.take(news.view);
    else if (news.reading) this.line.progress(news.reading);
  }

  grown({state, view = null, reading = null, sentence = null}, {opened: revision}) {
    this.tell('show', {revision, state, view, reading, note: sentence ?? (view && SHARES)});
    this.line.say(this.#settled, 'settled');
    const word = this.#shown;
    if (state === 'settled' && word && !this.#fits.has(this.wordOf(word).entry.start)) this.#fitting = this.fit(word);
  }

  // What was read, drawn word by word.
  take(view) {
    const count = this.found && !this.stale ? this.count.valueAsNumber : null;   // the same text, read once more
    this.point(null);
    this.#fits.clear();
    this.found = {...view, words: markedWords(view)};
    this.shown.replaceChildren(...this.#drawn());
    this.shown.removeAttribute('data-stale');
    this.shown.dataset.state = 'settled';
    const most = view.marks.length;
    Object.assign(this.count, {max: most, value: count ?? Math.max(Math.min(1, most), Math.floor(most / 2)), disabled: !most});
    this.legend.hidden = this.figures.hidden = false;
    this.mark();
    this.tabulate();
    const from = Math.max(...view.entries.map(entry => entry.seen_from));
    this.#settled = view.sentence || (from ? WINDOWS : '');
    this.line.say(this.#settled, 'settled');
    const start = this.#opens, words = [...this.shown.querySelectorAll('.word')];
    this.#opens = null;
    if (start !== null) this.open(words.find(word => this.wordOf(word).entry.start === start));
  }

  #drawn() {
    const bands = relativeEntropies(this.found.words), nodes = [];
    this.found.words.forEach(({text}, index) => {
      const [, before, inner, after] = /^(\s*)(.*?)(\s*)$/su.exec(text), blank = !inner;
      const word = make('span', {text: blank ? text : inner, className: blank ? 'word blank' : 'word', tabIndex: index ? -1 : 0});
      Object.assign(word.dataset, {word: index, fork: bands[index].toFixed(3)});
      if (blank) word.dataset.sign = visibleText(text);
      word.setAttribute('role', 'button');
      word.style.setProperty('--fork', `${Math.round(STRONGEST * bands[index])}%`);
      nodes.push(...(blank ? [word] : [before, word, after].filter(Boolean)));
    });
    return nodes;
  }

  // As many highlights as the slider says: from what is here.
  mark() {
    const most = this.found?.marks.length ?? 0, count = this.count.valueAsNumber;
    this.output.value = most ? count : 0;
    this.of.textContent = most ? `of ${formatNumber(most)}, the most surprising first` : '';
    for (const word of this.shown.querySelectorAll('.word')) word.toggleAttribute('data-marked', this.wordOf(word).rank < count);
  }

  wordOf(node) { return this.found.words[node.dataset.word]; }

  tabulate() {
    const {figures, found} = this;
    if (figures.open && found) figures.querySelector('.wide').replaceChildren(tokenTable(found));
  }

  clear(sentence, state) {
    this.point(null);
    this.requests.drop();
    this.found = null;
    this.shown.replaceChildren();
    this.shown.dataset.state = state;
    this.shown.removeAttribute('data-stale');
    this.legend.hidden = this.figures.hidden = true;
    Object.assign(this.count, {max: 0, disabled: true});
    this.mark();
    this.line.say(sentence, state);
  }

  // What the model thought at a word, while it is pointed at or has the focus.
  point(word) {
    if (word && word === this.#shown) return;
    this.#hide();
    if (!word || !this.found || this.stale) return;
    this.#shown = word;
    const {entry} = this.wordOf(word);
    paintWordDetails(this.about, entry, this.#fits.get(entry.start));
    this.about.showPopover();
    placeBesideWord(this.about, word);
    word.setAttribute('aria-describedby', this.about.id);
    if (entry.alternatives.length && !this.#fits.has(entry.start)) this.#pointing = setTimeout(() => { this.#fitting = this.fit(word); }, POINTS);
  }

  #hide() {
    clearTimeout(this.#pointing);
    this.#shown?.removeAttribute('aria-describedby');
    this.#shown = null;
    this.about.hidePopover();
  }

  #follow() { if (this.#shown) placeBesideWord(this.about, this.#shown); }

  get stale() { return this.shown.hasAttribute('data-stale'); }

  // Which of the alternatives would fit in place.
  async fit(word) {
    const {revision} = this, {entry} = this.wordOf(word);
    const {text, instruction} = this.given();
    const request = {...ASKED, page: this.requests.page, number: 0, revision, text, instruction, start: entry.start};
    const {fits, unknown, sentence} = await withTimeout(this.server.fit(request)).catch(() => ({}));
    if (revision !== this.revision) return;
    if (unknown) this.look();
    if (sentence) this.line.say(sentence, 'error');
    if (!fits) return;
    this.#fits.set(entry.start, fits);
    if (word !== this.#shown) return;
    paintWordDetails(this.about, entry, fits);
    placeBesideWord(this.about, word);
  }

  // Branches in place of a word and all that follows it.
  async open(word) {
    if (!word || !this.found || this.stale) return;
    for (const other of this.shown.querySelectorAll('[aria-current]')) other.removeAttribute('aria-current');
    word.setAttribute('aria-current', 'true');
    this.#stop(word);
    const {start} = this.wordOf(word).entry, opened = this.opened += 1;
    this.tell('expect', {revision: opened});
    clearTimeout(this.#pointing);
    await this.#fitting;   // the meter counts what these branches cost, and nothing else
    if (opened !== this.opened || !this.found || this.stale) return;
    // A server that knows nothing of the text any more reads it first.
    if (this.line.state === 'thinking') this.#opens = start;
    else {
      this.at = start;
      this.requests.ask();
    }
  }

  key(event) {
    const word = event.target.closest('.word');
    if (!word || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === 'Enter' || event.key === ' ') this.open(word);
    else if (event.key === 'Escape') this.#hide();
    else if (MARKS[event.key]) this.#to(word, MARKS[event.key], one => one === word || one.hasAttribute('data-marked'));
    else if (MOVES[event.key]) this.#to(word, this.#turned(MOVES[event.key]));
    else return;
    event.preventDefault();
  }

  // Where the text runs from right to left, what comes next stands to the left.
  #turned(by) { return Number.isFinite(by) && getComputedStyle(this.shown).direction === 'rtl' ? -by : by; }

  #to(word, by, among = () => true) {
    const words = [...this.shown.querySelectorAll('.word')].filter(among);
    const next = words[Math.max(0, Math.min(words.length - 1, words.indexOf(word) + by))];
    this.#stop(next);
    next.focus({preventScroll: true});
    next.scrollIntoView({block: 'nearest'});
  }

  // One word is where Tab leads.
  #stop(word) {
    this.shown.querySelector('[tabindex="0"]')?.setAttribute('tabindex', '-1');
    word.tabIndex = 0;
  }

  tell(name, detail) { this.branches.dispatchEvent(new CustomEvent(name, {detail})); }
}
