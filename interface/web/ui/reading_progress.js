// The line that says how far a text is read, or why it is not.
/** @import {WaitingNews} from '../core/types.d.ts' */
import * as header from './header.js';
import {formatCount, formatNumber} from '../core/figures_and_labels.js';
import {announce} from './announce.js';
import {find} from './elements.js';

/** The progress line of a tab. */
export class ReadingProgress {
  /**
   * @param {HTMLElement} line
   * @param {{waiting: string, announcement: HTMLElement, marked?: HTMLElement}} options `waiting`: the sentence while there is
   *   no model; `announcement`: the live region; `marked`: the element that carries the state as an attribute, the line itself
   *   unless given
   */
  constructor(line, {waiting, announcement, marked = line}) {
    this.announcement = announcement;
    this.marked = marked;
    this.waiting = waiting;
    this.sentence = find(line, '.sentence');
    this.bar = find(line, 'progress', HTMLProgressElement);
  }

  get state() { return this.marked.dataset.state; }

  /**
   * Show a sentence, and announce it unless it only says how far the text is read.
   * @param {string} sentence
   * @param {string | undefined} state
   * @param {number | null} [share] of the bar; null hides it
   */
  show(sentence, state, share = null) {
    if (sentence && state !== 'thinking' && sentence !== this.sentence.textContent) this.announce(sentence);
    this.marked.dataset.state = state;
    this.sentence.textContent = sentence;
    this.bar.hidden = share === null;
    this.bar.value = share ?? 0;
  }

  /** Say a sentence to screen readers, see `announce`. @param {string} sentence @param {{again?: boolean}} [options] */
  announce(sentence, options) { announce(this.announcement, sentence, options); }

  /** @param {[number, number]} reading tokens that are read, of how many */
  progress([read, total]) { this.show(`Reading: ${formatNumber(read)} of ${formatCount(total, 'token')}`, 'thinking', read / total); }

  /** @param {Pick<WaitingNews, 'loading'>} news */
  wait({loading}) {
    if (loading.state === 'error') this.show(loading.sentence, 'error');
    else this.show(this.waiting, 'waiting');
    if (header.loadingState() === 'ready') header.showReload(loading);
  }
}
