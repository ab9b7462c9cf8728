// The line that says how far the reading of a text is, or why there is none.
import * as header from './header.js';
import {formatCount, formatNumber} from '../core/branch_sentences.js';

export class ReadingProgress {
  // `marked` tells its state to styles and tests; `waiting` is said while there is no model.
  constructor(line, {waiting, marked = line}) {
    Object.assign(this, {marked, waiting, sentence: line.querySelector('.sentence'), bar: line.querySelector('progress')});
  }

  get state() { return this.marked.dataset.state; }

  say(sentence, state, share = null) {
    this.marked.dataset.state = state;
    this.sentence.textContent = sentence;
    this.bar.hidden = share === null;
    this.bar.value = share ?? 0;
  }

  progress([read, total]) { this.say(`Reading: ${formatNumber(read)} of ${formatCount(total, 'token')}`, 'thinking', read / total); }

  wait({loading}) {
    if (loading.state === 'error') this.say(loading.sentence, 'error');
    else this.say(this.waiting, 'waiting');
    if (header.loadingState() === 'ready') header.showReload(loading);
  }
}
