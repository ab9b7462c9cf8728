// "Guess first": the rows are hidden until the next word is guessed, and each guess is scored.
/** @import {BranchViewHandle, GuessAnswer, GuessScore, StoredSettings} from '../../web/core/types.d.ts' */
/** @import {TextOwner} from '../../web/ui/text_owner.js' */
import {NO_GUESSES, addGuess, checkingSentence, droppedSentence, guessSentence, placeOf, placesFrom, probabilityOfGuess, rowPhrase, scoreFrom, scoreParts} from '../../web/core/guess_score.js';
import {GUESS_FIRST} from '../../web/core/branch_sentences.js';
import {FINGER, LOW} from '../../web/ui/window_sizes.js';
import {announce} from '../../web/ui/announce.js';
import {dispatch, onDetail} from '../../web/ui/events.js';
import {find, make, scrollBehavior, setText} from '../../web/ui/elements.js';
import {isWritten} from '../../web/core/shortcuts.js';
import {orNull} from '../../web/net/tab_storage.js';

const STORED = 'lookahead:kept:guesses:';   // "Forget everything" deletes all that begins with its first part
const MOST_PLACES = 1000;     // of a document that were guessed or skipped and are not to be guessed again
const WAIT = 300;             // milliseconds until a server that has not read the text is asked again
const MOST_WAITS = 40;
const LEAST = 1e-12;          // probability of a guess that the model finds impossible
const NOTHING = 'Type the word that you expect next.';
const NO_TEXT = 'Write something first: then you guess its next word.';
const SELECTED = 'A selection pauses branching: put the caret where your next word is to stand, then guess it.';
const GUESSED_HERE = 'You have guessed here, or skipped it: write on for the next guess.';
const UNREAD = 'The model has not read this text yet: if branching is paused, go on with it, or skip the guess.';
const SKIPPED = 'Skipped: this guess does not count.';
const RESET = 'The score is reset.';
const WAY_ON = 'Alt+↓: to the rows, Alt+↑: to the text.';   // for those who guess by keys, after a guess
const FAILED = 'The server does not answer: try again, or skip the guess.';

/** @typedef {{id: string, text: string, revision: number}} GuessedText */

/** The switch, the field of the guess and the score. Event: `change`, when rows are hidden or shown. */
export class GuessFirst extends EventTarget {
  /**
   * Places at which the next word was guessed or skipped, by document: see `placeOf`.
   * @type {Map<string, Set<string>>}
   */
  #done = new Map();
  /**
   * The guess that is being scored.
   * @type {{guess: string, now: GuessedText, focused: boolean} | null}
   */
  #checked = null;
  #byKey = false;         // whether a key has made or skipped the newest guess
  #saysDropped = false;   // whether a guess was dropped, and that is still shown

  /**
   * @param {HTMLElement} controls
   * @param {object} parts
   * @param {TextOwner} parts.draft
   * @param {(guess: string) => Promise<GuessAnswer>} parts.score asks the server
   * @param {() => BranchViewHandle} parts.view whose rows a guess is scored by
   * @param {() => string} parts.under the settings of the odds, where they are not the model's own
   * @param {() => boolean} parts.isVeiled whether rows are hidden now
   * @param {() => string} parts.documentId
   */
  constructor(controls, {draft, score, view, under, isVeiled, documentId}) {
    super();
    this.draft = draft;
    this.score = score;
    this.view = view;
    this.under = under;
    this.isVeiled = isVeiled;
    this.documentId = documentId;
    this.toggle = find(controls, '#guess-first', HTMLInputElement);
    this.form = find(controls, '.guess', HTMLFormElement);
    this.button = find(this.form, '#guess-done', HTMLButtonElement);
    this.field = find(controls, '#guess', HTMLInputElement);
    this.asking = find(this.form, '.asking');
    this.said = find(this.form, '.guess-said');
    this.total = find(this.form, '.guess-total');
    this.#listen();
    this.#paint();
  }

  /** @returns {StoredSettings} */
  get settings() { return {guess_first: this.toggle.checked}; }

  /**
   * Take the switch of a document, a file or a link. One that does not have it changes nothing.
   * @param {StoredSettings} settings unchecked
   */
  set({guess_first: on}) {
    if (typeof on !== 'boolean' || on === this.toggle.checked) return;
    this.toggle.checked = on;
    this.#changed();
  }

