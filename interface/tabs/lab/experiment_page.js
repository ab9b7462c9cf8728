// A page of the Lab: a form with a prompt and options, which are run on the server, and the result, shown as it grows.
/** @import {BranchRequest, News, Server} from '../../web/core/types.d.ts' */
/** @import {FieldKind, Run} from './run_link.js' */
import {ReadingProgress} from '../../web/ui/reading_progress.js';
import {copyText, find, findAll, make, scrollBehavior} from '../../web/ui/elements.js';
import {followHiddenText} from '../../web/ui/hidden_text.js';
import {keepAcrossReloads} from '../../web/net/tab_storage.js';
import {progressRequests} from '../../web/ui/progress_requests.js';
import {publicAddress} from '../../web/core/public_address.js';
import {partLink, stepLinkingTo} from './lesson_steps.js';
import {runLink, runOf} from './run_link.js';
import {WIDE} from '../../web/ui/window_sizes.js';

const START = 'Press Run, or change the prompt first: the result is shown here.';
const NO_PROMPT = 'Write a prompt: the experiment continues it.';
const WAITING = 'The experiment begins when the model is ready.';
const CHANGED = 'This is the result of the run before: run again for what the form has now.';
const ASK_FOR_ADDRESS = 'For others, ask the person who runs this page for a public address.';
const COPIED = 'The link is copied. It repeats this run.';

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field */

/**
 * The form, the requests, the link and the progress line of an experiment. A subclass shows its result.
 * @template View
 */
export class ExperimentPage {
  revision = 0;   // of the run
  /** @type {View | null} */
  view = null;
  /** @type {Run | null} */
  run = null;     // the one that is shown
  outcome = '';   // what was said when the run ended
  changeSaid = '';   // what was said last when the form changed; empty if it is that of the result

  /**
   * @param {{form: HTMLElement, result: HTMLElement}} elements
   * @param {Server} server
   * @param {string} mark that the page's links begin with: "#lab-cache"
   * @param {Record<string, FieldKind>} kinds of the form's fields, by their names
   */
  constructor({form, result}, server, mark, kinds) {
    this.form = form;
    this.result = result;
    this.mark = mark;
    this.kinds = kinds;
    /** @type {Record<string, Field>} */
    this.fields = Object.fromEntries(Object.keys(kinds).map(name => [name, /** @type {Field} */ (find(form, `[name="${name}"]`))]));
    this.halt = find(form, '.halt');
    this.found = find(result, '.found');
    this.line = new ReadingProgress(find(result, '.says'), {waiting: WAITING, announcement: find(result, '.announcement'), marked: result});
    this.requests = progressRequests(server, this.line, {
      revision: () => this.revision, makeRequest: () => this.#makeRequest(), onNews: news => this.#takeNews(news),
    });
  }

  /** Show a result, or the part of it that is known so far. @param {View} view @param {boolean} settled */
  show(view, settled) { throw new Error(`A subclass shows ${view}, ${settled}.`); }

  /** What is said when the form no longer has the prompt and options of the result that is shown. @returns {string} */
  get changedSentence() { return CHANGED; }

  /** What is said when a run is stopped that has a result so far. @returns {string} */
  get stoppedSentence() { throw new Error('A subclass says it.'); }

