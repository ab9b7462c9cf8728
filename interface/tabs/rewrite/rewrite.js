// The Rewrite tab: a new text that is steered among branches, and what the model is told that it is to be.
import {Bans} from '../../web/ui/ban_chips.js';
import {Choosing} from '../../web/ui/branch_settings.js';
import {Draft} from '../../web/ui/text_draft.js';
import {Notice} from '../../web/ui/notice.js';
import {Paper} from '../../web/ui/text_mirror.js';
import {Steering} from '../../web/ui/branch_controller.js';
import {Told} from './instruction_and_source.js';
import {copying, travelling} from '../../web/ui/sheet_buttons.js';
import {keepOverReloads} from '../../web/net/tab_storage.js';
import {there} from '../../web/ui/page_elements.js';

export async function start({server}) {
  const page = await there({
    told: '.sheet.told', paper: '.sheet.rewritten', controls: '#rewrite-controls', branches: '#rewrite-branches',
  });
  new Rewrite(page, server).start();
}

class Rewrite {
  constructor({told, paper, controls, branches}, server) {
    const find = selector => paper.querySelector(selector);
    this.choosing = new Choosing(controls);
    this.bans = new Bans(controls.querySelector('.never'));
    this.told = new Told(told);
    this.draft = new Draft(find('#rewrite-text'), {also: () => [paper, branches]});
    this.steering = new Steering({
      branches, draft: this.draft, server, controls,
      paper: new Paper(this.draft, {mirror: find('.mirror'), strip: find('.strip'), count: find('.count')}),
      settings: () => this.choosing.settings,
      drawn: () => this.choosing.drawn,
      told: () => ({...this.told.fields, banned: this.bans.ids}),
    });
    travelling(this.draft, find('.undo'), find('.redo'));
    copying(this.draft, find('#rewrite-copy'), new Notice(find('.notice')));
  }

  start() {
    for (const part of [this.told, this.bans, this.choosing]) part.addEventListener('change', () => this.steering.adjust());
    this.told.addEventListener('changing', () => this.steering.unsettle());
    this.steering.branches.addEventListener('ban', ({detail}) => this.bans.add(detail.id, detail.text));
    keepOverReloads('rewrite', {
      holds: () => this.draft.text || this.told.holds,
      take: () => ({draft: this.draft.state(), told: this.told.state()}),
      give: ({draft, told}) => { this.told.load(told); this.draft.load(draft); },
    });
    this.steering.start();
  }
}
