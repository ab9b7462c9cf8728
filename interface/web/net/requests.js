// Requests to the server. Only the newest one counts; its news are fetched as they come.
/** @import {BranchRequest, GuessAnswer, News, SentRequest, Server} from '../core/types.d.ts' */
import {isOutdated, isSignedOut, sayOutdated} from './page_version.js';
import {visitorHeaders} from './visitor_headers.js';

const GAP = 40;                                  // milliseconds between two requests while somebody types
const LONG = 20000, LONG_GAP = 250;              // characters of a long text, which is sent less often, and its gap
const RETRIES = [500, 1000, 2000, 4000, 8000];   // milliseconds until a failed request is repeated, times 0.5 to 1.5
const LOADING_GAP = 1000;                        // milliseconds until a server without its model is asked again
const TIMEOUT = 45000;                           // milliseconds; a server without news answers after 20 s
const REFUSAL_SPREAD = 0.5;                      // of the time that a refused page waits, the most that chance adds
const GOES_ON = 'The page then goes on by itself.';
const SILENT = 'The server does not answer. Your text is safe here; trying again …';
const SIGNED_OUT = 'You are no longer signed in. Reload the page and sign in; your text is kept.';

/** A random id of a page, a document or a tab of the browser. */
export const randomId = () => [...crypto.getRandomValues(new Uint8Array(16))].map(byte => byte.toString(16).padStart(2, '0')).join('');

/**
 * The same promise, rejected if it takes longer than so many milliseconds.
 * @template T
 * @param {Promise<T>} promise
 * @param {number} [milliseconds]
 * @returns {Promise<T>}
 */
export function withTimeout(promise, milliseconds = TIMEOUT) {
  /** @type {ReturnType<typeof setTimeout>} */
  let timer;
  const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error('No answer came in time.')), milliseconds); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/**
 * @typedef {object} RequestHandlers
 * @property {Server} server
 * @property {() => BranchRequest | null} makeRequest called when a request leaves; null if nothing is to be asked now,
 *   and then whoever held it back schedules the next one
 * @property {(news: News, request: SentRequest) => void} onNews
 * @property {(sentence: string) => void} onFailure called when the server does not answer, is full, or refuses a request
 * @property {() => void} onForgotten called when the server no longer knows this page
 * @property {() => Promise<boolean>} [signedOut] whether a call failed because the server does not know the sign-in
 * @property {() => Promise<boolean>} [outdated] whether the server serves another version of the page
 * @property {() => void} [onOutdated] called when it does, after a failure or a restart of the server
 */

/** One page's requests. `active` is true while news of the newest one may come. */
export class ServerRequests {
  #number = 0;
  #sent = 0;       // when the last request left
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #failures = 0;   // failed attempts in a row
  #lost = false;   // whether the server has not answered since its version was checked
  #settled = 0;    // the newest request that was answered completely
  #refusal = {sentence: '', until: 0};   // the last one, and when the server takes requests again
  page = randomId();
  active = false;

  /** @param {RequestHandlers} handlers */
  constructor({server, makeRequest, onNews, onFailure, onForgotten, signedOut = isSignedOut, outdated = isOutdated, onOutdated = sayOutdated}) {
    this.server = server;
    this.makeRequest = makeRequest;
    this.onNews = onNews;
    this.onFailure = onFailure;
    this.onForgotten = onForgotten;
    this.signedOut = signedOut;
    this.outdated = outdated;
    this.onOutdated = onOutdated;
  }

