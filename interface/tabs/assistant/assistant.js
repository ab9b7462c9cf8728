// The Type assistant tab: a conversation whose next message is written among branches, for either role. The text box holds
// the message in progress; the messages before it belong to the same history.
/** @import {BranchViewElement, ComponentArguments, ConversationState, Server, Span} from '../../web/core/types.d.ts' */
import {BanChips} from '../../web/ui/ban_chips.js';
import {BranchController} from '../../web/ui/branch_controller.js';
import {BranchSettings} from '../../web/ui/branch_settings.js';
import {EMPTY_CONVERSATION, OTHER_ROLE, ROLE_NAMES, allMessages, conversationFields, conversationReviver} from './conversation_state.js';
import {MessageList} from './message_list.js';
import {Notice} from '../../web/ui/notice.js';
import {TextOwner} from '../../web/ui/text_owner.js';
import {TextMirror} from '../../web/ui/text_mirror.js';
import {closestTo, onDetail} from '../../web/ui/events.js';
import {connectUndoButtons} from '../../web/ui/sheet_buttons.js';
import {find, findAll, setText} from '../../web/ui/elements.js';
import {offerExample} from '../../web/ui/example_button.js';
import {isSend} from '../../web/core/shortcuts.js';
import {keepAcrossReloads} from '../../web/net/tab_storage.js';
import {listTurns} from './sent_list.js';
import {pageElements} from '../../web/ui/page_elements.js';

const EMPTY = 'Nothing to send yet. ';
const ENDING = 'The message ends here: choosing this inserts nothing. Send passes the turn.';
const SENDS = 'Send, or Ctrl+Enter, passes the turn.';
/** @type {ConversationState} */
const EXAMPLE = {messages: [{role: 'user', content: 'How does a lighthouse help a ship at night?', spans: []}], role: 'assistant'};
/**
 * The notice after *Edit* has taken the conversation back to a message.
 * @param {number} number of the message
 * @param {boolean} followed whether a later message, or a text in progress, has given way to it
 */
const BACK = (number, followed) => `Back to message ${number}.${followed ? ' What followed is kept under “Sent and abandoned messages”.' : ''}`;
const ANEW = 'A new conversation. The one before is kept under “Sent and abandoned messages”.';
const ALREADY_NEW = 'This is a new conversation already.';

/** @param {ComponentArguments} component */
export async function start({server}) {
  const page = await pageElements({sheet: '.sheet.talking', controls: '#chat-controls', branches: '#chat-branches'});
  new AssistantTab(page, server).start();
}

class AssistantTab {
  /** @type {number | null} */
  undoes = null;   // the text's revision after the step that the notice can undo
  #takesFocus = false;   // whether the text box takes the focus after the turn that is being made
  #isUnsent = false;     // whether an empty message was to be sent, and nothing was written, nor another tab opened, since

