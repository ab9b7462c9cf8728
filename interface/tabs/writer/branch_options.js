// The sliders and choices above the writer's branches.
/** @import {BannedToken, StoredSettings, ViewOptionsOfRequest} from '../../web/core/types.d.ts' */
import {MODES, sameRowsRemark, wordsNeed} from '../../web/core/branch_sentences.js';
import {BanChips} from '../../web/ui/ban_chips.js';
import {find, findAll, setText} from '../../web/ui/elements.js';
import {dispatch} from '../../web/ui/events.js';
import {orNull} from '../../web/net/tab_storage.js';
import {setTip} from '../../web/ui/tips.js';

/** Settings and the ids of their elements. */
const NUMBERS = /** @type {const} */ ({k: 'k', depth: 'depth', temperature: 'temperature', top_p: 'top-p'});
const CHOICES = /** @type {const} */ ({mode: 'mode', until: 'length', order: 'order', odds: 'odds'});
const MOST_SEED = 1e9;
export const MOST_DEPTH = 40;   // tokens of a row that ends at a word, clause, sentence or line
const MOST_WORD = 40;    // characters of a word to go towards, or to avoid
const OPEN = 'lookahead:kept:more-settings';   // “Forget everything” deletes all that begins with its first part
const STEERS = 'lookahead:kept:steer';   // what to do with a word to steer by: a document stores it only with the word
const WORD_RESTS = 400;  // milliseconds after the last key in its field
/** @typedef {ViewOptionsOfRequest & {order: string, banned: BannedToken[]}} BranchOptionValues */

/**
 * The options of a document's branches. Events: `change`, when a person or `set` changes them; before it `steer` with {kind, text},
 * a confirmation for screen readers, when a person has changed the word to steer by or what to do with it.
 */
export class BranchOptions extends EventTarget {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #steering = '';      // the word to steer by and what to do with it, as they were at the last change
  #view = 'rows';      // figures of all other views are of tokens, whatever is chosen

  /** @param {HTMLElement} element */
  constructor(element) {
    super();
    this.element = element;
    this.#input('seed').value = String(randomSeed());
    this.#select('steer').value = orNull(() => sessionStorage.getItem(STEERS)) === 'avoid' ? 'avoid' : 'towards';
    element.addEventListener('input', ({target}) => this.#settle(target === this.#input('steer-word') ? WORD_RESTS : 0));
    this.#input('steer-word').addEventListener('keydown', event => {
      if (event.key === 'Enter' && !event.isComposing) this.#settle(0);
    });
    find(element, '#again').addEventListener('click', () => this.set({seed: randomSeed()}));
    this.bans = new BanChips(find(element, '.never'));
    this.bans.addEventListener('change', () => this.#changed());
    for (const label of findAll(element, '[data-tip]')) setTip(label, label.dataset.tip ?? '');
    keepOpen(find(element, '.more-settings', HTMLDetailsElement));
    this.#steering = this.#steeringNow;
    this.#paint();
  }

  /** @returns {BranchOptionValues} */
  get settings() {
    const number = (/** @type {string} */ id) => this.#input(id).valueAsNumber;
    const choice = (/** @type {string} */ id) => this.#select(id).value;
    return {
      seed: Math.min(MOST_SEED, Math.max(0, Math.trunc(number('seed') || 0))),
      k: number('k'), depth: number('depth'), temperature: number('temperature'), top_p: number('top-p'),
      mode: choice('mode'), until: choice('length'), order: choice('order'), odds: choice('odds'), banned: this.bans.list,
      towards: '', avoid: '', [choice('steer')]: this.#input('steer-word').value.trim(),
    };
  }