  start() {
    followHiddenText(find(this.form, '[name=prompt]', HTMLTextAreaElement));
    find(this.form, '.run').addEventListener('click', () => {
      this.begin();
      this.#showLine();
    });
    this.halt.addEventListener('click', () => this.stop());
    this.form.addEventListener('input', () => this.#formChanged());
    find(this.form, '.link').addEventListener('click', () => this.#copyLink());
    for (const input of this.#numbers) input.addEventListener('keydown', ({key}) => { if (key === 'Enter') this.begin(); });
    keepAcrossReloads(this.mark.slice(1), {holds: () => false, take: () => this.chosen, give: stored => this.fill(stored)});
    this.#showAbout();
    this.line.show(START, 'empty');
    this.line.announce('');   // nothing has happened yet, and a link may run the experiment at once
    const open = () => this.#openLink();
    addEventListener('hashchange', open);
    document.addEventListener('lookahead:address', () => this.#showWayBack());
    open();
  }

  /** Repeat above the result what the page is about: in a low window the form has it below its fields. Style sheets choose which is seen. */
  #showAbout() {
    const copies = findAll(this.form, '.about p').map(({textContent}) => make('p', {text: textContent}));
    find(this.result, '.says').after(make('div', {className: 'about', ariaHidden: 'true'}, ...copies));
    this.form.dataset.fresh = '';   // until the first run
  }

  /** The fields for numbers. @returns {HTMLInputElement[]} */
  get #numbers() { return /** @type {HTMLInputElement[]} */ (Object.values(this.fields).filter(({type}) => type === 'number')); }

  /** The prompt and options in the form. @returns {Run} */
  get chosen() {
    return Object.fromEntries(Object.entries(this.kinds).map(([name, kind]) => {
      const field = this.fields[name];
      return [name, kind === 'switch' ? /** @type {HTMLInputElement} */ (field).checked : kind === 'text' ? field.value : Number(field.value)];
    }));
  }

  /** @param {Run} run */
  fill(run) {
    for (const [name, value] of Object.entries(run)) {
      const field = this.fields[name];
      if (!field) continue;
      if (typeof value === 'boolean') /** @type {HTMLInputElement} */ (field).checked = value;
      else field.value = String(value);
    }
  }

  /** Open the run of the page's address: fill in the form, and run it if the link holds a prompt. */
  #openLink() {
    const run = runOf(location.hash, this.mark, this.kinds), wayBack = this.#showWayBack();
    if (!run) return;
    this.fill(run);
    requestAnimationFrame(() => wayBack.focus({preventScroll: true}));   // the link that was followed is hidden now
    scrollTo(0, 0);   // a link may be far down on the page that it is on
    if (!run.prompt) return;
    this.begin();
    if (!matchMedia(WIDE).matches) this.#showLine();
  }

  /** Show a link back to the step of the lesson if the page's address is that of the step's link, and hide it otherwise. */
  #showWayBack() {
    const step = stepLinkingTo(location.hash, this.mark), link = find(this.form, '.to-lesson', HTMLAnchorElement);
    link.hidden = !step;
    link.href = partLink(step);
    link.textContent = `‹ Back to step ${step} of the lesson`;
    return link;
  }

  /** Why the form cannot be run; empty if it can. */
  get complaint() {
    if (!this.fields.prompt.value) return NO_PROMPT;
    const wrong = this.#numbers.find(input => !input.validity.valid || !input.value);
    if (!wrong) return '';
    const name = wrong.labels?.[0].querySelector('span')?.textContent;
    return `${name} is a ${wrong.step && wrong.step !== '1' ? 'number' : 'whole number'} from ${wrong.min} to ${wrong.max}.`;
  }

  /** Run what the form holds, or say why that cannot be. */
  begin() {
    const {complaint} = this;
    delete this.form.dataset.fresh;
    if (complaint) {
      this.line.show(complaint, 'error');
      return;
    }
    this.line.announce('The experiment runs.');   // the same result is announced again after it
    this.revision += 1;
    this.run = this.chosen;
    this.view = null;
    this.#showRunning(true);
    this.line.show('Starting …', 'thinking', 0);
    this.requests.schedule();
  }

  /** Scroll to the result of a run if it stands below the form, as on a phone, and to the line above it if that is outside of the window. */
  #showLine() {
    const {top, bottom} = this.line.sentence.getBoundingClientRect();
    const isBelow = this.result.getBoundingClientRect().top > this.form.getBoundingClientRect().bottom;
    if (top < 0 || bottom > innerHeight || (isBelow && this.line.state !== 'error')) this.result.scrollIntoView({block: 'start', behavior: scrollBehavior()});
  }

  /** Say that the result is of another run than the form's, or that it is of the form's again. */
  #formChanged() {
    if (!this.view || !this.run || this.requests.active) return;
    const changed = runLink(this.mark, this.chosen) !== runLink(this.mark, this.run);
    this.changeSaid = changed ? this.changedSentence : '';
    this.line.show(this.changeSaid || this.outcome, 'settled');
  }

  /** Say again what has changed, if the line still says it: a part of the page is up to date now. */
  changeUpdated() {
    if (this.changeSaid && this.line.sentence.textContent === this.changeSaid) this.#formChanged();
  }

  stop() {
    if (!this.requests.active) return;
    this.requests.cancel();
    this.revision += 1;
    this.#showRunning(false);
    this.outcome = this.view ? this.stoppedSentence : 'Stopped.';
    this.line.show(this.outcome, 'settled');
    this.stopped();
  }

  /** Called when a run has been stopped. */
  stopped() {}

  async #copyLink() {
    const {address: page, sentence, local} = publicAddress(location), address = page + runLink(this.mark, this.chosen);
    const copied = await copyText(address), said = copied ? COPIED : `Copy this link: ${address}`;
    this.line.announce('');
    this.line.show([said, sentence, local && ASK_FOR_ADDRESS].filter(Boolean).join(' '), this.line.state);
    // On a phone the button stays in sight, and the line may not be.
    this.line.sentence.scrollIntoView({block: 'nearest', behavior: scrollBehavior()});
  }

  /** @param {boolean} running */
  #showRunning(running) { this.halt.setAttribute('aria-disabled', String(!running)); }

  /** @returns {BranchRequest | null} */
  #makeRequest() {
    const {revision, run} = this;
    if (!run) return null;
    const {prompt, ...options} = run;
    return {k: 1, depth: 1, revision, text: String(prompt), experiment: this.experimentOf(options)};
  }

  /** The field `experiment` of a request. @param {Run} options @returns {Run} */
  experimentOf(options) { return options; }

  /** @param {News} news */
  #takeNews(news) {
    if (news.state === 'error') {
      this.#showRunning(false);
      this.outcome = news.sentence ?? '';
      this.line.show(this.outcome, 'error');
      return;
    }
    if (news.view) {
      this.view = /** @type {any} */ (news.view);
      this.show(/** @type {any} */ (news.view), news.state === 'settled');
    }
    if (news.state !== 'settled') return;
    this.#showRunning(false);
    this.outcome = this.line.sentence.textContent ?? '';
  }
}

/**
 * The elements of a page of the Lab.
 * @param {string} name of the page: "cache"
 */
export const elementsOf = name => ({form: `#${name}-form`, result: `#lab-${name}`});
