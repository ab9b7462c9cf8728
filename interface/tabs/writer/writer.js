// The Write tab: the person's sheet, the options of its branches, and the branches.
/** @import {BranchViewElement, ComponentArguments, Server} from '../../web/core/types.d.ts' */
/** @import {StoredExample} from './first_visit.js' */
import * as header from '../../web/ui/header.js';
import {BranchController} from '../../web/ui/branch_controller.js';
import {BranchOptions, MOST_DEPTH} from './branch_options.js';
import {ColumnsPanel} from './columns_panel.js';
import {FirstVisitExample} from './first_visit.js';
import {GuessFirst} from './guess_first.js';
import {TreeView} from './tree_view.js';
import {ViewChoice} from './view_choice.js';
import {MOST_BRANCHES} from '../../web/core/compared_columns.js';
import {WRITE_TOPICS} from '../../web/core/help_topics.js';
import {topicElements} from '../../web/ui/help.js';
import {find, make, scrollBehavior, setText} from '../../web/ui/elements.js';
import {MODES, settingsClause} from '../../web/core/branch_sentences.js';
import {mountSheet} from './writer_sheet.js';
import {dispatch, onDetail} from '../../web/ui/events.js';
import {placeControls} from '../../web/ui/controls_position.js';
import {FINGER, LOW} from '../../web/ui/window_sizes.js';
import {pageElements} from '../../web/ui/page_elements.js';
import {tabOfReload} from '../../web/ui/tab_links.js';

const GREY_TEXT_HIDDEN = 'The grey text comes back when the text changes. Tab now leaves the box.';
const TAB_WHILE_GUESSING = 'While you guess there is no grey text: Tab leads past the settings to the field of your guess.';

/** @param {ComponentArguments} component */
export async function start({props, server}) {
  const {box} = await pageElements({box: '#document textarea'}), keys = globalThis.earlyKeys();
  if (takesKeysAtStart()) {
    box.focus({preventScroll: true});
    /** @type {HTMLTextAreaElement} */ (box).value += keys;
  }
  const page = await pageElements({sheet: '.writer', controls: '#controls', branches: '#branches', tree: '#tree', compare: '#compare'});
  await new WriterTab(page, server, props.value || {}).start();
}

/**
 * Whether the text field gets the focus, and the keys pressed before, as soon as it is drawn. It does not on a touch screen, whose
 * keyboard would open, nor if the address names a text or a tab, if a reload opens another tab, or if another element has the focus.
 */
const takesKeysAtStart = () =>
  !location.hash && [null, 'write'].includes(tabOfReload()) && document.activeElement === document.body && !matchMedia(FINGER).matches;