  /**
   * Send a request soon; earlier ones no longer count. After a refusal it leaves when the server takes requests again.
   * @param {{length?: number}} [options] `length`: characters of the text
   */
  schedule({length = 0} = {}) {
    clearTimeout(this.#timer);
    this.#number += 1;
    this.active = true;
    const gap = length > LONG ? LONG_GAP : GAP;
    const {sentence, until} = this.#refusal, now = performance.now();
    if (now < until) this.onFailure(sentence);
    this.#timer = setTimeout(() => this.#send(), Math.max(0, Math.max(this.#sent + gap, until) - now));
  }

  /** Stop the newest request, on the server too. */
  cancel() {
    clearTimeout(this.#timer);
    if (this.active) this.server.stop({page: this.page, number: this.#number}).catch(() => {});
    this.#number += 1;
    this.active = false;
  }

  /** The tree that the server holds for this page; null if there is none, or if the server answers with a sentence. */
  async tree() {
    const tree = await this.server.tree({page: this.page});
    return tree && 'sentence' in tree ? null : tree;
  }

  /**
   * The odds of a guessed next word; `unknown` if there is nothing to continue.
   * @param {string} guess
   * @param {Partial<BranchRequest>} [more] fields that differ from those of a request
   * @returns {Promise<GuessAnswer>}
   */
  async guess(guess, more = {}) {
    const fields = this.makeRequest();
    if (!fields) return {unknown: true};
    return withTimeout(this.server.guess({...fields, ...more, page: this.page, number: this.#number, guess}));
  }

  async #send() {
    // An older request may have been refused after this one was scheduled.
    const {sentence, until} = this.#refusal, rest = until - performance.now();
    if (rest > 0) {
      this.onFailure(sentence);
      this.#timer = setTimeout(() => this.#send(), rest);
      return;
    }
    const number = this.#number, fields = this.makeRequest();
    if (!fields) return;
    this.#sent = performance.now();
    try {
      const headers = visitorHeaders(), visitor = headers && await headers;
      const request = {...fields, page: this.page, number, ...(visitor && {visitor})};
      let news = await this.#call(number, () => this.server.ask(request));
      while (this.#take(news, request)) {
        const {seen} = news;
        news = await this.#call(number, () => this.server.more({page: this.page, number, seen}));
      }
    } catch {
      if (number === this.#number) this.#checkVersion();
      this.#lost = true;
      this.#fail(number, await this.signedOut() ? SIGNED_OUT : SILENT);
    }
  }

  /**
   * Call the server for a request. If it refuses the call, report that, wait as long as it says, and call again while the
   * request is the newest one. Rejects if no answer comes in time. After the whole answer, when only news of branches ahead
   * may come, a refusal is not reported: nobody waits for them.
   * @param {number} number of the request
   * @param {() => Promise<News>} call
   */
  async #call(number, call) {
    for (;;) {
      const news = await withTimeout(call());
      if (!news.retry_after) return news;
      const wait = 1000 * news.retry_after * (1 + REFUSAL_SPREAD * Math.random());
      // A refusal of an older request holds back the newest one too.
      this.#refusal = {sentence: `${news.sentence} ${GOES_ON}`, until: performance.now() + wait};
      if (number !== this.#number) return news;
      if (number !== this.#settled) this.onFailure(this.#refusal.sentence);
      await new Promise(resolve => { setTimeout(resolve, wait); });
      if (number !== this.#number) return news;
    }
  }

  /** The server may have been started again, with another version of the page. */
  async #checkVersion() {
    this.#lost = false;
    if (await this.outdated()) this.onOutdated();
  }

  /**
   * Take news of the newest request. Returns whether more may come.
   * @param {News} news
   * @param {SentRequest} request
   */
  #take(news, request) {
    const {number} = request;
    if (number !== this.#number) return false;
    if (news.superseded || news.state === 'full') return this.#fail(number, news.sentence ?? SILENT, news.again_after);
    if (news.unknown) return this.#forget(number);
    if (news.state === 'settled') this.#settled = number;
    if (this.#lost) this.#checkVersion();
    if (news.state !== 'thinking') this.#failures = 0;
    if (news.over) this.active = false;
    this.onNews(news, request);
    if (news.state === 'waiting' && news.loading?.state !== 'error') this.#later(LOADING_GAP, number);
    return !news.over && number === this.#number;
  }

  /**
   * The server does not know this request: repeat it, unless it was answered completely.
   * @param {number} number
   */
  #forget(number) {
    this.onForgotten();
    this.#checkVersion();
    if (number === this.#settled) this.active = false;
    else this.#retry(number);
    return false;
  }

  /** @param {number} number @param {string} sentence @param {number} [seconds] before the request is repeated, at least */
  #fail(number, sentence, seconds) {
    if (number !== this.#number) return false;
    this.onFailure(sentence);
    this.#retry(number, seconds);
    return false;
  }

  /**
   * Repeat a request after a while that grows with each failure. Its random part keeps many pages apart.
   * @param {number} number
   * @param {number} [seconds] that it lasts at least
   */
  #retry(number, seconds = 0) {
    const wait = RETRIES[Math.min(this.#failures, RETRIES.length - 1)] * (0.5 + Math.random());
    this.#failures += 1;
    this.#later(Math.max(wait, 1000 * seconds * (1 + REFUSAL_SPREAD * Math.random())), number);
  }

  /** @param {number} wait milliseconds @param {number} number */
  #later(wait, number) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => { if (number === this.#number) this.schedule(); }, wait);
  }
}
