// The other tabs of this browser on this page: who has which document open.
const CHANNEL = 'lookahead';
const WAIT = 150;   // milliseconds

export const newId = () => [...crypto.getRandomValues(new Uint8Array(12))].map(byte => byte.toString(16).padStart(2, '0')).join('');

function channel() {
  try {
    return new BroadcastChannel(CHANNEL);
  } catch {
    return null;   // forbidden as storage is; then tabs know nothing of each other
  }
}

export class OtherTabs {
  #me = newId();
  #channel = channel();
  #open = null;      // the document that is open here
  #asking = null;    // the one that is being opened here
  #answered = () => {};

  constructor({onForget}) {
    this.#channel?.addEventListener('message', ({data}) => {
      if (data?.verb === 'forget') onForget();
      if (data?.verb === 'ask') this.#answer(data);
      if (data?.verb === 'mine' && data.to === this.#me && data.id === this.#asking) this.#answered();
    });
  }

  // Open this one here from now on; whether another tab has it already.
  async claim(id) {
    this.#open = null;
    this.#asking = id;
    const taken = await new Promise(resolve => {
      this.#answered = () => resolve(true);
      this.#channel?.postMessage({verb: 'ask', id, from: this.#me});
      setTimeout(() => resolve(false), this.#channel ? WAIT : 0);
    });
    if (this.#asking === id) this.hold(taken ? null : id);
    return taken;
  }

  hold(id) {
    this.#open = id;
    this.#asking = null;
  }

  forget() { this.#channel?.postMessage({verb: 'forget'}); }

  // Of two tabs that open one document in the same moment, the one with the smaller name has it.
  #answer({id, from}) {
    if (id === this.#open || (id === this.#asking && this.#me < from)) this.#channel.postMessage({verb: 'mine', id, to: from});
  }
}
