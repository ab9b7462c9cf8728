// Messages between the tabs of this browser on this page: which tab has which document open.
import {randomId} from '../../web/net/requests.js';

const CHANNEL = 'lookahead';
const ANSWER_TIME = 150;   // milliseconds

function openChannel() {
  try {
    return new BroadcastChannel(CHANNEL);
  } catch {
    return null;   // forbidden like storage; then tabs know nothing of each other
  }
}

/** This tab among the others. */
export class OtherTabs {
  #me = randomId();
  #channel = openChannel();
  /** @type {string | null} */
  #open = null;       // the document that is open here
  /** @type {string | null} */
  #claiming = null;   // the one that is being opened here
  #onTaken = () => {};

  /** @param {{onForget: () => void}} options `onForget`: another tab deletes everything */
  constructor({onForget}) {
    this.#channel?.addEventListener('message', ({data}) => {
      if (data?.verb === 'forget') onForget();
      if (data?.verb === 'ask') this.#answer(data);
      if (data?.verb === 'mine' && data.to === this.#me && data.id === this.#claiming) this.#onTaken();
    });
  }

  /**
   * Open a document here. Returns whether another tab has it open already.
   * @param {string} id
   * @returns {Promise<boolean>}
   */
  async claim(id) {
    this.#open = null;
    this.#claiming = id;
    /** @type {boolean} */
    const taken = await new Promise(resolve => {
      this.#onTaken = () => resolve(true);
      this.#channel?.postMessage({verb: 'ask', id, from: this.#me});
      setTimeout(() => resolve(false), this.#channel ? ANSWER_TIME : 0);
    });
    if (this.#claiming === id) this.hold(taken ? null : id);
    return taken;
  }

  /** @param {string | null} id of the document that is open here */
  hold(id) {
    this.#open = id;
    this.#claiming = null;
  }

  forget() { this.#channel?.postMessage({verb: 'forget'}); }

  /**
   * Of two tabs that open one document at the same moment, the one with the smaller id has it.
   * @param {{id: string, from: string}} question
   */
  #answer({id, from}) {
    if (id === this.#open || (id === this.#claiming && this.#me < from)) this.#channel?.postMessage({verb: 'mine', id, to: from});
  }
}
