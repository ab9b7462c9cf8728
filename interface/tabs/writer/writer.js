// The Write tab: the person's sheet, the options of its branches, and the branches.
/** @import {BranchViewElement, ComponentArguments, Server} from '../../web/core/types.d.ts' */
/** @import {StoredExample} from './first_visit.js' */
import * as header from '../../web/ui/header.js';
import {BranchController} from '../../web/ui/branch_controller.js';
import {BranchOptions, MOST_DEPTH} from './branch_options.js';
import {FirstVisitExample} from './first_visit.js';
import {GuessFirst} from './guess_first.js';
import {TreeView} from './tree_view.js';
import {ViewChoice} from './view_choice.js';
import {find} from '../../web/ui/elements.js';
import {mountSheet} from './writer_sheet.js';
import {onDetail} from '../../web/ui/events.js';
import {pageElements} from '../../web/ui/page_elements.js';

/** @param {ComponentArguments} component */
export async function start({props, server}) {
  const page = await pageElements({sheet: '.writer', controls: '#controls', branches: '#branches', tree: '#tree'});
  await new WriterTab(page, server, props.value || {}).start();
}

class WriterTab {
  /**
   * @param {{sheet: HTMLElement, controls: HTMLElement, branches: BranchViewElement, tree: HTMLElement}} elements
   * @param {Server} server
   * @param {{example?: StoredExample, address?: string}} settings the stored example, and the configured public address
   */
  constructor({sheet, controls, branches, tree}, server, {example, address}) {
    this.branches = branches;
    this.options = new BranchOptions(controls);
    this.views = new ViewChoice(find(controls, '.views'), branches);
    this.tree = new TreeView(tree, branches);
    this.sheet = mountSheet({element: sheet, hooks: {
      settings: () => ({...this.options.settings, ...this.views.settings, ...this.tree.settings, ...this.guesses?.settings}),
      applySettings: settings => {
        this.options.set(settings);
        this.views.set(settings);
        this.tree.set(settings);
        this.guesses.set(settings);
      },
      view: () => this.controller.view,
      tree: () => this.controller.requests.tree(),
      model: header.modelName,
      publicAddress: () => address ?? null,
      also: () => [branches, tree],
    }});
    this.draft = this.sheet.draft;
    find(sheet, '.skip').addEventListener('click', () => {
      if (!branches.branchView.focus()) this.sheet.notice('There are no branches yet: write something first.');
    });
    this.example = new FirstVisitExample(this.draft.box, example ?? null, detail => this.controller.show(detail));
    this.tree.start(this.draft, {
      exampleText: () => this.example.text, fileName: ending => this.sheet.fileName(ending), notice: sentence => this.sheet.notice(sentence),
    });
    this.controller = new BranchController({
      branches, draft: this.draft, mirror: this.sheet, server, controls,
      settings: () => this.settings,
      prompt: () => ({instruction: this.sheet.instruction(), banned: this.options.bans.ids}),
      onSettings: () => this.sheet.settingsChanged(),
      exampleText: () => this.example.text,
      onBegin: () => this.example.end(),
      onEmpty: revision => this.example.show(revision),
      hidesRows: text => this.guesses.hidesRows(text),
      onHidden: () => this.guesses.focus(),
    });
    this.guesses = new GuessFirst(controls, {
      draft: this.draft, score: guess => this.controller.requests.guess(guess), rows: () => branches.branchView.rows(),
      documentId: () => this.sheet.library.current?.id ?? '', isVeiled: () => branches.branchView.isVeiled(),
    });
  }

  async start() {
    await this.sheet.ready;
    const {library} = this.sheet, others = (await library.list()).filter(card => card.id !== library.current?.id);
    if (this.draft.text || others.length) this.example.end();
    this.#listen();
    this.controller.start();
  }

  #listen() {
    const {branches, draft, options, controller} = this;
    // Bans belong to a document; its own ones follow.
    onDetail(draft, 'change', ({kind}) => { if (kind === 'load') options.set({banned: [], towards: '', avoid: ''}); });
    options.addEventListener('change', () => controller.settingsChanged());
    this.views.addEventListener('change', () => {
      this.tree.show(this.views.view === 'tree');
      this.sheet.settingsChanged();
    });
    this.tree.addEventListener('change', () => this.sheet.settingsChanged());
    this.tree.show(this.views.view === 'tree');
    this.guesses.addEventListener('change', () => {
      controller.veilChanged();
      this.sheet.settingsChanged();
    });
    draft.addEventListener('instructing', () => controller.promptChanging());
    draft.addEventListener('instruction', () => controller.settingsChanged());
    onDetail(branches, 'ban', ({id, text}) => options.bans.add(id, text));
  }

  /** The settings of a request; bans are part of the prompt. */
  get settings() {
    const {k, depth, mode, until, order, temperature, top_p, seed, towards, avoid} = this.options.settings;
    return {seed, k, depth: until === 'tokens' ? depth : MOST_DEPTH, temperature, top_p, mode, until, order, towards, avoid};
  }
}
