// The Lab's lesson: its parts, one of which is shown, and what a person has answered in them. Nothing is sent to the server.
/** @import {Progress} from './lesson_progress.js' */
import {NONE, noProgress, progressFrom, scoreSentence, withAnswer} from './lesson_progress.js';
import {PARTS, STEPS, partLink, partOf} from './lesson_steps.js';
import {announce} from '../../web/ui/announce.js';
import {find, findAll, make, setAttribute, setText} from '../../web/ui/elements.js';
import {keepAcrossReloads} from '../../web/net/tab_storage.js';
import {pageElements} from '../../web/ui/page_elements.js';
import {replaceFragment} from '../../web/ui/tab_links.js';
import {questionnaireElements, stepElements, teacherElements, titleOf} from './lesson_elements.js';

const AGAIN = 'Start again', UNDO = 'Bring my answers back';
const CLEARED = 'All answers are cleared.', BACK = 'Your answers are back.';
const TURN = 50;          // milliseconds between two looks whether the lesson's tab is open
const PATIENCE = 5000;    // milliseconds until it is, on a slow computer

export async function start() {
  const {outline, lesson} = await pageElements({outline: '#lesson-outline', lesson: '#lab-lesson'});
  new LessonPage(outline, lesson).start();
}

/** The parts of the lesson, which are all in the page for printing; the open one is shown. */
class LessonPage {
  /** @type {Progress} */
  progress = noProgress();
  /** @type {Progress | null} */
  cleared = null;    // the progress before "Start again", until something is answered
  /** @type {string | null} */
  followed = null;   // the part whose experiment was opened last

  /** @param {HTMLElement} outline @param {HTMLElement} lesson */
  constructor(outline, lesson) {
    this.outline = outline;
    this.lesson = lesson;
    this.again = find(outline, '.again');
    this.announcement = find(lesson, '.announcement');
    /** @type {Record<string, HTMLElement>} */
    this.parts = Object.fromEntries(PARTS.map(part => [part, make('section', {className: `part ${part}`, ariaLabel: titleOf(part)})]));
    for (const [part, section] of Object.entries(this.parts)) section.dataset.part = part;
    find(lesson, '.parts').replaceChildren(...Object.values(this.parts));
    find(outline, 'ol', HTMLOListElement).replaceChildren(...PARTS.map(part => {
      const number = Number(part) > 0 ? part : '', name = make('span', {className: 'name', text: titleOf(part)});
      const link = make('a', {className: number && 'numbered', href: partLink(part)}, make('span', {className: 'number', text: number}), ' ', name, make('span', {className: 'mark'}));
      link.dataset.part = part;
      return make('li', {}, link);
    }));
  }

  start() {
    this.again.addEventListener('click', () => this.#startAgain());
    keepAcrossReloads('lab-lesson', {holds: () => false, take: () => this.progress, give: stored => { this.progress = progressFrom(stored); }});
    this.#renderAll();
    this.#open(partOf(location.hash) || this.progress.part);
    addEventListener('hashchange', () => this.#followAddress());
  }

  get #visible() { return this.lesson.checkVisibility(); }

  /** Open the part that the page's new address names, and focus its heading, or the link that led away from it. */
  async #followAddress() {
    const part = partOf(location.hash);
    if (part === null) return;
    const back = this.followed !== null && this.followed === (part || this.progress.part);
    this.followed = null;
    this.#open(part || this.progress.part);
    const since = performance.now();
    while (!this.#visible && performance.now() - since < PATIENCE) await new Promise(resolve => { setTimeout(resolve, TURN); });
    this.#focus(back ? '.open' : 'h3');
  }

  /** Focus an element of the open part. @param {string} selector */
  #focus(selector) { find(this.parts[this.progress.part], selector).focus(); }

  /** Show one part. @param {string} part */
  #open(part) {
    this.lesson.style.minHeight = '';
    this.progress.part = part;
    this.lesson.dataset.part = part;
    for (const [name, section] of Object.entries(this.parts)) section.classList.toggle('current', name === part);
    for (const link of findAll(this.outline, 'a')) setAttribute(link, 'aria-current', link.dataset.part === part ? 'step' : null);
  }

  #renderAll() {
    for (const part of PARTS) this.#render(part);
    this.#showScore();
  }

  /** Make the content of a part anew. @param {string} part */
  #render(part) {
    const {progress} = this;
    if (part === 'teacher') this.parts[part].replaceChildren(...teacherElements(() => window.print()));
    else if (part === 'before' || part === 'after') {
      this.parts[part].replaceChildren(...questionnaireElements(part, progress, {
        choose: (index, choice) => { progress[part].choices[index] = choice; this.#forgetCleared(); }, handIn: () => this.#handIn(part),
      }));
    } else {
      const index = Number(part) - 1;
      this.parts[part].replaceChildren(...stepElements(index, progress, {answer: choice => this.#answer(index, choice), follow: () => this.#leave(part)}));
    }
  }

  /** @param {number} index of the step @param {number} choice */
  #answer(index, choice) {
    this.#forgetCleared();
    this.progress = withAnswer(this.progress, index, choice);
    this.#renderAll();
    this.#focus('.verdict');
    this.#announce(scoreSentence(this.progress));
  }

  /** @param {'before' | 'after'} when */
  #handIn(when) {
    this.progress[when].done = true;
    this.#renderAll();
    this.#focus(when === 'after' ? '.verdict' : '.says');
  }

  /** The experiment of a part is opened: the browser's Back leads to this part, also if the tab was opened by a click. @param {string} part */
  #leave(part) {
    this.followed = part;
    replaceFragment(partLink(part));
  }

  /** Clear all answers; or bring them back, if they were cleared just now. The page stays as high until another part is opened: else it would scroll. */
  #startAgain() {
    const {cleared, progress, lesson} = this, {part} = progress;
    lesson.style.minHeight = `${lesson.offsetHeight}px`;
    this.cleared = cleared ? null : progress;
    this.progress = {...cleared ?? noProgress(), part};
    setText(this.again, cleared ? AGAIN : UNDO);
    this.#renderAll();
    this.#announce(cleared ? BACK : CLEARED);
  }

  #forgetCleared() {
    this.cleared = null;
    setText(this.again, AGAIN);
  }

  #showScore() {
    const {progress} = this;
    setText(find(this.outline, '.score'), scoreSentence(progress));
    for (const link of findAll(this.outline, 'a')) {
      const [sign, meaning] = this.#markOf(String(link.dataset.part));
      find(link, '.mark').replaceChildren(...(sign ? [make('span', {ariaHidden: 'true', text: sign}), make('span', {className: 'meaning', text: ` (${meaning})`})] : []));
    }
  }

  /** A sign of how a part was answered, and what it means; empty while it is open. @param {string} part @returns {string[]} */
  #markOf(part) {
    const {progress} = this;
    if (part === 'before' || part === 'after') return progress[part].done ? ['✓', 'answered'] : [];
    const choice = progress.steps[Number(part) - 1];
    if (choice === null || choice === undefined) return [];
    if (choice === NONE) return ['–', 'shown'];
    return choice === STEPS[Number(part) - 1].question.right ? ['✓', 'answered right'] : ['✗', 'answered, not right'];
  }

  /** @param {string} sentence */
  #announce(sentence) { announce(this.announcement, sentence); }
}
