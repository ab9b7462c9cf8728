// The open document: between the draft, the library, links and files.
/** @import {DocumentFields, DocumentLink, DocumentRecord, StoredSeenView, StoredSettings, View} from '../../web/core/types.d.ts' */
/** @import {Instruction} from './instruction.js' */
/** @import {Notice} from '../../web/ui/notice.js' */
/** @import {TextOwner} from '../../web/ui/text_owner.js' */
import {documentFrom} from './document_record.js';
import {DocumentLibrary} from './document_library.js';
import {columnInstructions, withoutInstructions} from '../../web/core/compared_columns.js';
import {authorshipHtml, authorshipJson, authorshipMarkdown} from './authorship_export.js';
import {exportDocument, exportReplay, fileName, readDocumentFile} from './document_files.js';
import {replayHtml} from './replay_file.js';
import {replayOf} from '../../web/core/replay.js';
import {decodeLink, isLink} from './document_link.js';
import {downloadFile} from '../../web/ui/elements.js';
import {afterPaint, onDetail} from '../../web/ui/events.js';
import {linkName, titleOf} from './document_titles.js';
import {replaceInTextBox} from '../../web/ui/text_box_writing.js';
import {FINGER} from '../../web/ui/window_sizes.js';

const TREE_TIMEOUT = 3000;   // milliseconds that an export waits for the tree
/** The exports of who wrote what, by the ending of their files. */
const AUTHORSHIP = {
  md: {write: authorshipMarkdown, type: 'text/markdown'},
  html: {write: authorshipHtml, type: 'text/html'},
  json: {write: authorshipJson, type: 'application/json'},
};

/**
 * @typedef {object} SheetHooks what a sheet asks of the rest of the page
 * @property {() => StoredSettings | null} settings of the branches
 * @property {(settings: StoredSettings) => void} applySettings from a document, a file or a link; unchecked
 * @property {() => StoredSeenView[]} seen the views that were shown for the document
 * @property {(seen: StoredSeenView[]) => void} applySeen from a stored document; unchecked
 * @property {() => View | null} view the shown branches, for an export
 * @property {() => Promise<unknown>} tree the tree on the server, for an export
 * @property {() => string | null} model its name
 * @property {() => string | null} publicAddress the configured one
 * @property {() => (Element | null)[]} also further elements in which the undo keys are the draft's
 */

/** @typedef {'md' | 'html' | 'json'} AuthorshipFormat */

/**
 * The settings of a link. Columns wait until the person chooses to compare: nobody's instruction is used unseen.
 * @param {DocumentLink} link
 */
function settingsOf({settings, seed}) {
  const own = settings?.view === 'compare' ? {...settings, view: 'rows'} : settings;
  return seed === null || seed === undefined ? own : {...own, seed};
}

/** @typedef {{where: string, text: string}} BroughtInstruction an instruction of a file, and where it is used */

/**
 * What a file brings, without instructions that nobody has agreed to.
 * @param {DocumentFields} found
 * @param {BroughtInstruction[]} unknown
 * @returns {DocumentFields}
 */
function withoutUnknown(found, unknown) {
  const texts = unknown.map(({text}) => text), own = texts.includes(found.instruction ?? '') ? {instruction: '', instructed: false} : {};
  return {...found, ...own, settings: found.settings && withoutInstructions(found.settings, texts)};
}

/**
 * The text that shows instructions to a person: one alone as it is; of several, each after the name of the column that uses it.
 * @param {BroughtInstruction[]} all
 */
const sayInstructions = all => (all.length > 1 ? all.map(({where, text}) => `${where}: ${text}`).join('\n\n') : all[0].text);

/** Opens, saves, imports and exports documents. */
export class DocumentKeeper {
  #exported = '';   // the text as it was last exported
  #settings = '';   // the settings as they were last seen, as JSON: setting them again is no change

