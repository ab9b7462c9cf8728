// The controls of passes that are shown one after the other: a slider, the pass before and the next one, Play and Pause.
import {find} from '../../web/ui/elements.js';
import {spokenSentence} from '../../web/core/figures_and_labels.js';

const BEAT = 1500;   // milliseconds of a pass while the passes are played

/** Which pass is shown, from 1, and how many there are. */
export class PassPlayer {
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #playing;
  #steps = false;   // whether a button shows another pass now

  /**
   * @param {HTMLElement} element that has the controls of `passes_bar.html`
   * @param {{onPass: () => void, announce: (sentence: string, options: {again: boolean}) => void}} calls `onPass` is called when
   *   another pass is to be shown; `again`: whether a sentence is announced also if it is the last one
   */
  constructor(element, {onPass, announce}) {
    this.onPass = onPass;
    this.announce = announce;
    this.sentence = find(element, '.pass');
    this.slider = find(element, '.passes input', HTMLInputElement);
    this.output = find(element, '.passes output');
    this.player = find(element, '.play');
    this.slider.addEventListener('input', () => this.show(this.pass));
    this.back = find(element, '.back');
    this.next = find(element, '.next');
    this.back.addEventListener('click', () => this.#stepOrSay(-1));
    this.next.addEventListener('click', () => this.#stepOrSay(1));
    this.player.addEventListener('click', () => (this.#playing === undefined ? this.#play() : this.pause()));
  }

  /** The pass that is shown, from 1. */
  get pass() { return Number(this.slider.value); }

  get passes() { return Number(this.slider.max); }

  /** Whether the passes are played. */
  get isPlaying() { return this.#playing !== undefined; }

  /**
   * Set the number of passes of a result. The newest one is shown, unless an earlier one was chosen meanwhile or they are played.
   * @param {number} passes
   * @param {boolean} isNew whether these are the first passes of the result
   */
  setPasses(passes, isNew) {
    const follows = isNew || (!this.isPlaying && this.pass >= this.passes);
    this.slider.max = String(Math.max(1, passes));
    this.show(follows ? passes : this.pass);
  }

  /** Show a pass, or the first or last one if there is none of this number. @param {number} pass */
  show(pass) {
    this.slider.value = String(Math.max(1, Math.min(this.passes, pass)));
    this.output.textContent = `${this.pass} of ${this.passes}`;
    this.back.ariaDisabled = String(this.pass === 1);
    this.next.ariaDisabled = String(this.pass === this.passes);
    this.onPass();
  }

  /** Show the pass before or the next one; announce it, or that there is none. @param {-1 | 1} by */
  #stepOrSay(by) {
    if (this.pass !== (by < 0 ? 1 : this.passes)) this.#step(by);
    else this.announce(`This is the ${by < 0 ? 'first' : 'last'} pass.`, {again: true});
  }

  /** Show another pass by a button, and announce it. @param {number} by */
  #step(by) {
    this.#steps = true;
    this.show(this.pass + by);
    this.#steps = false;
  }

  /** Show the passes one after the other: from the next one on, or from the first if the last one is shown. */
  #play() {
    this.player.textContent = 'Pause';
    this.#step(this.pass >= this.passes ? 1 - this.pass : 1);
    this.#playing = setInterval(() => {
      if (this.pass >= this.passes) this.pause();
      else this.show(this.pass + 1);
    }, BEAT);
  }

  /** Say what the pass is: on the page, as the slider's value, and aloud while the passes are played or a button shows it. @param {string} sentence */
  describe(sentence) {
    this.sentence.textContent = sentence;
    const spoken = spokenSentence(sentence);
    this.slider.setAttribute('aria-valuetext', spoken);
    if (this.isPlaying || this.#steps) this.announce(spoken, {again: this.#steps});
  }

  pause() {
    clearInterval(this.#playing);
    this.#playing = undefined;
    this.player.textContent = 'Play';
  }
}
