// Asking the server: one request at a time counts, the newest; its news are fetched as they come.
const GAP = 40;                                // milliseconds between two requests while somebody types
const LONG = 20000, LONG_GAP = 250;            // a long text is sent less often
const AGAIN = [500, 1000, 2000, 4000, 8000];   // milliseconds until the server is tried again, half as long or longer by chance
const LOADS = 1000;                            // milliseconds until a server without its model is asked again
const PATIENCE = 45000;                        // milliseconds until an answer is given up; a server with nothing new says so after 20 s
const SILENT = 'The server does not answer. Your text is safe here; trying again …';

const secret = () => [...crypto.getRandomValues(new Uint8Array(16))].map(byte => byte.toString(16).padStart(2, '0')).join('');

// The same promise, which fails where it is not kept in time.
export function withTimeout(promise, patience = PATIENCE) {
  let timer = 0;
  const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error('No answer came in time.')), patience); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// `given()` tells what to ask when the request leaves; `heard(news, request)` gets what comes; `lost(sentence)` is told
// when the server does not answer, or has no room, `unknown()` when it has forgotten this page. Where there is nothing to
// ask now, `given()` gives null, and whoever has held it back asks again.
export class ServerRequests {
  #number = 0;
  #sent = 0;
  #timer = 0;
  #failures = 0;   // attempts in a row that came to nothing
  #settled = 0;    // the newest request that has all that it asked for

  constructor({server, given, heard, lost, unknown}) {
    Object.assign(this, {server, given, heard, lost, unknown, page: secret(), going: false});
  }

  // Ask soon, for what there is then. Whatever was asked before is not waited for any more.
  ask({length = 0} = {}) {
    clearTimeout(this.#timer);
    this.#number += 1;
    this.going = true;
    const gap = length > LONG ? LONG_GAP : GAP;
    this.#timer = setTimeout(() => this.#send(), Math.max(0, this.#sent + gap - performance.now()));
  }

  // Nothing of what was asked is wanted any more.
  drop() {
    clearTimeout(this.#timer);
    if (this.going) this.server.stop({page: this.page, number: this.#number}).catch(() => {});
    this.#number += 1;
    this.going = false;
  }

  async tree() { return this.server.tree({page: this.page}); }

  async #send() {
    const number = this.#number, given = this.given();
    if (!given) return;
    const request = {...given, page: this.page, number};
    this.#sent = performance.now();
    try {
      let news = await withTimeout(this.server.ask(request));
      while (this.#hear(news, request)) {
        news = await withTimeout(this.server.more({page: this.page, number, seen: news.seen}));
      }
    } catch {
      this.#retry(number, SILENT);
    }
  }

  // Take news, if they are of the newest request; whether more may come.
  #hear(news, request) {
    const {number} = request;
    if (number !== this.#number) return false;
    if (news.superseded || news.state === 'full') return this.#retry(number, news.sentence ?? SILENT);
    if (news.unknown) return this.#forgotten(number);
    if (news.state === 'settled') this.#settled = number;
    if (news.state !== 'thinking') this.#failures = 0;
    if (news.over) this.going = false;
    this.heard(news, request);
    if (news.state === 'waiting' && news.loading.state !== 'error') this.#later(LOADS, number);
    return !news.over && number === this.#number;
  }

  // The server knows nothing of this request any more. What is settled needs nothing further of it.
  #forgotten(number) {
    this.unknown();
    if (number === this.#settled) this.going = false;
    else this.#again(number);
    return false;
  }

  #retry(number, sentence) {
    if (number !== this.#number) return false;
    this.lost(sentence);
    this.#again(number);
    return false;
  }

  // Ask anew after a while, longer each time: with many pages at once, each at a moment of its own.
  #again(number) {
    const wait = AGAIN[Math.min(this.#failures, AGAIN.length - 1)];
    this.#failures += 1;
    this.#later(wait * (0.5 + Math.random()), number);
  }

  #later(wait, number) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => { if (number === this.#number) this.ask(); }, wait);
  }
}
