// A text box without a browser, as far as the page's scripts use one: its text, its selection and its input events.
const page = new EventTarget();
page.execCommand = () => false;   // scripts then write into the box themselves
globalThis.document = page;

export class TextBox extends EventTarget {
  value = '';
  selectionStart = 0;
  selectionEnd = 0;

  get #selection() { return [this.selectionStart, this.selectionEnd]; }

  getRootNode() { return {activeElement: this}; }

  focus() {}

  setSelectionRange(start, end) {
    const most = this.value.length;
    [this.selectionStart, this.selectionEnd] = [Math.min(start, most), Math.min(end, most)];
  }

  setRangeText(text, start = this.selectionStart, end = this.selectionEnd) {
    this.value = this.value.slice(0, start) + text + this.value.slice(end);
    this.selectionStart = this.selectionEnd = start + text.length;
  }

  // What a person does.

  select(start, end = start) {
    this.setSelectionRange(start, end);
    page.dispatchEvent(new Event('selectionchange'));
  }

  // Replace the selection, or with `back` and `forward` as many units before and after the caret.
  edit(inputType, text, {back = 0, forward = 0} = {}) {
    this.#report('beforeinput', inputType);
    const [start, end] = this.#selection;
    this.setRangeText(text, start - back, end + forward);
    this.#report('input', inputType);
  }

  compose(text) {
    this.dispatchEvent(new Event('compositionstart'));
    this.setRangeText(text);
    this.#report('input', 'insertCompositionText');
    this.dispatchEvent(new Event('compositionend'));
  }

  #report(name, inputType) { this.dispatchEvent(Object.assign(new Event(name, {cancelable: true}), {inputType})); }
}
