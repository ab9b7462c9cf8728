// A button that starts drawing tokens, and stops it while tokens are drawn.
import {formatNumber} from '../../web/core/figures_and_labels.js';
import {setText} from '../../web/ui/elements.js';

const STOP = 'Stop drawing';

export class DrawButton {
  /** Whether tokens are drawn now. */
  running = false;

  /**
   * @param {HTMLElement} button
   * @param {{begin: () => void, stop: () => void}} actions
   */
  constructor(button, {begin, stop}) {
    this.button = button;
    this.name = button.textContent ?? '';
    button.addEventListener('click', () => (this.running ? stop() : begin()));
  }

  /** @param {boolean} running whether tokens are drawn now */
  show(running) {
    this.running = running;
    setText(this.button, running ? STOP : this.name);
  }
}

/** What is announced when draws begin. @param {number} count of tokens */
export const drawsBegin = count => `${formatNumber(count)} tokens are being drawn.`;

/** What is said when draws were stopped. @param {boolean} any whether there are some */
export const stoppedDraws = any => (any ? 'Stopped. The figures are those of the tokens drawn so far.' : 'Stopped.');
