// A source that is too long for the model: offers to shorten it, and shows what was left out. The person's own source stays
// as it is, and is what the text box holds again at any time.
/** @import {News, Server} from '../../web/core/types.d.ts' */
/** @import {ShortSource, TooLongDetails} from './shortening_choices.js' */
import {RATIOS, offerSentence, painted, ratioLabel, ratiosThatFit, readingOf, saysTooLong, shortSentence, shortSourceOf} from './shortening_choices.js';
import {dispatch} from '../../web/ui/events.js';
import {find, make, setText} from '../../web/ui/elements.js';
import {withTimeout} from '../../web/net/requests.js';

const BUSY = 'The model reads the source to shorten it …';
const SILENT = 'The server does not answer. Your source is safe here; try again.';
const SHORTEN_TIMEOUT = 600000;   // milliseconds; a long source takes minutes to read, and others may be served before
const POLL_MS = 300;   // between two questions how far the source is read
const ENDS = ['settled', 'empty', 'error'];   // states of news after which an earlier error no longer counts

/** Event: `change` when another text is to be sent in place of the source. */
export class ShortenedSource extends EventTarget {
  /** @type {ShortSource | null} */
  #short = null;
  /** @type {TooLongDetails | null} the error that the source has got */
  #tooLong = null;
  #busy = 0;    // number of the running call; 0 if there is none
  #calls = 0;
  #failure = '';

  /**
   * @param {HTMLElement} element of instruction and source
   * @param {{server: Server, page: () => string}} options `page`: the page's id
   */
  constructor(element, {server, page}) {
    super();
    this.server = server;
    this.page = page;
    this.box = find(element, '#rewrite-source', HTMLTextAreaElement);
    this.element = find(element, '.shortening');
    this.sentence = find(element, '.shortening .sentence');
    this.marked = find(element, '.marked-source');
    this.stop = find(element, '.shortening .halt');
    this.bar = find(element, '.shortening progress', HTMLProgressElement);
    this.reading = find(element, '.shortening .reading');
    this.whole = find(element, '.shortening .whole');
    this.offers = RATIOS.map(ratio => make('button', {text: ratioLabel(ratio), className: 'chief', onclick: () => this.#shorten(ratio)}));
    this.stop.before(...this.offers);
    this.stop.addEventListener('click', () => this.#stop());
    this.whole.addEventListener('click', () => this.#restore());
    this.box.addEventListener('input', () => this.#forget());
  }

  /** What the model shall read in place of the source. */
  get text() { return this.#short ? this.#short.text : this.box.value; }

  /** @returns {ShortSource | null} to be stored */
  state() { return this.#short; }

  /** @param {unknown} stored what `state` has returned, after the source was restored */
  load(stored) {
    this.#short = shortSourceOf(stored, this.box.value);
    this.#show();
  }

  /**
   * Take news of a request: offer to shorten a source that is too long.
   * @param {News} news
   */
  take(news) {
    const tooLong = saysTooLong(news);
    if (this.#busy || !(tooLong || ENDS.includes(news.state ?? ''))) return;
    this.#tooLong = tooLong ? news.details ?? {} : null;
    this.#show();
  }

  /** The source is being edited: nothing of the old one counts. */
  #forget() {
    if (this.#busy) this.server.stop_shortening({page: this.page()}).catch(() => {});
    [this.#short, this.#tooLong, this.#busy, this.#failure] = [null, null, 0, ''];
    this.#show();
  }

  /** @param {number} ratio */
  async #shorten(ratio) {
    const source = this.box.value, call = this.#busy = this.#calls += 1;
    this.#failure = '';
    this.#show();
    this.stop.focus();
    this.#follow(call);
    /** @type {any} */
    const answer = await withTimeout(this.server.shorten({page: this.page(), source, ratio}), SHORTEN_TIMEOUT).catch(() => ({sentence: SILENT}));
    if (this.#busy !== call) return;
    const short = shortSourceOf({...answer, ratio}, source), focused = document.activeElement === this.stop;
    this.#busy = 0;
    if (short) [this.#short, this.#tooLong] = [short, null];
    else this.#failure = answer?.sentence ?? SILENT;
    this.#show();
    if (focused) (short ? this.whole : this.offers.find(button => !button.hidden))?.focus();
    if (short) dispatch(this, 'change');
  }

  /**
   * Show how far the source is read, until the call ends.
   * @param {number} call
   */
  async #follow(call) {
    while (this.#busy === call) {
      await new Promise(resolve => { setTimeout(resolve, POLL_MS); });
      const reading = this.#busy === call ? readingOf(await withTimeout(this.server.shortening_progress({page: this.page()})).catch(() => null)) : null;
      if (this.#busy === call && reading) this.#showReading(reading);
    }
  }

  /** @param {ReturnType<typeof readingOf>} reading null hides it */
  #showReading(reading) {
    this.bar.hidden = this.reading.hidden = !reading;
    this.bar.value = reading?.share ?? 0;
    setText(this.reading, reading?.sentence ?? '');
  }

  #stop() {
    this.#busy = 0;
    this.server.stop_shortening({page: this.page()}).catch(() => {});
    this.#show();
    this.offers.find(button => !button.hidden)?.focus();
  }

  #restore() {
    this.#forget();
    this.box.focus();
    dispatch(this, 'change');
  }

  #show() {
    const short = this.#short, offered = this.#tooLong && !this.#busy ? ratiosThatFit(this.#tooLong, short?.ratio) : [];
    this.offers.forEach((button, index) => { button.hidden = !offered.includes(RATIOS[index]); });
    this.stop.hidden = !this.#busy;
    this.#showReading(null);
    this.whole.hidden = !short || Boolean(this.#busy);
    setText(this.sentence, this.#sentence(offered));
    this.element.classList.toggle('said', Boolean(this.sentence.textContent));
    this.box.hidden = Boolean(short);
    this.marked.hidden = !short;
    this.marked.replaceChildren(...painted(short?.parts ?? []).map(([text, struck]) => (struck ? make('del', {text}) : document.createTextNode(text))));
  }

  /** @param {number[]} offered */
  #sentence(offered) {
    if (this.#busy) return BUSY;
    if (this.#failure) return this.#failure;
    if (this.#tooLong) return offerSentence(this.#tooLong, offered);
    return this.#short ? shortSentence(this.#short) : '';
  }
}