  /**
   * @param {object} parts
   * @param {TextOwner} parts.draft
   * @param {Instruction} parts.instruction
   * @param {Notice} parts.notice
   * @param {SheetHooks} parts.hooks
   * @param {(instruction: string, use: () => void, done: () => void) => void} parts.offer shows the instruction of a link or a
   *   file to the person, and calls `done` when that is over
   * @param {() => void} parts.play shows the replay of the open document
   */
  constructor({draft, instruction, notice, hooks, offer, play}) {
    this.draft = draft;
    this.instruction = instruction;
    this.notice = notice;
    this.hooks = hooks;
    this.offer = offer;
    this.play = play;
    this.library = new DocumentLibrary({snapshot: () => this.snapshot()});
    for (const name of ['change', 'side']) draft.addEventListener(name, () => this.library.changed());
    instruction.addEventListener('change', () => this.library.changed());
    onDetail(this.library, 'copied', ({sentence}) => notice.show(sentence, null, {stays: true}));
    this.library.addEventListener('forgotten', () => this.openNew());
  }

  /** The title of the open document. */
  get name() { return this.library.current ? titleOf({name: this.library.current.name, text: this.draft.text}) : 'Untitled'; }

  /** The name that the open document was given; empty if it has none. */
  get givenName() { return this.library.current?.name ?? ''; }

  /** @returns {DocumentFields} */
  snapshot() {
    const {text, on} = this.instruction, {settings, seen, model} = this.hooks;
    return {...this.draft.state(), instruction: text, instructed: on, settings: settings(), seen: seen(), model: model()};
  }

  /** Open the last document or the link's. What was typed while the page loaded is kept. */
  async start() {
    this.#settings = JSON.stringify(this.hooks.settings());
    await this.library.start();
    const linked = await this.#takeLink(), record = linked ? null : await this.library.last();
    await this.#compositionEnd();
    if (this.draft.text) this.#keepTyped(record);
    else if (record) this.#open(record);
    else this.library.begin();
    if (linked) this.#showLink(linked);
  }

  /** Open a new, empty document. */
  openNew() {
    this.notice.documentChanged();
    this.#openFields(documentFrom({text: ''}));
  }

  /** Open a document. Returns whether it is open then. @param {string} id */
  async switchTo(id) {
    if (id === this.library.current?.id) return true;
    const record = await this.library.store.read(id);
    if (!record) {
      this.notice.show('This document is no longer here.');
      return false;
    }
    this.notice.documentChanged();
    this.#open(record);
    return true;
  }

  /** @param {string} id @param {string} name */
  async rename(id, name) {
    await this.library.rename(id, name);
    this.library.announceState();
  }

  /**
   * Delete a document, and offer to undo that.
   * @param {string} id
   * @param {{byKeyboard?: boolean, byTouch?: boolean}} [options] `byKeyboard`: the focus goes to Undo
   */
  async remove(id, {byKeyboard = false, byTouch = false} = {}) {
    const {library} = this, open = id === library.current?.id;
    const title = open ? this.name : titleOf(await library.store.read(id) ?? {name: '', text: ''});
    const restore = await library.remove(id);
    if (open) this.openNew();
    const run = async () => {
      await restore();
      if (open) await this.switchTo(id);
      this.draft.box.focus();   // the button that was pressed is gone
      this.notice.show(`“${title}” is restored.`);
    };
    const sentence = `“${title}” is deleted`, elsewhere = `${sentence}.`, home = byTouch ? null : this.draft.box;   // on a phone the text box opens the keyboard
    this.notice.show(open ? `${sentence}; a new, empty document is open.` : elsewhere, {label: 'Undo', run}, {focus: byKeyboard, elsewhere, home});
  }

  /** Delete everything that this browser stores. */
  async forget() {
    await this.library.forget();
    this.notice.show('Everything that this browser kept is forgotten.');
  }