  /**
   * Take settings from a document, a file or a link. Values that are not possible here change nothing.
   * @param {StoredSettings} settings
   */
  set(settings) {
    for (const [name, id] of Object.entries({...NUMBERS, seed: 'seed'})) {
      const value = settings[/** @type {keyof typeof NUMBERS | 'seed'} */ (name)];
      if (Number.isFinite(value)) this.#input(id).value = String(value);
    }
    for (const [name, id] of Object.entries(CHOICES)) {
      const value = settings[/** @type {keyof typeof CHOICES} */ (name)], select = this.#select(id);
      if (value !== undefined && [...select.options].some(option => option.value === value)) select.value = value;
    }
    for (const name of /** @type {const} */ (['avoid', 'towards'])) {
      const word = settings[name];
      if (typeof word !== 'string') continue;
      if (word || name === this.#select('steer').value) this.#input('steer-word').value = word.slice(0, MOST_WORD);
      if (!word) continue;
      this.#select('steer').value = name;
      find(this.element, 'details', HTMLDetailsElement).open = true;   // where the word can be seen and taken away
    }
    this.#steering = this.#steeringNow;
    if (Array.isArray(settings.banned)) this.bans.set(settings.banned);
    else this.#changed();
  }

  /**
   * Say what figures are of in this view.
   * @param {string} view the name of a view
   */
  showView(view) {
    this.#view = view;
    this.#paint();
  }

  /** @param {string} id */
  #input(id) { return find(this.element, `#${id}`, HTMLInputElement); }

  /** @param {string} id */
  #select(id) { return find(this.element, `#${id}`, HTMLSelectElement); }

  /** @param {number} delay milliseconds until a change counts */
  #settle(delay) {
    clearTimeout(this.#timer);
    if (delay) this.#timer = setTimeout(() => this.#changed(), delay);
    else this.#changed();
  }

  #changed() {
    clearTimeout(this.#timer);
    this.#paint();
    if (this.#steeringNow !== this.#steering) {
      const {towards, avoid} = this.settings;
      dispatch(this, 'steer', {kind: towards ? 'towards' : avoid ? 'avoid' : 'unsteered', text: towards || avoid});
      this.#steering = this.#steeringNow;
    }
    orNull(() => sessionStorage.setItem(STEERS, this.#select('steer').value));
    dispatch(this, 'change');
  }

  get #steeringNow() {
    const {towards, avoid} = this.settings;
    return JSON.stringify([towards, avoid]);
  }

  #paint() {
    const {mode, until, towards, avoid} = this.settings, depth = this.#input('depth'), byTokens = until === 'tokens';
    for (const id of Object.values(NUMBERS)) {
      setText(find(this.element, `output[for="${id}"]`), id === 'depth' && !byTokens ? `≤ ${MOST_DEPTH}` : this.#input(id).value);
    }
    // It keeps its room, so that nothing moves when the mode changes.
    find(this.element, '.draw').classList.toggle('unused', mode !== 'sampled');
    setTip(find(this.element, '.shows'), `${MODES[mode]} The help (?) explains all choices.`);
    const odds = this.#select('odds'), need = wordsNeed(this.settings, this.#view);
    odds.disabled = mode !== 'likely' || this.#view !== 'rows' || Boolean(towards || avoid);
    // The chosen value is kept, and what the figures are of is said in its place.
    setText(find(odds, 'option[value=words]'), odds.disabled || need ? 'here: tokens' : 'words');
    odds.closest('label')?.classList.toggle('idle', odds.disabled);
    const remark = sameRowsRemark(this.settings, this.#view);
    setText(find(this.element, '.words-need'), need);
    setText(find(this.element, '.same-rows'), need && remark ? `\n${remark}` : remark);
    depth.disabled = !byTokens;
    depth.closest('label')?.classList.toggle('idle', !byTokens);
  }
}

/** Let a list that was open be open again after a reload. @param {HTMLDetailsElement} details */
function keepOpen(details) {
  details.open = orNull(() => sessionStorage.getItem(OPEN)) !== null;
  details.addEventListener('toggle', () => orNull(() => (details.open ? sessionStorage.setItem(OPEN, '') : sessionStorage.removeItem(OPEN))));
}

const randomSeed = () => Math.floor(Math.random() * MOST_SEED);
