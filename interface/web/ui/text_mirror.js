// What is drawn around the text without touching it: a mirror under the text box with the marks of what was chosen and
// the ghost text after the caret; the strip of typed and chosen; the count of words.
import {mirrorStart, markedStretches, stripCells} from '../core/text_marks.js';
import {countWords} from '../core/text_words.js';

const COUNTS_SETTLE = 200; // milliseconds
const BREAK = '\u200b';    // so that the ghost text does not pull the last word to the next line

function mark(text) {
  const made = document.createElement('span');
  made.className = 'chosen';
  made.textContent = text;
  return made;
}

// The text from `start` on as nodes.
export const markedNodes = (text, spans, start) =>
  [...markedStretches(text, spans, start)].map(({text, chosen}) => (chosen ? mark(text) : document.createTextNode(text)));

function stripe({share, chosen}) {
  const made = document.createElement('i');
  made.className = chosen ? 'of-chosen' : 'of-typed';
  made.style.flexGrow = share;
  return made;
}

export class TextMirror {
  #ghost = '';
  #frame = 0;
  #counting = 0;

  // `parts`: the mirror under the box, the strip, the line with the count.
  constructor(draft, parts) {
    Object.assign(this, {draft, box: draft.box, ...parts});
    draft.addEventListener('change', event => this.#changed(event.detail.kind));
    draft.addEventListener('caret', () => this.#soon());
    this.box.addEventListener('input', () => this.#soon());
    this.box.addEventListener('scroll', () => this.#scroll(), {passive: true});
    new ResizeObserver(() => this.#soon()).observe(this.box);
    this.#changed('load');
  }

  // What would be chosen, in grey after the caret; only where the caret stands at the end. Whether it is shown.
  ghost(text) {
    this.#ghost = text ?? '';
    this.#soon();
    return this.ghostShown;
  }

  get ghostShown() {
    const {draft} = this;
    return Boolean(this.#ghost) && !draft.composing && !draft.selected && draft.caret === draft.text.length
      && mirrorStart(draft.text) !== null;
  }

  #changed(kind) {
    if (kind !== 'caret') this.#ghost = '';
    this.#soon();
    clearTimeout(this.#counting);
    this.#counting = setTimeout(() => this.#tell(), kind === 'load' ? 0 : COUNTS_SETTLE);
    // The browser shows the caret by itself only in a box that has the focus.
    if (kind !== 'type' && kind !== 'caret' && this.draft.caret === this.draft.text.length) this.box.scrollTop = this.box.scrollHeight;
  }

  #soon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#paint();
    });
  }

  #paint() {
    const {text, spans} = this.draft, start = mirrorStart(text), page = this.mirror.firstElementChild;
    this.mirror.style.width = `${this.box.clientWidth}px`;
    this.mirror.style.height = `${this.box.clientHeight}px`;
    page.style.minHeight = start ? `${this.box.scrollHeight}px` : '';
    const ghost = document.createElement('span');
    ghost.className = 'ghost';
    ghost.textContent = this.ghostShown ? this.#ghost : '';
    const body = document.createElement('div');
    if (start !== null) body.append(...markedNodes(text, spans, start), BREAK, ghost);
    page.replaceChildren(body);
    this.box.dataset.ghost = ghost.textContent ? 'shown' : '';
    this.#scroll();
  }

  #scroll() {
    this.mirror.firstElementChild.style.translate = `0 ${-this.box.scrollTop}px`;
  }

  #tell() {
    const {text, spans} = this.draft, {words, chosen} = countWords(text, spans);
    this.count.textContent = `${words} ${words === 1 ? 'word' : 'words'} · ${chosen} chosen`;
    this.strip.replaceChildren(...[...stripCells(text.length, spans)].map(stripe));
    this.strip.setAttribute('aria-label', `${chosen} of ${words} words were chosen, the others typed.`);
  }
}
