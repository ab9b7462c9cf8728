// Plays the making of a text. The class uses nothing but itself, because a replay that stands alone as a file holds its
// source.
/** @import {Replay, ReplayPiece} from '../../web/core/types.d.ts' */

/** The player of a replay, in an element of its own. */
export class ReplayPlayer {
  position = 0;   // steps that were made
  speed = 1;
  playing = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {HTMLElement} root @param {Replay} replay */
  constructor(root, replay) {
    this.root = root;
    this.replay = replay;
    this.page = this.#make('div', 'replay-text', {dir: 'auto', tabIndex: 0});
    this.page.setAttribute('role', 'group');
    this.page.setAttribute('aria-label', 'The text at this step');
    this.caption = this.#make('p', 'replay-caption', {});
    this.caption.setAttribute('role', 'status');
    this.playButton = this.#button('Play', () => this.toggle(), 'Play or pause (space)');
    this.playButton.classList.add('chief');
    this.slider = /** @type {HTMLInputElement} */ (this.#make('input', 'replay-position', {type: 'range', min: '0', max: String(replay.steps.length), step: '1'}));
    this.slider.setAttribute('aria-label', 'Step');
    this.slider.addEventListener('input', () => this.goTo(this.slider.valueAsNumber));
    const bar = this.#make('div', 'replay-bar', {});
    bar.append(
      this.#button('|◀', () => this.goTo(0), 'To the start (Home)'), this.#button('◀', () => this.goTo(this.position - 1), 'One step back (←)'), this.playButton,
      this.#button('▶', () => this.goTo(this.position + 1), 'One step on (→)'), this.slider, this.#speedChoice(),
    );
    root.replaceChildren(this.page, this.caption, bar);
    // Only one listener, also where a dialog shows one replay after another.
    root.onkeydown = event => this.#onKey(event);
    this.#paint();
  }

  /** Play from here, or from the start if this is the end. */
  play() {
    if (!this.replay.steps.length) return;
    if (this.position === this.replay.steps.length) this.position = 0;
    this.playing = true;
    this.#paint();
    this.#next();
  }

  pause() {
    clearTimeout(this.#timer);
    this.playing = false;
    this.#paint();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  /**
   * Pause at a step.
   * @param {number} position
   */
  goTo(position) {
    this.position = Math.max(0, Math.min(this.replay.steps.length, position));
    this.pause();
  }

  /**
   * The pieces of the text after so many steps; `fresh` are those that the last of them brought.
   * @param {number} position
   * @returns {(ReplayPiece & {fresh: boolean})[]}
   */
  piecesAt(position) {
    const known = this.#known && this.#known.position <= position ? this.#known : {position: 0, pieces: this.replay.first};
    let {pieces} = known, from = pieces.length, to = from;
    for (const {start, removed, pieces: inserted} of this.replay.steps.slice(known.position, position)) {
      const head = this.#cut(pieces, 0, start);
      pieces = [...head, ...inserted, ...this.#cut(pieces, start + removed, Infinity)];
      [from, to] = [head.length, head.length + inserted.length];
    }
    if (position === known.position && position) return this.#marked(known.pieces, known.from ?? 0, known.to ?? 0);
    this.#known = {position, pieces, from, to};
    return this.#marked(pieces, from, to);
  }

  /**
   * The pieces last computed, from which later ones follow.
   * @type {{position: number, pieces: ReplayPiece[], from?: number, to?: number} | null}
   */
  #known = null;

  /** @type {(pieces: ReplayPiece[], from: number, to: number) => (ReplayPiece & {fresh: boolean})[]} */
  #marked(pieces, from, to) { return pieces.map((piece, index) => ({...piece, fresh: index >= from && index < to})); }

  /** @type {(pieces: ReplayPiece[], start: number, end: number) => ReplayPiece[]} */
  #cut(pieces, start, end) {
    let at = 0;
    return pieces.map(piece => {
      const text = piece.text.slice(Math.max(0, start - at), Math.max(0, end - at));
      at += piece.text.length;
      return text === piece.text ? piece : {...piece, text};
    }).filter(({text}) => text);
  }

  #next() {
    const step = this.replay.steps[this.position];
    if (!step) return this.pause();
    this.#timer = setTimeout(() => {
      if (!this.root.isConnected) return this.pause();
      this.position += 1;
      this.#paint();
      this.#next();
    }, step.wait / this.speed);
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const {key, target} = event, {position, replay} = this;
    if (event.altKey || event.ctrlKey || event.metaKey || !(target instanceof HTMLElement)) return;
    if (target.matches('select') || (key === ' ' && target.matches('button'))) return;
    /** @type {Record<string, () => void>} */
    const keys = {
      ' ': () => this.toggle(), 'ArrowLeft': () => this.goTo(position - 1), 'ArrowRight': () => this.goTo(position + 1),
      'Home': () => this.goTo(0), 'End': () => this.goTo(replay.steps.length),
    };
    if (!Object.hasOwn(keys, key)) return;
    event.preventDefault();
    keys[key]();
  }

