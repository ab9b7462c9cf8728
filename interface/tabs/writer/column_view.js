// One column of the Compare view: its instruction, its temperature, and a branch view with its rows.
/** @import {BranchViewElement, Column, DrawnRow, RowSettings, View} from '../../web/core/types.d.ts' */
/** @import {FirstElsewhere} from '../../web/core/compared_columns.js' */
import {MOST_INSTRUCTION, MOST_TEMPERATURE, elsewhereSentence, settingsOfColumn, temperatureComplaint, temperatureFrom} from '../../web/core/compared_columns.js';
import {find, findAll, make, setAttribute, setSpokenText, setText, spokenAs} from '../../web/ui/elements.js';
import {dispatch} from '../../web/ui/events.js';
import {columnRemarks} from '../../web/core/branch_sentences.js';
import {formatPercent, quotedText, spokenQuote, spokenSentence} from '../../web/core/figures_and_labels.js';
import {setTip} from '../../web/ui/tips.js';
import {mount} from '../../branch_view/branch_view.js';

const SETTLES = 300;   // milliseconds without a key
const STEP = 0.1;      // of a temperature that an arrow key changes
/** @type {(temperature: number, isEmpty: boolean) => string} `temperature`: of columns whose field is empty */
const heatTip = (temperature, isEmpty) => 'The temperature of this column. ' +
  `${isEmpty ? 'The field is empty: it is' : 'Empty the field for'} the one under “More settings”, now ${temperature}.`;
const TEXT_TIP = 'What this column’s text follows. Empty: the text goes on as it is.';
const SAME_LETTER = 'Rows of two columns with the same letter begin with the same token.';

/** Unlike those of the rows, tokens of columns cannot be changed. */
const KEYS = 'Keys: arrows move, Enter writes up to the token, Delete bans it, Alt+↑ leads back.';

/** Events: `writing` while its instruction is written, `change` when it is another column, `remove`. */
export class ColumnView extends EventTarget {
  /** @type {View | null} */
  view = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #veiled = false;   // whether the page hides the rows until the next word is guessed

  /**
   * @param {Column} column
   * @param {HTMLElement[]} parts the elements of a branch view without rows, to be copied
   */
  constructor(column, parts) {
    super();
    this.field = make('textarea', {className: 'column-instruction', rows: 2, maxLength: MOST_INSTRUCTION, dir: 'auto', value: column.instruction, placeholder: 'No instruction: the text as it is'});
    // No field of type number: what it takes a comma for depends on the browser's language.
    this.heat = make('input', {type: 'text', inputMode: 'decimal', autocomplete: 'off', value: String(column.temperature ?? '')});
    for (const [name, value] of Object.entries({role: 'spinbutton', 'aria-valuemin': 0, 'aria-valuemax': MOST_TEMPERATURE})) this.heat.setAttribute(name, String(value));
    this.complaint = make('p', {className: 'complaint', ariaLive: 'polite'});
    this.heatLabel = make('label', {}, 'Temperature', this.heat);
    this.removal = make('button', {className: 'remove', text: '×'});
    this.remarks = make('p', {className: 'remarks'});
    this.elsewhere = make('ul', {className: 'elsewhere'});
    this.title = make('strong', {className: 'column-name'});
    const said = make('label', {className: 'said'}, this.field);
    setTip(said, TEXT_TIP);
    const head = make('div', {className: 'column-head'}, this.title, this.heatLabel, this.removal, said, this.complaint);
    this.body = make('div', {className: 'column-body'}, ...parts.map(part => part.cloneNode(true)));
    this.element = make('section', {className: 'compared'}, head, this.body, this.remarks, this.elsewhere);
    for (const node of findAll(this.body, '[id], [aria-controls]')) for (const name of ['id', 'aria-controls', 'data-view']) node.removeAttribute(name);
    find(this.body, '.cover').append(make('p', {className: 'same-letters', ariaHidden: 'true', text: 'Same letter: same first token.'}));   // rows are described so
    this.keys = find(this.body, '.keys');
    this.keys.textContent = KEYS;
    // What coverage is stands once, below all columns: it needs no tab stop in each of them.
    for (const figure of findAll(this.body, '.cover [tabindex]')) figure.removeAttribute('tabindex');
    // The value is never set: the panel sends events.
    mount({element: this.body, props: {value: null}, watch: () => {}});
    this.root = /** @type {BranchViewElement} */ (find(this.body, '.branch-view'));
    this.#listen();
  }

  /** @returns {Column} */
  get column() { return {instruction: this.field.value, temperature: this.isComplete ? temperatureFrom(this.heat.value) : null}; }

  /** Whether the temperature can be used: while it cannot, the column shows no rows. */
  get isComplete() { return !Number.isNaN(temperatureFrom(this.heat.value)); }

