// Asking the server: one request at a time counts, the newest; its news are fetched as they come.
const GAP = 40;                                // milliseconds between two requests while somebody types
const LONG = 20000, LONG_GAP = 250;            // a long text is sent less often
const AGAIN = [500, 1000, 2000, 4000, 8000];   // milliseconds until the server is tried again
const LOADS = 1000;                            // milliseconds until a server without its model is asked again
const SILENT = 'The server does not answer. Your text is safe here; trying again …';

const secret = () => [...crypto.getRandomValues(new Uint8Array(16))].map(byte => byte.toString(16).padStart(2, '0')).join('');

// `given()` tells what to ask when the request leaves; `heard(news, request)` gets what comes; `lost(sentence)` is told
// when the server does not answer, `unknown()` when it has forgotten this page. Where there is nothing to ask now, `given()`
// gives null, and whoever has held it back asks again.
export class Requests {
  #number = 0;
  #sent = 0;
  #timer = 0;
  #failures = 0;

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
      let news = await this.server.ask(request);
      while (this.#hear(news, request)) {
        news = await this.server.more({page: this.page, number, seen: news.seen});
      }
    } catch {
      this.#retry(number);
    }
  }

  // Take news, if they are of the newest request; whether more may come.
  #hear(news, request) {
    this.#failures = 0;
    if (request.number !== this.#number || news.superseded) return false;
    if (news.unknown) {
      this.unknown();
      this.ask();
      return false;
    }
    if (news.over) this.going = false;
    this.heard(news, request);
    if (news.state === 'waiting' && news.loading.state !== 'error') this.#later(LOADS, request.number);
    return !news.over && request.number === this.#number;
  }

  #retry(number) {
    if (number !== this.#number) return;
    const wait = AGAIN[Math.min(this.#failures, AGAIN.length - 1)];
    this.#failures += 1;
    this.lost(SILENT);
    this.#later(wait, number);
  }

  #later(wait, number) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => { if (number === this.#number) this.ask(); }, wait);
  }
}
