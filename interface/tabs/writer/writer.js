// The writer's tab: the person's paper and the controls, steered among the branches.
import * as header from '../../web/ui/header.js';
import {BranchOptions} from './branch_options.js';
import {mountSheet} from './writer_sheet.js';
import {FirstVisitExample} from './first_visit.js';
import {BranchController} from '../../web/ui/branch_controller.js';
import {pageElements} from '../../web/ui/page_elements.js';

const MOST_DEPTH = 40;

export async function start({props, server}) {
  const page = await pageElements({paper: '.writer', controls: '#controls', branches: '#branches'});
  await new WriterTab(page, server, props.value || {}).start();
}

class WriterTab {
  constructor({paper, controls, branches}, server, {example, address}) {
    this.branches = branches;
    this.controls = new BranchOptions(controls);
    this.paper = mountSheet({element: paper, hooks: {
      settings: () => this.controls.settings,
      applySettings: settings => this.controls.set(settings),
      view: () => this.steering.view,
      tree: () => this.steering.requests.tree(),
      model: header.modelName,
      publicAddress: () => address,
      also: () => [branches],
    }});
    this.draft = this.paper.draft;
    this.example = new FirstVisitExample(this.draft.box, example, detail => this.steering.tell('show', detail));
    this.steering = new BranchController({
      branches, draft: this.draft, paper: this.paper, server, controls,
      settings: () => this.settings,
      told: () => ({instruction: this.paper.instruction(), banned: this.controls.bans.ids}),
      changed: () => this.paper.settingsChanged(),
      stored: () => this.example.text,
      begins: () => this.example.end(),
      rests: revision => this.example.show(revision),
    });
  }

  async start() {
    await this.paper.ready;
    const {shelf} = this.paper, others = (await shelf.list()).filter(card => card.id !== shelf.current?.id);
    if (this.draft.text || others.length) this.example.end();
    this.listen();
    this.steering.start();
  }

  listen() {
    const {branches, draft, controls, steering} = this;
    // Bans are a document's own; it brings them along next.
    draft.addEventListener('change', ({detail}) => { if (detail.kind === 'load') controls.set({banned: []}); });
    controls.addEventListener('change', () => steering.adjust());
    draft.addEventListener('instructing', () => steering.unsettle());
    draft.addEventListener('instruction', () => steering.adjust());
    branches.addEventListener('ban', ({detail}) => controls.bans.add(detail.id, detail.text));
  }

  get settings() {
    const {banned, ...settings} = this.controls.settings;
    return settings.until === 'tokens' ? settings : {...settings, depth: MOST_DEPTH};
  }
}