class WriterTab {
  /**
   * @param {{sheet: HTMLElement, controls: HTMLElement, branches: BranchViewElement, tree: HTMLElement, compare: HTMLElement}} elements
   * @param {Server} server
   * @param {{example?: StoredExample, address?: string}} settings the stored example, and the configured public address
   */
  constructor({sheet, controls, branches, tree, compare}, server, {example, address}) {
    this.branches = branches;
    this.element = sheet;
    this.tabKey = find(sheet, '#tab-key');
    this.tabWhileWriting = this.tabKey.textContent ?? '';
    this.options = new BranchOptions(controls);
    this.#fillHelp(find(sheet, '#help-dialog'));
    this.columns = new ColumnsPanel(compare, branches);
    this.views = new ViewChoice(find(controls, '.views'), branches);
    this.tree = new TreeView(tree, branches);
    this.sheet = mountSheet({element: sheet, hooks: {
      settings: () => ({
        ...this.options.settings, ...this.views.settings, ...this.tree.settings, ...this.guesses?.settings,
        ...(this.columns.columns && {columns: this.columns.columns}),
      }),
      applySettings: settings => {
        this.columns.set(settings.columns);
        this.views.set(settings);
        this.tree.set(settings);
        this.guesses.set(settings);
        this.options.set(settings);
      },
      seen: () => this.tree.seen.stored,
      applySeen: seen => this.tree.seen.restore(seen),
      view: () => this.controller.view,
      tree: () => this.controller.requests.tree(),
      model: header.modelName,
      publicAddress: () => address ?? null,
      also: () => [controls, this.guesses.form, branches, tree, compare],
    }});
    this.draft = this.sheet.draft;
    this.example = new FirstVisitExample({box: this.draft.box, hint: find(controls, '.example-hint')}, example ?? null, detail => this.controller.show(detail));
    this.tree.start(this.draft, {
      exampleText: () => this.example.text, hidesRows: text => this.guesses.hidesRows(text),
      fileName: ending => this.sheet.fileName(ending), notice: sentence => this.sheet.notice(sentence),
    });
    this.controller = new BranchController({
      branches, draft: this.draft, mirror: this.sheet, server, controls,
      settings: () => this.settings,
      drawn: () => ({...this.settings, banned_texts: this.options.bans.texts}),
      prompt: () => this.#prompt,
      bannedTexts: () => this.options.bans.texts,
      onColumns: (views, detail) => this.columns.take(views, detail),
      focusRows: () => this.#focusColumns(),
      hasRows: () => this.columns.hasRows,
      onColumnsAhead: (ahead, detail) => this.columns.keepAhead(ahead, detail),
      columnsAfter: (ids, revision) => this.columns.after(ids, revision),
      keyedColumn: () => this.columns.keyedColumn,
      onSettings: () => this.sheet.settingsChanged(),
      exampleText: () => this.example.text,
      exampleModel: () => this.example.model,
      onBegin: () => this.example.end(),
      onEmpty: revision => this.example.show(revision),
      hidesRows: text => this.guesses.hidesRows(text),
      onVeil: () => this.#onVeil(),
      onHidden: () => this.guesses.focus(),
      onGhostHidden: () => this.#sayTab(),
    });
    find(sheet, '.skip').addEventListener('click', () => this.controller.goToRows());
    this.guesses = new GuessFirst(controls, {
      draft: this.draft, score: guess => this.controller.requests.guess(guess, this.#guessSettings),
      view: () => (this.columns.first?.root ?? branches).branchView,
      under: () => `${this.columns.first ? 'in column 1 ' : ''}${settingsClause({...this.#guessSettings, banned: this.options.bans.ids.length, banned_texts: this.options.bans.texts})}`.trim(),
      documentId: () => this.sheet.library.current?.id ?? '', isVeiled: () => branches.branchView.isVeiled(),
    });
    placeControls(controls);   // after the parts of the controls are found: one of them is moved out of them
  }

  /** @param {HTMLElement} dialog */
  #fillHelp(dialog) {
    find(dialog, '.words').append(...WRITE_TOPICS.words.flatMap(topicElements));
    find(dialog, '.modes').append(...Object.values(MODES).map(text => make('li', {text})));
    find(dialog, '.keys-of').append(...WRITE_TOPICS.keys.flatMap(topicElements));
  }

  async start() {
    await this.sheet.ready;
    const {library} = this.sheet, others = (await library.list()).filter(card => card.id !== library.current?.id);
    if (this.draft.text || others.length) this.example.end();
    this.#listen();
    this.#showColumns();
    this.controller.start();
  }