  /** @param {File} file */
  async importFile(file) {
    try {
      const found = await readDocumentFile(file);
      const unknown = await this.#unknownInstructions(found), done = () => { if (found.play) this.play(); };
      const {name = ''} = found, title = titleOf({name, text: found.text});
      const free = name || found.text.trim() ? await this.library.freeName(title) : title;
      this.#openFields(withoutUnknown(found, unknown), free === title ? name : free);
      this.notice.show(`“${file.name}” is open, as a document of its own.`);
      if (!matchMedia(FINGER).matches) this.draft.box.focus();
      if (unknown.length) this.offer(sayInstructions(unknown), () => this.#useInstructions(found, unknown), done);
      else done();
    } catch (error) {
      this.notice.show(/** @type {Error} */ (error).message, null, {stays: true});
    }
  }

  /**
   * The instructions that a file brings into force and that no document of this browser has.
   * @param {DocumentFields} found
   */
  async #unknownInstructions({instruction, instructed, settings}) {
    const all = [{where: 'Rows and Tree', text: instructed ? instruction ?? '' : ''}, ...columnInstructions(settings).map((text, index) => ({where: `Column ${index + 1}`, text}))];
    /** @type {BroughtInstruction[]} */
    const unknown = [];
    for (const one of all) if (one.text && !await this.library.hasInstruction(one.text)) unknown.push(one);
    return unknown;
  }