  /**
   * Whether the rows after a text are hidden.
   * @param {string} text
   */
  hidesRows(text) { return this.toggle.checked && !this.#places.has(placeOf(text)); }

  /**
   * Move the focus to the field, and bring the text into sight too if both have room. Where the field has the focus already, say that the
   * guess comes first. Returns whether the field is shown.
   */
  focus() {
    const {field, draft: {box}} = this, hadFocus = document.activeElement === field;
    field.focus({preventScroll: true});
    if (document.activeElement !== field) return false;
    if (hadFocus && !this.#checked) this.#sayAgain(GUESS_FIRST);
    field.scrollIntoView({block: 'nearest'});
    if (field.getBoundingClientRect().bottom - box.getBoundingClientRect().top < innerHeight) box.scrollIntoView({block: 'nearest'});
    return true;
  }

  #listen() {
    const {form, toggle, draft} = this;
    // The controls take every input for a change of the branches, and would request them again.
    for (const part of [form, toggle]) part.addEventListener('input', event => event.stopPropagation());
    toggle.addEventListener('change', () => {
      this.#say('');
      this.#changed();
      if (!toggle.checked) return;
      this.#say(this.isVeiled() ? GUESS_FIRST : this.draft.selected ? SELECTED : this.hidesRows(this.draft.before) ? NO_TEXT : GUESSED_HERE);
      this.focus();
    });
    // What is said of the guess before does not stand beside the next one.
    this.field.addEventListener('input', () => this.#say(''));
    // After a guess by key the form has the focus: what is typed then goes into the text.
    form.addEventListener('keydown', event => { if (event.target === form && isWritten(event)) draft.box.focus({preventScroll: true}); });
    // Enter in the field clicks the button too.
    form.addEventListener('click', ({detail}) => { this.#byKey = detail === 0; }, {capture: true});
    form.addEventListener('submit', event => {
      event.preventDefault();
      this.#guess();
    });
    find(form, '#guess-skip').addEventListener('click', () => {
      this.#endCheck();
      this.#end(this.#now());
      this.#sayOutcome(SKIPPED);
    });
    find(form, '#guess-reset').addEventListener('click', () => {
      this.#keep(NO_GUESSES);
      if (this.#byKey && !this.focus()) this.#focusForm();
      this.#sayOutcome(RESET);
    });
    onDetail(draft, 'change', ({kind}) => {
      if (this.#checked) this.#dropIfChanged();
      else if (kind !== 'caret' && !this.#saysDropped) this.#say('');
    });
  }

  /** The places of the document that are not to be guessed again. They survive a reload, as the score does. */
  get #places() {
    const id = this.documentId(), places = this.#done.get(id) ?? new Set(placesFrom(this.#stored));
    this.#done.set(id, places);
    return places;
  }

  /** @returns {GuessedText} */
  #now() { return {id: this.documentId(), text: this.draft.before, revision: this.draft.sync()}; }

  async #guess() {
    const guess = this.field.value.trim(), now = this.#now(), under = this.under();
    if (this.#checked) return;
    if (!guess) {
      this.#sayAgain(NOTHING);
      return;
    }
    const checked = {guess, now, focused: this.form.contains(document.activeElement)};
    this.#check(checked);
    /** @type {GuessAnswer} */
    const answer = await this.#answer(guess, now).catch(() => ({sentence: FAILED}));
    // With the result stands which row it is, and it is announced before the rows.
    if (answer.texts) await this.#waitUntil(() => !this.view().awaitsRows() || !this.#isNow(now));
    // A guess that was skipped, or dropped for a changed text, while the server scored it does not count.
    if (!this.#isChecked(checked) || this.#dropIfChanged()) return;
    this.#endCheck();
    this.#say('');
    if (!this.hidesRows(now.text)) return;
    const {probability, texts, words = true, error = 0} = answer;
    if (probability === undefined || !texts) {
      this.#say(answer.sentence ?? UNREAD);
      if (checked.focused && document.activeElement === document.body) this.field.focus({preventScroll: true});
      return;
    }
    this.#end(now, {hadFocus: checked.focused});
    const drawn = this.view().drawn(), {rows} = drawn, known = Math.max(LEAST, probabilityOfGuess(drawn, {probability, texts, words, error}));
    this.#keep(addGuess(this.#score, known));
    const row = rowPhrase(rows, texts, guess, drawn.wordError === null ? known : undefined);
    this.#sayOutcome(guessSentence(guess, {probability: known, texts, words}, row, under));
    this.said.scrollIntoView({block: 'nearest', behavior: scrollBehavior()});
  }

  /**
   * A guess is being scored: say so. The field and the button of the next one wait; the guess can still be skipped.
   * @param {{guess: string, now: GuessedText, focused: boolean}} checked
   */
  #check(checked) {
    this.#checked = checked;
    this.#say(checkingSentence(checked.guess));
    this.field.readOnly = this.button.disabled = true;
  }

  /** @param {object} checked */
  #isChecked(checked) { return this.#checked === checked; }

  #endCheck() {
    this.#checked = null;
    this.field.readOnly = this.button.disabled = false;
  }

  /** Drop the guess that is being scored if the text is another one now, and say so. Returns whether it was dropped. */
  #dropIfChanged() {
    if (!this.#checked || this.#isNow(this.#checked.now)) return false;
    const {guess} = this.#checked;
    this.#endCheck();
    this.field.value = '';
    this.#say(droppedSentence(guess));
    this.#saysDropped = true;
    return true;
  }

  /**
   * The server's answer. It cannot score a guess before it has read the text.
   * @param {string} guess
   * @param {GuessedText} now
   */
  async #answer(guess, now) {
    /** @type {GuessAnswer} */
    let answer = {unknown: true};
    await this.#waitUntil(async () => {
      if (this.#isNow(now)) answer = await this.score(guess);
      return !answer.unknown || !this.#isNow(now);
    });
    return answer;
  }

  /** @param {() => boolean | Promise<boolean>} isDone asked again and again, but not for ever */
  async #waitUntil(isDone) {
    for (let waits = 0; waits < MOST_WAITS && !await isDone(); waits += 1) await new Promise(resolve => { setTimeout(resolve, WAIT); });
  }

  /** @param {GuessedText} then */
  #isNow({id, revision}) { return id === this.documentId() && revision === this.draft.sync(); }

  /**
   * Show the rows after a text from now on. The focus goes back to the text; after a guess by keys it goes to the form instead,
   * since a second Enter would write a line break into the text, and on a phone, whose keyboard would open over the result.
   * @param {GuessedText} now
   * @param {{hadFocus?: boolean}} [options] `hadFocus`: whether the form had the focus, which a disabled button loses
   */
  #end({text}, {hadFocus = false} = {}) {
    const places = this.#places;
    places.add(placeOf(text));
    const [oldest] = places;
    if (places.size > MOST_PLACES) places.delete(oldest);
    this.#keep(this.#score);
    this.field.value = '';
    const {activeElement} = document, focused = this.form.contains(activeElement) || (hadFocus && activeElement === document.body);
    this.#changed();
    if (focused && (this.#byKey || matchMedia(FINGER).matches)) this.#focusForm();
    else if (focused) this.draft.box.focus({preventScroll: true});
  }

  #focusForm() {
    this.form.tabIndex = -1;
    this.form.addEventListener('blur', () => this.form.removeAttribute('tabindex'), {once: true});   // a click beside the buttons focuses nothing
    this.form.focus({preventScroll: true});
  }

  /** @returns {unknown} */
  get #stored() { return orNull(() => JSON.parse(sessionStorage.getItem(STORED + this.documentId()) ?? 'null')); }

  get #score() { return scoreFrom(this.#stored); }

  /** @param {GuessScore} score */
  #keep(score) {
    orNull(() => sessionStorage.setItem(STORED + this.documentId(), JSON.stringify({...score, places: [...this.#places]})));
    this.#paint();
  }

  /**
   * That the rows are hidden is seen in their place, and only announced here.
   * @param {string} sentence
   */
  #say(sentence) {
    this.#saysDropped = false;
    const isSeen = sentence !== GUESS_FIRST;
    this.said.classList.toggle('spoken-only', !isSeen);
    announce(this.said, isSeen ? '' : sentence);
    if (isSeen) setText(this.said, sentence);
  }

  /** Say a sentence, and have it announced also if it is the one that was said last. @param {string} sentence */
  #sayAgain(sentence) {
    this.#say('');
    this.#say(sentence);
  }

  /**
   * Say how a guess has ended, and where the keys lead on if there are keys and the form has the focus: in a low window aloud only.
   * @param {string} sentence
   */
  #sayOutcome(sentence) {
    const hasKeys = document.activeElement === this.form && !matchMedia(FINGER).matches;
    this.#say(hasKeys ? `${sentence.replace(/\.?$/, '.')} ` : sentence);
    if (hasKeys) this.said.append(make('span', {text: WAY_ON, className: matchMedia(LOW).matches ? 'spoken-only' : ''}));
  }

  #changed() { dispatch(this, 'change'); }

  /**
   * The rows were hidden or shown: the field is shown with hidden rows alone. That they are hidden again, as the text has changed,
   * is announced once all that listen to the change have done so: one of them clears what was said.
   */
  veilChanged() {
    const isNew = this.isVeiled() && this.asking.hidden;
    this.#paint();
    if (isNew) queueMicrotask(() => { if (this.isVeiled() && !this.said.textContent) this.#say(GUESS_FIRST); });
  }

  #paint() {
    const score = this.#score;
    this.form.hidden = !this.toggle.checked;
    this.asking.hidden = !this.isVeiled();
    this.total.hidden = !score.guesses;
    const {sum, mean} = scoreParts(score);
    setText(find(this.total, '.sum'), sum);
    setText(find(this.total, '.mean'), mean);
  }
}