  /**
   * @param {{sheet: HTMLElement, controls: HTMLElement, branches: BranchViewElement}} elements
   * @param {Server} server
   */
  constructor({sheet, controls, branches}, server) {
    this.sheet = sheet;
    this.branches = branches;
    this.unsent = find(sheet, '.unsent');
    this.roleName = find(sheet, '.whose');
    this.whichMessage = find(sheet, '.does');
    this.label = find(sheet, '.over');
    this.sendButton = find(sheet, '#send');
    this.settings = new BranchSettings(controls);
    this.bans = new BanChips(find(controls, '.never'));
    this.notice = new Notice(find(sheet, '.notice'));
    this.draft = new TextOwner(find(sheet, '#chat-text', HTMLTextAreaElement), {also: () => [sheet, controls, branches], earlier: EMPTY_CONVERSATION});
    this.messages = new MessageList(find(sheet, '#chat'), index => this.#edit(index));
    this.controller = new BranchController({
      branches, draft: this.draft, server, controls,
      mirror: new TextMirror(this.draft, {mirror: find(sheet, '.mirror'), strip: find(sheet, '.strip'), count: find(sheet, '.count'), caretNote: find(sheet, '.caret-note')}),
      settings: () => this.settings.settings,
      drawn: () => this.settings.drawn,
      prompt: () => ({...conversationFields(this.earlier), banned: this.bans.ids}),
      bannedTexts: () => this.bans.texts,
    });
    connectUndoButtons(this.draft, find(sheet, '.undo'), find(sheet, '.redo'));
    find(sheet, '.skip').addEventListener('click', () => this.controller.goToRows());
    listTurns(find(sheet, '.before', HTMLDetailsElement), {draft: this.draft, notice: this.notice});
    find(sheet, '#chat-new').addEventListener('click', event => this.#startAnew(event));
    this.sendButton.addEventListener('click', event => this.#send(event));
  }

  /** The conversation before the message in progress. */
  get earlier() { return this.draft.earlier ?? EMPTY_CONVERSATION; }

  start() {
    const {draft, branches} = this;
    for (const part of [this.bans, this.settings]) part.addEventListener('change', () => this.controller.settingsChanged());
    onDetail(branches, 'ban', ({id, text}) => this.bans.add(id, text));
    this.bans.undoWith(this.draft);
    branches.addEventListener('click', event => {
      if (!closestTo(event, '.end')) return;
      event.preventDefault();
      this.notice.show(ENDING);
    });
    branches.addEventListener('drawn', () => {
      for (const end of findAll(branches, `.end:not([aria-label$="${SENDS}"])`)) end.ariaLabel += ` ${SENDS}`;
    });
    onDetail(draft, 'change', ({kind, revision}) => {
      if (kind !== 'caret') this.#isUnsent = false;
      if (kind !== 'caret' && this.undoes !== null && revision !== this.undoes) this.#forgetUndo();
      this.#paint();
    });
    const sendByKey = (/** @type {KeyboardEvent} */ event) => {
      if (!isSend(event)) return;
      event.preventDefault();
      this.#send(event);
    };
    draft.box.addEventListener('keydown', sendByKey);
    branches.addEventListener('keydown', sendByKey);
    const holds = () => draft.text || this.earlier.messages.length;
    // The Internals tab asks for the conversation.
    onDetail(document, 'conversation', detail => {
      if (holds()) detail.messages = allMessages({earlier: this.earlier, text: draft.text});
    });
    keepAcrossReloads('assistant', {
      boxes: [draft.box],
      holds, inProgress: () => draft.text || (holds() && this.earlier !== EXAMPLE),
      take: () => draft.state(), give: state => draft.load(state), revive: conversationReviver(),
    });
    // Who comes back to this tab is told again whose message it is.
    document.addEventListener('click', event => {
      if (!this.#isUnsent || !closestTo(event, '[role=tab]')) return;
      this.#isUnsent = false;
      this.#paint();
    });
    offerExample(this.sheet, {holds, fill: () => this.#turn(null, 'example', EXAMPLE), field: draft.box, changes: [draft]});
    this.#paint();
    this.controller.start();
  }

  /**
   * Send the message in progress: the turn passes to the other role.
   * @param {Event} event
   */
  #send(event) {
    const {draft} = this, {messages, role} = this.earlier;
    if (draft.text.trim()) {
      const message = {role, content: draft.text, spans: draft.spans};
      this.#turn(event, 'send', {messages: [...messages, message], role: OTHER_ROLE[role]});
    } else {
      this.#isUnsent = true;
      this.unsent.textContent = '';   // or the same sentence would not be announced again
      this.#paint();
    }
  }

  /**
   * Go back to a message: it is in progress again.
   * @param {number} index
   */
  #edit(index) {
    const {messages} = this.earlier, {role, content, spans} = messages[index], followed = index + 1 < messages.length || this.draft.text !== '';
    if (this.#turn(null, 'edit', {messages: messages.slice(0, index), role}, content, spans)) this.#showWithUndo(BACK(index + 1, followed), 'Edit');
  }

  /** @param {Event} event */
  #startAnew(event) {
    if (!this.draft.text && !this.earlier.messages.length) this.notice.show(ALREADY_NEW);
    else if (this.#turn(event, 'anew', EMPTY_CONVERSATION)) this.#showWithUndo(ANEW, 'New conversation');
  }

  /**
   * Replace the message and the conversation. A touch leaves the keyboard hidden; key and mouse lead back to the text box.
   * @param {Event | null} event
   * @param {string} kind
   * @param {ConversationState} earlier
   * @param {string} [text]
   * @param {Span[]} [spans]
   */
  #turn(event, kind, earlier, text = '', spans = []) {
    const touch = event instanceof PointerEvent && event.pointerType === 'touch';
    this.#takesFocus = !touch && !this.draft.hasFocus;
    const isDone = this.draft.turn({kind, text, spans, earlier});
    this.#takesFocus = false;
    if (!isDone) return false;
    this.notice.clear();
    if (!touch) this.draft.box.focus({preventScroll: true});
    return true;
  }

  /** @param {string} sentence @param {string} button whose step the notice can undo */
  #showWithUndo(sentence, button) {
    this.undoes = this.draft.revision;
    this.notice.show(sentence, {label: `Undo “${button}”`, run: () => { this.draft.undo(); this.draft.box.focus({preventScroll: true}); }});
  }

  /** Something else was done since the step that the notice undoes: Undo would take that back. */
  #forgetUndo() {
    this.undoes = null;
    this.notice.clear();
  }

  #paint() {
    const {messages, role} = this.earlier;
    this.messages.show(messages);
    this.sheet.dataset.role = role;
    // In place of the words that it has no room for on the line of a phone.
    const isUnsent = this.#isUnsent, which = isUnsent ? '' : messages.length ? 'the next message' : 'the first message';
    // The label is the text box's name: where the box takes the focus its name is said, and is not to be announced as well.
    if (this.roleName.textContent !== ROLE_NAMES[role] || this.whichMessage.textContent !== which) this.label.ariaLive = this.#takesFocus ? 'off' : 'polite';
    // An equal text would be announced again.
    setText(this.unsent, isUnsent ? EMPTY : '');
    setText(this.roleName, ROLE_NAMES[role]);
    setText(this.whichMessage, which);
    this.sendButton.setAttribute('aria-label', `Send to the ${OTHER_ROLE[role]}`);
  }
}