  /**
   * Put the instructions into force that a person agrees to.
   * @param {DocumentFields} found the document of the file
   * @param {BroughtInstruction[]} unknown
   */
  #useInstructions({instruction, settings}, unknown) {
    if (instruction && unknown.some(({text}) => text === instruction)) this.instruction.set(instruction);
    if (settings && columnInstructions(settings).length) this.hooks.applySettings(settings);
    this.settingsChanged();
  }

  /** Let the browser save a file, and say so. @param {string} content @param {string} name @param {string} type its media type */
  #save(content, name, type) {
    downloadFile(content, name, type);
    this.notice.show(`Exported: ${name}.`);
  }

  async exportJson() {
    const view = this.hooks.view(), fields = this.snapshot(), name = this.name;
    const waiting = new Promise(resolve => { setTimeout(() => resolve(null), TREE_TIMEOUT); });
    const tree = await Promise.race([Promise.resolve().then(() => this.hooks.tree()).catch(() => null), waiting]);
    this.#save(exportDocument({...fields, name}, {view, tree}), fileName(name, 'json'), 'application/json');
    this.#exported = fields.text;
  }

  exportText() {
    this.#save(this.draft.text, fileName(this.name, 'txt'), 'text/plain');
    this.#exported = this.draft.text;
  }

  /**
   * Save who wrote each character as a file.
   * @param {AuthorshipFormat} format
   */
  exportAuthorship(format) {
    const {name, draft, hooks} = this, {write, type} = AUTHORSHIP[format];
    const content = write({name, text: draft.text, model: hooks.model(), instruction: this.instruction.value, authors: draft.authors});
    this.#save(content, fileName(`${name} authorship`, format), type);
  }

  /**
   * Save the making of the text as a file: a page that plays itself, or JSON to be opened here.
   * @param {'html' | 'json'} format
   */
  exportReplay(format) {
    const {name} = this, document = {...this.snapshot(), name}, file = fileName(`${name} replay`, format);
    if (format === 'html') this.#save(replayHtml({name, replay: replayOf(document)}), file, 'text/html');
    else this.#save(exportReplay(document), file, 'application/json');
  }

  /** Whether closing the page now would lose something. */
  get unsafe() {
    const {text} = this.draft, {state, losesAnother} = this.library;
    return losesAnother || (state === 'unsaved' && Boolean(text) && text !== this.#exported);
  }

  /** Open the link that was put into the address bar. */
  async openLink() {
    const linked = await this.#takeLink();
    if (linked) this.#showLink(linked);
  }

  settingsChanged() {
    const now = JSON.stringify(this.hooks.settings());
    if (now === this.#settings) return;
    this.#settings = now;
    this.library.changed();
  }

  /** @param {DocumentFields} fields */
  #show(fields) {
    this.draft.load(fields);
    this.hooks.applySeen(fields.seen ?? []);
    this.instruction.set(fields.instruction ?? '', fields.instructed ?? false);
    if (fields.settings) this.hooks.applySettings(fields.settings);
    this.#settings = JSON.stringify(this.hooks.settings());
  }

  /** @param {DocumentRecord} record */
  #open(record) {
    this.library.open(record);
    this.#show(documentFrom({...record}));
    this.library.unchanged();
  }

  /** @param {DocumentFields} fields @param {string} [name] */
  #openFields(fields, name = '') {
    this.library.begin(name);
    this.#show(fields);
  }

  /**
   * Keep what was typed before anything was open: at the end of the last document if it is empty or this tab had it open, else in a
   * new one.
   * @param {DocumentRecord | null} record the last document
   */
  #keepTyped(record) {
    if (record?.text && this.library.wasOpen(record.id)) {
      const {text, box} = this.draft;
      this.#open(record);
      replaceInTextBox(box, {start: box.value.length, removed: '', inserted: text});
      this.draft.sync();
      return;
    }
    if (record && !record.text) this.library.open(record);
    else this.library.begin();
    this.library.changed();
    if (!record?.text) return;
    const label = `Open “${titleOf(record)}”`;
    this.notice.show('What you typed is a new document.', {label, run: () => this.switchTo(record.id)});
  }

  /** The link in the address bar, which is removed from there; null if there is none. */
  async #takeLink() {
    const fragment = location.hash;
    if (!isLink(fragment)) return null;
    window.history.replaceState(window.history.state, '', location.pathname + location.search);
    try {
      return await decodeLink(fragment);
    } catch (error) {
      this.notice.show(/** @type {Error} */ (error).message, null, {stays: true});
      scrollTo(0, 0);   // where the notice covers nothing
      return null;
    }
  }

  /** @param {DocumentLink} linked */
  #showLink(linked) {
    const {instruction, text, name, spans, accepted, history, play} = linked, side = {done: this.#editSteps(linked)};
    this.#openFields({...documentFrom({text, spans, accepted, history, side}), settings: settingsOf(linked)}, linkName({text, name}));
    this.#tellOfLink(linked.model);
    scrollTo(0, 0);   // where the text and its rows are seen
    afterPaint(() => { this.draft.box.scrollTop = 0; });   // the text mirror scrolls a long text to its end
    const done = () => { if (play) this.play(); };
    if (instruction) this.offer(instruction, () => this.instruction.set(instruction), done);
    else done();
  }

  /**
   * The changes of rows of a link as steps beside the text, unchecked. Those made with another model are left out: token ids
   * mean other tokens there.
   * A link has this form, and not that of the steps in a stored document (`side`): those hold bans and undone steps too, and each
   * repeats the text before the caret, for which a link has no room.
   * @param {DocumentLink} linked
   */
  #editSteps({edits, text, model}) {
    const here = this.hooks.model(), fits = !here || !model || here === model;
    return fits && Array.isArray(edits) ? edits.map(edit => ({at: 0, step: {edit, text, pinned: null}})) : [];
  }

  /**
   * Say that a link is open, and, once the page knows its own model, whether the link was made with another one.
   * @param {string | null} model that the link was made with
   */
  #tellOfLink(model) {
    const here = this.hooks.model(), opened = 'The link is open, as a document of its own.', id = this.library.current?.id;
    if (!model || !here) this.notice.show(opened);
    else if (model === here) this.notice.show(`${opened} It was made with the same model.`);
    // On a phone a notice that stays takes room from the rows: only another model is worth it.
    else this.notice.show(`${opened} It was made with ${model}; here ${here} goes on with it, so the branches will differ.`, null, {stays: true});
    if (model && !here) document.addEventListener('lookahead:ready', () => { if (this.library.current?.id === id) this.#tellOfLink(model); }, {once: true});
  }

  /** Wait until no input method composes in the box. */
  #compositionEnd() {
    if (!this.draft.composing) return null;
    return new Promise(resolve => {
      for (const name of ['compositionend', 'blur']) this.draft.box.addEventListener(name, resolve, {once: true});
    });
  }
}
