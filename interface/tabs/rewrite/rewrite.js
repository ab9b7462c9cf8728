// The Rewrite tab: a new text that is steered among branches, and what the model is told that it is to be.
import {BanChips} from '../../web/ui/ban_chips.js';
import {BranchSettings} from '../../web/ui/branch_settings.js';
import {TextDraft} from '../../web/ui/text_draft.js';
import {Notice} from '../../web/ui/notice.js';
import {TextMirror} from '../../web/ui/text_mirror.js';
import {BranchController} from '../../web/ui/branch_controller.js';
import {InstructionAndSource} from './instruction_and_source.js';
import {connectCopyButton, connectUndoButtons} from '../../web/ui/sheet_buttons.js';
import {keepAcrossReloads} from '../../web/net/tab_storage.js';
import {pageElements} from '../../web/ui/page_elements.js';

export async function start({server}) {
  const page = await pageElements({
    told: '.sheet.told', paper: '.sheet.rewritten', controls: '#rewrite-controls', branches: '#rewrite-branches',
  });
  new RewriteTab(page, server).start();
}

class RewriteTab {
  constructor({told, paper, controls, branches}, server) {
    const find = selector => paper.querySelector(selector);
    this.choosing = new BranchSettings(controls);
    this.bans = new BanChips(controls.querySelector('.never'));
    this.told = new InstructionAndSource(told);
    this.draft = new TextDraft(find('#rewrite-text'), {also: () => [paper, branches]});
    this.steering = new BranchController({
      branches, draft: this.draft, server, controls,
      paper: new TextMirror(this.draft, {mirror: find('.mirror'), strip: find('.strip'), count: find('.count')}),
      settings: () => this.choosing.settings,
      drawn: () => this.choosing.drawn,
      told: () => ({...this.told.fields, banned: this.bans.ids}),
    });
    connectUndoButtons(this.draft, find('.undo'), find('.redo'));
    connectCopyButton(this.draft, find('#rewrite-copy'), new Notice(find('.notice')));
  }

  start() {
    for (const part of [this.told, this.bans, this.choosing]) part.addEventListener('change', () => this.steering.adjust());
    this.told.addEventListener('changing', () => this.steering.unsettle());
    this.steering.branches.addEventListener('ban', ({detail}) => this.bans.add(detail.id, detail.text));
    keepAcrossReloads('rewrite', {
      holds: () => this.draft.text || this.told.holds,
      take: () => ({draft: this.draft.state(), told: this.told.state()}),
      give: ({draft, told}) => { this.told.load(told); this.draft.load(draft); },
    });
    this.steering.start();
  }
}
