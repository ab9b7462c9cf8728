// The text that would come, in grey behind the caret: of the first branch, or of what is pointed at.
export class GhostText {
  #hidden = false;   // by Esc, until the next edit
  #pointed = null;

  // `show(text)` draws it; `shown()` tells whether there is room for it.
  constructor({branches, draft, show, shown}) {
    Object.assign(this, {branches, draft, show, shown});
    branches.addEventListener('point', ({detail}) => {
      this.#pointed = detail.text;
      this.painted();
    });
    draft.addEventListener('caret', () => this.painted());
  }

  // Accept what is shown; whether there was anything.
  take() {
    if (!this.shown()) return false;
    const {rows, choose, choosePointed} = this.branches.branchView;
    if (this.#pointed !== null) choosePointed();
    else choose(0, rows()[0].pieces.length - 1, {byKeyboard: true});
    return true;
  }

  // Whether there was anything to hide.
  hide() {
    const was = Boolean(this.shown());
    this.#hidden = this.#hidden || was;
    this.show('');
    return was;
  }

  edited() {
    this.#hidden = false;
    this.moved();
  }

  moved() {
    this.#pointed = null;
    this.show('');
  }

  painted() {
    const {draft, branches} = this, first = branches.branchView.rows()[0];
    const possible = !this.#hidden && !draft.selected && !draft.composing && draft.caret === draft.text.length && draft.text;
    const fresh = branches.dataset.stale !== 'true';
    const own = first ? first.pieces.map(piece => piece.text).join('') : '';
    this.show(possible && fresh ? this.#pointed ?? own : '');
  }
}