  /** @returns {DrawnRow[]} */
  get rows() { return this.root.branchView.rows(); }

  /** @param {number} index @param {boolean} removable */
  number(index, removable) {
    this.title.textContent = `Column ${index + 1}`;
    this.keys.id = `column-${index + 1}-keys`;
    find(this.body, '.before-keys').id = `column-${index + 1}-before-keys`;
    setAttribute(this.element, 'aria-label', `Column ${index + 1}`);
    setAttribute(this.field, 'aria-label', `Instruction of column ${index + 1}`);
    setAttribute(this.heat, 'aria-label', `Temperature of column ${index + 1}`);
    setAttribute(this.removal, 'aria-label', `Remove column ${index + 1}`);
    this.removal.disabled = !removable;
  }

  /** Mark the column whose rows the keys of the text accept. @param {boolean} marked */
  mark(marked) {
    setAttribute(this.element, 'aria-current', marked);
    setAttribute(this.root, 'aria-label', `Branches of ${this.title.textContent?.toLowerCase()}${marked ? ', the marked column' : ''}`);
  }

  /** @param {string} name of an event of the branch view @param {unknown} detail */
  send(name, detail) { dispatch(this.root, name, detail); }

  /** @param {RowSettings} settings of the page */
  draw(settings) {
    const {temperature = 1} = settings;
    this.heat.placeholder = String(temperature);
    setTip(this.heatLabel, heatTip(temperature, !this.heat.value.trim()));
    this.#showTemperature();
    this.send('settings', settingsOfColumn(settings, this.column));
  }

  /** Hide or show the rows as the page does. @param {boolean} veiled */
  veil(veiled) {
    this.#veiled = veiled;
    this.send('veil', {veiled: veiled || !this.isComplete});
  }

  /** Show the rows if the field holds a temperature or nothing; else say what is wrong with it. */
  #showTemperature() {
    const {heat, isComplete, column: {temperature}} = this;
    // Without it the browser reports 0 for an empty field.
    setAttribute(heat, 'aria-valuenow', isComplete && (temperature ?? heat.placeholder));
    setAttribute(heat, 'aria-invalid', !isComplete && 'true');
    // Announced once, not with each key after it.
    this.complaint.ariaLive = this.complaint.textContent ? 'off' : 'polite';
    setText(this.complaint, isComplete ? '' : temperatureComplaint(heat.value));
    this.body.hidden = this.elsewhere.hidden = !isComplete;
    this.veil(this.#veiled);
  }

  /** @param {number} step */
  #changeTemperature(step) {
    const heat = Number(this.column.temperature ?? this.heat.placeholder) + step;
    this.heat.value = String(Math.round(10 * Math.min(MOST_TEMPERATURE, Math.max(0, heat))) / 10);
    dispatch(this, 'change');
  }

  /**
   * Mark the rows that begin like rows of other columns, and say what the others' first choices are here.
   * @param {string[]} letters for each row, or an empty string
   * @param {FirstElsewhere[]} firsts
   */
  compare(letters, firsts) {
    findAll(this.root, '.rows > .branch').forEach((row, index) => {
      const key = find(row, '.key');
      setAttribute(row, 'data-same', letters[index] || null);
      setAttribute(key, 'data-letter', letters[index] || null);
      setAttribute(key, 'data-tip', letters[index] ? SAME_LETTER : null);
      setAttribute(row, 'aria-description', letters[index] ? `Begins like row ${letters[index]} of another column` : null);
    });
    const {branchView} = this.root, remarks = branchView.state() === 'settled' ? columnRemarks(branchView.drawn()) : '';
    branchView.nameRows();
    setSpokenText(this.remarks, remarks, spokenSentence(remarks));
    setAttribute(this.elsewhere, 'data-stale', branchView.isStale());
    this.elsewhere.replaceChildren(...firsts.map(first => {
      const beginning = make('i', {dir: 'auto'}, ...first.text === null ? ['the end'] : spokenAs(quotedText(first.text), spokenQuote(first.text))), figure = make('b', {text: formatPercent(first.odds)});
      const [before, after] = elsewhereSentence(first);
      return make('li', {}, before, beginning, after, figure);
    }));
  }

  #listen() {
    this.field.addEventListener('input', () => {
      dispatch(this, 'writing');
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => dispatch(this, 'change'), SETTLES);
    });
    this.heat.addEventListener('input', () => dispatch(this, 'change'));
    this.heat.addEventListener('keydown', event => {
      const step = {ArrowUp: STEP, ArrowDown: -STEP}[event.key];
      if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.#changeTemperature(step);
    });
    this.removal.addEventListener('click', () => dispatch(this, 'remove'));
  }

  /** The column is removed: nothing of it may follow. */
  stop() { clearTimeout(this.#timer); }
}