  #paint() {
    const {position, replay: {steps}, playing} = this, step = steps[position - 1];
    const elements = this.piecesAt(position).map(({text, author, note, fresh}) =>
      this.#make('span', fresh ? `${author} fresh` : author, {textContent: text, title: note}));
    this.page.replaceChildren(...elements);
    if (position) this.page.querySelector('.fresh')?.scrollIntoView({block: 'nearest'});
    // A screen reader hears of each step that a person goes to, and not of those that are played.
    this.caption.setAttribute('aria-live', playing ? 'off' : 'polite');
    this.caption.textContent = `Step ${position} of ${steps.length}: ${step ? ReplayPlayer.sentenceOf(step) : 'as it began'}`;
    this.playButton.textContent = playing ? '❚❚ Pause' : '▶ Play';
    this.playButton.disabled = !steps.length;
    this.slider.value = String(position);
  }

  /**
   * What a step did. Of an accepted row, what was chosen and what was written into it are told apart, in their order.
   * @param {Replay['steps'][number]} step
   */
  static sentenceOf({did, pieces}) {
    if (did.startsWith('went')) return did;
    /** @type {(name: string, text: string) => string} */
    const told = (name, text) => (text ? `${name} “${text.length > 60 ? `${text.slice(0, 60)}…` : text}”` : '');
    const visible = (/** @type {string} */ text) => (text.trim() || text.replaceAll(' ', '␣')).replaceAll('\n', '↵');
    if (did !== 'chosen') return told(did, visible(pieces.map(({text}) => text).join(''))) || did;
    // A click in the example brings its opening too, which nobody has chosen.
    const parts = pieces.filter(({author}) => author !== 'example').map(({author, text}) => told(author, visible(text))).filter(Boolean);
    const note = pieces.find(({author}) => author === did)?.note.split(' · ').slice(1).join(' · ');
    return `${parts.join(', ') || did}${note ? ` · ${note}` : ''}`;
  }

  #speedChoice() {
    const label = this.#make('label', 'replay-speed', {textContent: 'Speed '}), select = /** @type {HTMLSelectElement} */ (this.#make('select', '', {}));
    for (const speed of [0.5, 1, 2, 4, 8]) select.append(this.#make('option', '', {value: String(speed), textContent: `${speed} ×`, selected: speed === 1}));
    select.addEventListener('change', () => { this.speed = Number(select.value); });
    label.append(select);
    return label;
  }

  /** @type {(text: string, run: () => void, title: string) => HTMLButtonElement} */
  #button(text, run, title) {
    const button = /** @type {HTMLButtonElement} */ (this.#make('button', '', {type: 'button', textContent: text, title}));
    if (text !== 'Play') button.setAttribute('aria-label', title);
    button.addEventListener('click', run);
    return button;
  }

  /** @type {(tag: string, className: string, properties: object) => HTMLElement} */
  #make(tag, className, properties) { return Object.assign(document.createElement(tag), {className, ...properties}); }
}
