// The Rewrite tab: a new text among branches, written from an instruction and a source.
/** @import {BranchViewElement, ComponentArguments, Server} from '../../web/core/types.d.ts' */
import {BanChips} from '../../web/ui/ban_chips.js';
import {BranchController} from '../../web/ui/branch_controller.js';
import {BranchSettings} from '../../web/ui/branch_settings.js';
import {InstructionAndSource} from './instruction_and_source.js';
import {Notice} from '../../web/ui/notice.js';
import {ShortenedSource} from './shortened_source.js';
import {TextOwner} from '../../web/ui/text_owner.js';
import {TextMirror} from '../../web/ui/text_mirror.js';
import {connectCopyButton, connectUndoButtons} from '../../web/ui/sheet_buttons.js';
import {find, setText} from '../../web/ui/elements.js';
import {keepAcrossReloads} from '../../web/net/tab_storage.js';
import {fillField, offerExample, offerWrittenText} from '../../web/ui/example_button.js';
import {onDetail} from '../../web/ui/events.js';
import {pageElements} from '../../web/ui/page_elements.js';

const NO_SOURCE = 'This instruction is about a source, and there is none yet: paste or write one under Source.';
const EXAMPLE = 'The lighthouse was old, and it was very old, and the keeper who kept the lighthouse was also old, and every day he '
  + 'climbed up all of the many stairs that there were in order to light the lamp that was at the top. He did this because the ships '
  + 'needed it, and because he had always done it, and because nobody else was there.';

/** @param {ComponentArguments} component */
export async function start({server}) {
  const page = await pageElements({
    prompt: '.sheet.told', sheet: '.sheet.rewritten', controls: '#rewrite-controls', branches: '#rewrite-branches',
  });
  new RewriteTab(page, server).start();
}

class RewriteTab {
  /**
   * @param {{prompt: HTMLElement, sheet: HTMLElement, controls: HTMLElement, branches: BranchViewElement}} elements
   * @param {Server} server
   */
  constructor({prompt, sheet, controls, branches}, server) {
    this.settings = new BranchSettings(controls);
    this.bans = new BanChips(find(controls, '.never'));
    this.needs = find(branches, '.needs');
    this.begins = find(branches, '.begins');
    this.prompt = new InstructionAndSource(prompt, element => new ShortenedSource(element, {server, page: () => this.controller.requests.page}));
    this.draft = new TextOwner(find(sheet, '#rewrite-text', HTMLTextAreaElement), {also: () => [sheet, controls, branches]});
    this.controller = new BranchController({
      branches, draft: this.draft, server, controls,
      mirror: new TextMirror(this.draft, {mirror: find(sheet, '.mirror'), strip: find(sheet, '.strip'), count: find(sheet, '.count'), caretNote: find(sheet, '.caret-note')}),
      settings: () => this.settings.settings,
      drawn: () => this.settings.drawn,
      prompt: () => ({...this.prompt.fields, banned: this.bans.ids}),
      bannedTexts: () => this.bans.texts,
      lacks: () => this.#lacks(),
      onNews: news => this.prompt.short.take(news),
    });
    connectUndoButtons(this.draft, find(sheet, '.undo'), find(sheet, '.redo'));
    const notice = new Notice(find(sheet, '.notice'));
    connectCopyButton(this.draft, find(sheet, '#rewrite-copy'), notice);
    find(sheet, '.skip').addEventListener('click', () => this.controller.goToRows());
  }

  start() {
    const {controller, draft, prompt} = this;
    for (const part of [prompt, this.bans, this.settings]) part.addEventListener('change', () => controller.settingsChanged());
    prompt.addEventListener('changing', () => controller.promptChanging());
    onDetail(controller.branches, 'ban', ({id, text}) => this.bans.add(id, text));
    this.bans.undoWith(controller.draft);
    // The stored fields keep their names: browsers hold content of earlier versions.
    keepAcrossReloads('rewrite', {
      boxes: [prompt.box, draft.box],
      holds: () => draft.text || prompt.holds,
      inProgress: () => draft.text || prompt.hasOwnInstruction,
      take: () => ({draft: draft.state(), told: prompt.state()}),
      give: stored => {
        prompt.load(stored.told);
        draft.load(stored.draft);
      },
    });
    const example = {fill: () => fillField(prompt.box, EXAMPLE), field: prompt.box, changes: [prompt, prompt.box, draft]};
    offerExample(prompt.element, {...example, holds: () => prompt.holds || draft.text});
    offerWrittenText(prompt.element, prompt.box);
    offerExample(this.needs, {...example, holds: () => prompt.box.value || draft.text});
    controller.start();
  }

  /** What is said in place of the rows where a source is missing; empty if none is. */
  #lacks() {
    const sentence = this.prompt.needsSource ? NO_SOURCE : '';
    setText(find(this.needs, '.sentence'), sentence);
    this.needs.hidden = !sentence;
    this.begins.hidden = Boolean(sentence);
    return sentence;
  }
}
