// The text that would come, in grey behind the caret: of the first branch, or of what is pointed at.
export class Ghost {
  #hidden = false;   // by Esc, until the next edit
  #pointed = null;
  #text = '';

  constructor({branches, draft, show}) {
    Object.assign(this, {branches, draft, show});
    branches.addEventListener('point', ({detail}) => {
      this.#pointed = detail.text;
      this.painted();
    });
    draft.addEventListener('caret', () => this.painted());
  }

  get visible() { return Boolean(this.#text); }

  // Where the text stands that is shown: branch and token.
  get place() {
    const rows = this.branches.branchView.rows();
    for (const [branch, {pieces}] of rows.entries()) {
      let text = '';
      for (const [token, piece] of pieces.entries()) {
        text += piece.text;
        if (text === this.#text) return [branch, token];
      }
    }
    return [0, -1];
  }

  // Whether there was anything to hide.
  hide() {
    const was = this.visible;
    this.#hidden = this.#hidden || was;
    this.#paint('');
    return was;
  }

  edited() {
    this.#hidden = false;
    this.#pointed = null;
    this.#paint('');
  }

  painted() {
    const {draft, branches} = this, first = branches.branchView.rows()[0];
    const possible = !this.#hidden && !draft.selected && !draft.composing && draft.caret === draft.text.length && draft.text;
    const fresh = branches.dataset.stale !== 'true';
    const own = first ? first.pieces.map(piece => piece.text).join('') : '';
    this.#paint(possible && fresh ? this.#pointed ?? own : '');
  }

  #paint(text) {
    if (text === this.#text) return;
    this.#text = text;
    this.show(text);
  }
}