  #listen() {
    const {branches, draft, options, controller} = this;
    // Bans belong to a document; its own ones follow.
    onDetail(draft, 'change', ({kind}) => { if (kind === 'load') options.set({banned: [], towards: '', avoid: ''}); });
    onDetail(options, 'steer', detail => dispatch(branches, 'confirm', detail));
    options.addEventListener('change', () => controller.settingsChanged());
    this.views.addEventListener('change', () => {
      options.showView(this.views.view);
      this.tree.show(this.views.view === 'tree');
      this.#viewChanged();
    });
    this.views.addEventListener('choose', () => this.#scrollToBranches());
    this.tree.addEventListener('change', () => this.sheet.settingsChanged());
    this.tree.addEventListener('seen', () => this.sheet.seenChanged());
    options.showView(this.views.view);
    this.tree.show(this.views.view === 'tree');
    this.guesses.addEventListener('change', () => {
      controller.veilChanged();
      this.sheet.settingsChanged();
    });
    this.columns.addEventListener('writing', () => controller.promptChanging());
    this.columns.addEventListener('change', () => controller.settingsChanged());
    onDetail(this.columns, 'choosing', drawn => this.tree.recordColumn(drawn));
    draft.addEventListener('instructing', () => controller.promptChanging());
    draft.addEventListener('instruction', () => controller.settingsChanged());
    onDetail(branches, 'ban', ({id, text}) => options.bans.add(id, text));
    options.bans.undoWith(draft);
    branches.addEventListener('help', () => find(this.element, '#help').click());
    // The other tabs ask for the text.
    onDetail(document, 'written', detail => { detail.text = draft.text; });
  }

  /** Rows have been hidden or shown: hidden ones have no grey text that Tab could accept. */
  #onVeil() {
    this.guesses.veilChanged();
    this.#sayTab();
  }

  /** Say what Tab does now. The box is described by this line also where it is not shown: then by all of it, hidden parts included. */
  #sayTab() {
    const isVeiled = this.branches.branchView.isVeiled(), writing = this.controller.ghost.isHidden ? GREY_TEXT_HIDDEN : this.tabWhileWriting;
    setText(this.tabKey, isVeiled ? TAB_WHILE_GUESSING : writing);
  }

  /**
   * Scroll to the branches in their new view, no further than needed, if any of them is out of sight, as on a phone, where they are
   * above the buttons. In the low window of a projector: to columns of which less than half is seen.
   */
  #scrollToBranches() {
    const {view} = this.views, {panel} = this.tree;
    const shown = view === 'tree' ? find(panel, '.tree-scroll') : view === 'rows' ? find(this.branches, '.rows') : this.columns.container;
    const {top, bottom, height} = shown.getBoundingClientRect(), room = Math.min(height, innerHeight);
    const seen = Math.min(bottom, innerHeight) - Math.max(top, 0), least = view === 'compare' && matchMedia(LOW).matches ? room / 2 : room;
    if (seen < least) shown.scrollIntoView({block: height > innerHeight ? 'start' : 'nearest', behavior: scrollBehavior()});
  }

  get #prompt() {
    const banned = this.options.bans.ids, {columns} = this;
    if (columns.active) return {instruction: null, banned, columns: columns.request()};
    return {instruction: this.sheet.instruction(), banned};
  }

  /** The columns begin where the rows end, and the other way round: what one of them has computed is no view of the other. */
  #viewChanged() {
    const active = this.views.view === 'compare', {columns, controller, draft} = this;
    if (active === columns.active) {
      controller.settingsChanged();   // the tree and the rows may have different figures
      return;
    }
    controller.show({revision: draft.revision, state: 'empty', view: null});
    this.#showColumns();
    controller.settingsChanged();
  }

  /** Show the columns in their view; only there they have instructions, and the text has none. */
  #showColumns() {
    const active = this.views.view === 'compare';
    this.columns.show(active, this.sheet.instruction());
    this.sheet.compare(active);
  }

  #focusColumns() { return this.columns.active && this.columns.focus(); }

  /** The settings that the first column is drawn with; those of the rows where there are no columns. */
  get #guessSettings() {
    const {temperature, top_p, avoid} = this.settings, column = this.columns.first?.column;
    return {temperature: column?.temperature ?? temperature, top_p, avoid};
  }

  /** The settings of a request; bans are part of the prompt. */
  get settings() {
    const {k, depth, mode, until, order, temperature, top_p, seed, towards, avoid, odds} = this.options.settings;
    return {
      seed, k: this.columns.active ? Math.min(k, MOST_BRANCHES) : k, depth: until === 'tokens' ? depth : MOST_DEPTH, temperature, top_p, mode, until, order,
      towards, avoid, odds: this.views.view === 'rows' ? odds : 'tokens',
    };
  }
}
