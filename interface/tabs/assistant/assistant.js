// The Type assistant tab: a conversation of which either side is steered among branches. The text box holds the message
// in progress; the messages before it belong to the same history.
import {BanChips} from '../../web/ui/ban_chips.js';
import {BranchSettings} from '../../web/ui/branch_settings.js';
import {TextDraft} from '../../web/ui/text_draft.js';
import {EMPTY_CONVERSATION, ROLE_NAMES, OTHER_ROLE, conversationReviver, conversationFields, allMessages} from './conversation_state.js';
import {MessageList} from './message_list.js';
import {Notice} from '../../web/ui/notice.js';
import {TextMirror} from '../../web/ui/text_mirror.js';
import {BranchController} from '../../web/ui/branch_controller.js';
import {isSend} from '../../web/core/shortcuts.js';
import {keepAcrossReloads} from '../../web/net/tab_storage.js';
import {listTurns} from './sent_list.js';
import {pageElements} from '../../web/ui/page_elements.js';
import {connectUndoButtons} from '../../web/ui/sheet_buttons.js';

const EMPTY = 'There is nothing to send yet: write the message, or take its first words among the branches.';
const OVER = 'The message would end here; an ending inserts nothing. Send passes the turn.';
const BACK = number => `Back to message ${number}. What followed is kept under “Sent and abandoned messages”.`;
const ANEW = 'A new conversation. The one before is kept under “Sent and abandoned messages”.';
const BEGUN = 'This is a new conversation already.';

export async function start({server}) {
  const page = await pageElements({paper: '.sheet.talking', controls: '#chat-controls', branches: '#chat-branches'});
  new AssistantTab(page, server).start();
}

class AssistantTab {
  constructor({paper, controls, branches}, server) {
    const find = selector => paper.querySelector(selector);
    Object.assign(this, {paper, branches, whose: find('.whose'), does: find('.does'), sender: find('#send')});
    this.choosing = new BranchSettings(controls);
    this.bans = new BanChips(controls.querySelector('.never'));
    this.notice = new Notice(find('.notice'));
    this.draft = new TextDraft(find('#chat-text'), {also: () => [paper, branches], earlier: EMPTY_CONVERSATION});
    this.messages = new MessageList(find('#chat'), index => this.edit(index));
    this.steering = new BranchController({
      branches, draft: this.draft, server, controls,
      paper: new TextMirror(this.draft, {mirror: find('.mirror'), strip: find('.strip'), count: find('.count')}),
      settings: () => this.choosing.settings,
      drawn: () => this.choosing.drawn,
      told: () => ({...conversationFields(this.draft.earlier), banned: this.bans.ids}),
    });
    connectUndoButtons(this.draft, find('.undo'), find('.redo'));
    listTurns(find('.before'), this);
    find('#chat-new').addEventListener('click', event => this.anew(event));
    this.sender.addEventListener('click', event => this.send(event));
  }

  start() {
    const {draft, branches} = this;
    for (const part of [this.bans, this.choosing]) part.addEventListener('change', () => this.steering.adjust());
    branches.addEventListener('ban', ({detail}) => this.bans.add(detail.id, detail.text));
    branches.addEventListener('click', ({target}) => { if (target.closest('.end')) this.notice.say(OVER); });
    draft.addEventListener('change', () => this.show());
    draft.box.addEventListener('keydown', event => { if (isSend(event)) this.send(event); });
    const holds = () => draft.text || draft.earlier.messages.length;
    // The Internals tab asks what there is to look into.
    document.addEventListener('conversation', ({detail}) => { if (holds()) detail.messages = allMessages(draft); });
    keepAcrossReloads('assistant', {
      holds, take: () => draft.state(), give: state => draft.load(state), revive: conversationReviver(),
    });
    this.show();
    this.steering.start();
  }

  // The turn passes to the other role.
  send(event) {
    const {draft} = this, {messages, role} = draft.earlier;
    if (!draft.text.trim()) return this.notice.say(EMPTY);
    const message = {role, content: draft.text, spans: draft.spans};
    this.turn(event, 'send', {messages: [...messages, message], role: OTHER_ROLE[role]});
  }

  // One of the messages is in progress again.
  edit(index) {
    const {messages} = this.draft.earlier, {role, content, spans} = messages[index];
    if (this.turn(null, 'edit', {messages: messages.slice(0, index), role}, content, spans)) this.say(BACK(index + 1));
  }

  anew(event) {
    const {draft} = this;
    if (!draft.text && !draft.earlier.messages.length) return this.notice.say(BEGUN);
    if (this.turn(event, 'anew', EMPTY_CONVERSATION)) this.say(ANEW);
  }

  // A finger on a button leaves the keyboard down; from keys and mouse one goes on writing.
  turn(event, kind, earlier, text = '', spans = []) {
    if (!this.draft.turn({kind, text, spans, earlier})) return false;
    this.notice.clear();
    if (event?.pointerType !== 'touch') this.draft.box.focus({preventScroll: true});
    return true;
  }

  say(sentence) { this.notice.say(sentence, {label: 'Undo', run: () => this.draft.undo()}); }

  show() {
    const {messages, role} = this.draft.earlier;
    this.messages.show(messages);
    this.paper.dataset.role = role;
    this.whose.textContent = ROLE_NAMES[role];
    this.does.textContent = messages.length ? 'writes now' : 'writes first';
    this.sender.setAttribute('aria-label', `Send to the ${OTHER_ROLE[role]}`);
  }
}
