// The Internals tab: a text or a conversation goes to the server, and every token comes back with what the model thought
// there. The sliders ask nobody.
import * as header from '../../web/ui/header.js';
import {MessageEditor} from './message_editor.js';
import {ReadingProgress} from '../../web/ui/reading_progress.js';
import {ServerRequests} from '../../web/net/requests.js';
import {formatCount} from '../../web/core/branch_sentences.js';
import {keepAcrossReloads} from '../../web/net/tab_storage.js';
import {lineElements} from './token_boxes.js';
import {listenToBoxKeys, moveTabStop} from './box_keys.js';
import {paintDetails} from './token_details.js';
import {pageElements} from '../../web/ui/page_elements.js';

const SETTLES = 400;   // milliseconds without a key before a text is looked into
const ASKED = {k: 1, depth: 1};
const EMPTY = 'Write something: its tokens are shown here, and what the model thought at each.';
const NO_CHAT = 'There is no conversation in “Type assistant” yet.';
const WAITING = 'Your text is looked into when the model is ready.';

export async function start({server}) {
  const page = await pageElements({asked: '.sheet.asked', shown: '#internals'});
  new InternalsTab(page, server).start();
}

class InternalsTab {
  revision = 0;    // of what is looked into
  view = null;     // what was found: every token, and the odds behind it
  roles = null;    // of the messages that were looked into; null for a text
  at = 0;          // the token that is told of
  #settling = 0;

  constructor({asked, shown}, server) {
    const find = selector => shown.querySelector(selector);
    Object.assign(this, {
      asked, shown, lines: find('.lines'), legend: find('.legend'), thought: find('.thought'),
      temperature: find('#internals-temperature'), topP: find('#internals-top-p'),
      text: asked.querySelector('#internals-text'), conversation: new MessageEditor(asked.querySelector('.talk')),
      line: new ReadingProgress(find('.says'), {waiting: WAITING, marked: shown}),
    });
    this.requests = new ServerRequests({
      server,
      given: () => this.given,
      heard: (news, {revision}) => { if (revision === this.revision) this.heard(news); },
      lost: sentence => this.line.say(sentence, 'error'),
      unknown: () => {},
    });
  }

  start() {
    this.text.addEventListener('input', () => this.changed());
    this.conversation.addEventListener('change', () => this.changed());
    for (const kind of this.asked.querySelectorAll('[name=internals-kind]')) kind.addEventListener('change', () => this.turn());
    this.asked.querySelector('.take').addEventListener('click', () => this.take());
    for (const slider of [this.temperature, this.topP]) slider.addEventListener('input', () => this.heat(slider));
    document.addEventListener('lookahead:ready', () => this.look());
    keepAcrossReloads('internals', {
      holds: () => this.text.value || !this.conversation.empty,
      take: () => ({talks: this.talks, text: this.text.value, messages: this.conversation.messages}),
      give: kept => this.load(kept),
    });
    this.listen();
    this.look();
  }

  // What stood here before.
  load({talks = false, text = '', messages = []}) {
    this.text.value = text;
    if (messages.length) this.conversation.load(messages);
    this.asked.querySelector(`[value=${talks ? 'conversation' : 'text'}]`).checked = true;
    this.face();
  }

  listen() {
    const boxAt = ({target}) => target.closest('.box'), stretchAt = ({target}) => target.closest('[data-of]');
    listenToBoxKeys(this.lines);
    this.lines.addEventListener('click', event => {
      const stretch = stretchAt(event), box = boxAt(event) ?? (stretch && this.box(stretch.dataset.of.split(' ').at(-1)));
      if (box) this.tell(box);
    });
    this.lines.addEventListener('pointerover', event => this.mark(boxAt(event) ?? stretchAt(event)));
    this.lines.addEventListener('pointerleave', () => this.mark(this.lines.querySelector('.box:focus-visible')));
    this.lines.addEventListener('focusin', event => this.mark(boxAt(event)));
    this.lines.addEventListener('focusout', () => this.mark(null));
  }

