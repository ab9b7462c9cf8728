// On a first visit, until something is written: branches that were stored, of a text that is not the person's.
const BEGIN = 'Click any word to begin with it, or write something of your own.';
const PLACEHOLDER = 'Once upon a time …';

export class FirstVisitExample {
  // `stored` is {text, model, view}, or null where there is none; `tell` shows it in the branch view.
  constructor(box, stored, tell) { Object.assign(this, {box, stored, tell}); }

  // What its text is, while it stands there.
  get text() { return this.stored?.text ?? ''; }

  show(revision) {
    if (!this.stored) return;
    const {text, model, view} = this.stored;
    this.box.placeholder = `${text} …`;
    this.tell({revision, state: 'empty', view, stored: true, note: `After “${text}”, as ${model} saw it. ${BEGIN}`});
  }

  end() {
    if (!this.stored) return;
    this.stored = null;
    this.box.placeholder = PLACEHOLDER;
  }
}