  get talks() { return this.asked.querySelector('[value=conversation]').checked; }

  get given() {
    const {revision} = this;
    return this.talks ? {...ASKED, revision, messages: this.conversation.messages} : {...ASKED, revision, text: this.text.value};
  }

  get nothing() { return this.talks ? this.conversation.empty : !this.text.value; }

  // A text instead of a conversation, or the other way round.
  turn() {
    this.face();
    this.changed();
  }

  face() {
    this.asked.querySelector('.plain').hidden = this.talks;
    this.asked.querySelector('.talk').hidden = !this.talks;
  }

  // The conversation of another tab: whoever has one and hears of this says so.
  take() {
    const detail = {messages: []};
    document.dispatchEvent(new CustomEvent('conversation', {detail}));
    if (detail.messages.length) this.conversation.take(detail.messages);
    else this.line.say(NO_CHAT, this.line.state);
  }

  changed() {
    clearTimeout(this.#settling);
    this.requests.drop();
    this.revision += 1;
    this.shown.toggleAttribute('data-stale', Boolean(this.view));
    this.#settling = setTimeout(() => this.look(), SETTLES);
  }

  look() {
    if (this.nothing) return this.clear(EMPTY, 'empty');
    this.line.say('Reading …', 'thinking');
    this.requests.ask({length: JSON.stringify(this.given).length});
  }

  heard(news) {
    if (news.state === 'waiting') return this.line.wait(news);
    header.clearErrors(this);
    if (news.state === 'error') this.clear(news.sentence, 'error');
    else if (news.view) this.show(news.view);
    else if (news.reading) this.line.progress(news.reading);
  }

  // Every token as a box; first told of is the one to come.
  show(view) {
    this.view = view;
    this.roles = this.talks ? this.conversation.messages.map(({role}) => role) : null;
    this.lines.replaceChildren(...lineElements(view));
    this.shown.removeAttribute('data-stale');
    this.legend.hidden = this.thought.hidden = false;
    this.tell(this.box(view.tokens.length - 1));
    const {passes, tokens} = view.cost;
    const cost = passes ? `${formatCount(tokens, 'token')} read in ${formatCount(passes, 'pass', 'passes')}` : 'all of it was known';
    this.line.say(`${formatCount(view.tokens.length - 1, 'token')} · ${cost}`, 'settled');
  }

  box(place) { return this.lines.querySelector(`[data-token="${place}"]`); }

  // What the model thought at a token.
  tell(box) {
    this.lines.querySelector('[aria-current]')?.removeAttribute('aria-current');
    box.setAttribute('aria-current', 'true');
    moveTabStop(this.lines, box);
    this.at = Number(box.dataset.token);
    this.paint();
  }

  paint() {
    const wanted = {temperature: this.temperature.valueAsNumber, topP: this.topP.valueAsNumber};
    paintDetails(this.thought, this.view, this.at, wanted, this.roles);
  }

  heat(slider) {
    slider.closest('label').querySelector('output').value = slider.valueAsNumber;
    if (this.view) this.paint();
  }

  // The text of a token and the tokens of a text, where one of both is pointed at.
  mark(node) {
    for (const marked of this.lines.querySelectorAll('[data-marked]')) marked.removeAttribute('data-marked');
    if (!node) return;
    const stretches = node.dataset.of ? [node] : [...this.lines.querySelectorAll(`[data-of~="${node.dataset.token}"]`)];
    const boxes = stretches.flatMap(({dataset}) => dataset.of.split(' ').map(place => this.box(place)));
    for (const one of [...stretches, ...boxes]) one.setAttribute('data-marked', '');
  }

  clear(sentence, state) {
    this.requests.drop();
    this.view = null;
    this.lines.replaceChildren();
    this.shown.removeAttribute('data-stale');
    this.legend.hidden = this.thought.hidden = true;
    this.line.say(sentence, state);
  }
}
