// The Internals tab: a text or a conversation is analysed by the server, and every token is shown with the model's odds
// there. The sliders need no request.
/** @import {BranchRequest, ComponentArguments, InternalsView, Message, News, Server} from '../../web/core/types.d.ts' */
import {MessageEditor} from './message_editor.js';
import {ReadingProgress} from '../../web/ui/reading_progress.js';
import {beginningOf} from '../../web/core/text_words.js';
import {closestTo, dispatch} from '../../web/ui/events.js';
import {fillField, offerExample} from '../../web/ui/example_button.js';
import {find, findAll, scrollBehavior, setSpokenText} from '../../web/ui/elements.js';
import {followHiddenText} from '../../web/ui/hidden_text.js';
import {keepAcrossReloads} from '../../web/net/tab_storage.js';
import {lineElements} from './token_boxes.js';
import {listenToBoxKeys, moveTabStop, scrollWholeInto} from './box_keys.js';
import {pageElements} from '../../web/ui/page_elements.js';
import {progressRequests} from '../../web/ui/progress_requests.js';
import {LOW, WIDE} from '../../web/ui/window_sizes.js';
import {paintDetails} from './token_details.js';
import {spokenSummary, tokensSentence} from './token_figures.js';
import {spokenToken, tokenLabel} from './visible_signs.js';

const TEXT_SETTLES = 400;   // milliseconds without a key before a text is analysed
const MARGIN = 8;           // pixels above a token when the page scrolls to its details
const SETTINGS = {k: 1, depth: 1};
const EXAMPLE = 'A naïve fox 🦊 said: “Antidisestablishmentarianism!”\nThen it went home.';
const EXAMPLE_CONVERSATION = [{role: 'user', content: 'What colour is the sea?'}, {role: 'assistant', content: 'The sea is'}];
const EMPTY = 'Write something: its tokens are shown here, and how likely the model found each.';
const NO_CONVERSATION = 'There is no conversation in “Type assistant” yet.';
const LOADING = 'Your text is analysed when the model is ready.';

/** @param {ComponentArguments} component */
export async function start({server}) {
  const page = await pageElements({source: '.sheet.asked', result: '#internals'});
  new InternalsTab(page, server).start();
}

class InternalsTab {
  revision = 0;   // of the text or the conversation
  /** @type {InternalsView | null} */
  view = null;
  /**
   * The roles of the analysed messages; null for a text.
   * @type {string[] | null}
   */
  roles = null;
  shownToken = 0;   // the index of the token whose details are shown
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #settling;

  /** @param {{source: HTMLElement, result: HTMLElement}} elements @param {Server} server */
  constructor({source, result}, server) {
    this.source = source;
    this.result = result;
    this.lines = find(result, '.lines');
    this.legend = find(result, '.legend');
    this.details = find(result, '.thought');
    this.temperature = find(result, '#internals-temperature', HTMLInputElement);
    this.topP = find(result, '#internals-top-p', HTMLInputElement);
    this.text = find(source, '#internals-text', HTMLTextAreaElement);
    this.conversationChoice = find(source, '[value=conversation]', HTMLInputElement);
    this.conversation = new MessageEditor(find(source, '.talk'));
    this.line = new ReadingProgress(find(result, '.says'), {waiting: LOADING, announcement: find(result, '.announcement'), marked: result});
    this.requests = progressRequests(server, this.line, {
      revision: () => this.revision, makeRequest: () => this.#makeRequest(), onNews: (news) => this.#takeNews(news),
    });
  }

  start() {
    this.text.addEventListener('input', () => this.#changed());
    followHiddenText(this.text);
    this.conversation.addEventListener('change', () => this.#changed());
    for (const choice of findAll(this.source, '[name=internals-kind]')) choice.addEventListener('change', () => this.#onKind());
    find(this.source, '.take').addEventListener('click', () => this.#takeConversation());
    for (const slider of [this.temperature, this.topP]) slider.addEventListener('input', () => this.#onSlider(slider));
    document.addEventListener('lookahead:ready', () => this.#analyse());
    // The stored fields keep their names: browsers hold content of earlier versions.
    keepAcrossReloads('internals', {
      boxes: [this.text],
      holds: () => this.text.value || !this.conversation.empty,
      take: () => ({talks: this.#isConversation, text: this.text.value, messages: this.conversation.messages}),
      give: stored => this.#load(stored),
    });
    offerExample(find(this.source, '.plain'), {holds: () => this.text.value, fill: () => fillField(this.text, EXAMPLE), field: this.text, changes: [this.text]});
    offerExample(find(this.source, '.talk'), {
      holds: () => !this.conversation.empty, fill: () => this.#fillConversation(), field: () => find(this.source, '.turn:last-child textarea'), changes: [this.conversation],
    });
    this.#listen();
    this.#analyse();
  }

  #fillConversation() {
    this.conversation.load(EXAMPLE_CONVERSATION);
    this.#changed();
  }

  /** @param {{talks?: boolean, text?: string, messages?: Message[]}} stored */
  #load({talks = false, text = '', messages = []}) {
    this.text.value = text;
    if (messages.length) this.conversation.load(messages);
    find(this.source, `[value=${talks ? 'conversation' : 'text'}]`, HTMLInputElement).checked = true;
    this.#showKind();
  }

  #listen() {
    const boxAt = (/** @type {Event} */ event) => closestTo(event, '.box');
    const stretchAt = (/** @type {Event} */ event) => closestTo(event, '[data-of]');
    listenToBoxKeys(this.lines);
    this.lines.addEventListener('click', event => {
      const box = boxAt(event), last = stretchAt(event)?.dataset.of?.split(' ').at(-1);
      if (box) this.#choose(box);
      else if (last !== undefined) this.#choose(this.#box(last));
    });
    this.lines.addEventListener('pointerover', event => this.#mark(boxAt(event) ?? stretchAt(event)));
    this.lines.addEventListener('pointerleave', () => this.#mark(this.lines.querySelector('.box:focus-visible')));
    this.lines.addEventListener('focusin', event => this.#mark(boxAt(event)));
    this.lines.addEventListener('focusout', () => this.#mark(null));
  }

  get #isConversation() { return this.conversationChoice.checked; }

  /** @returns {BranchRequest} */
  #makeRequest() {
    const {revision} = this;
    if (this.#isConversation) return {...SETTINGS, revision, messages: this.conversation.messages};
    return {...SETTINGS, revision, text: this.text.value};
  }

  /** A text was chosen instead of a conversation, or the other way round. */
  #onKind() {
    this.#showKind();
    this.#changed();
  }

  #showKind() {
    find(this.source, '.plain').hidden = this.#isConversation;
    find(this.source, '.talk').hidden = !this.#isConversation;
  }

  /** Take the conversation of the Type assistant tab, which answers the event. */
  #takeConversation() {
    const detail = {messages: /** @type {Message[]} */ ([])};
    dispatch(document, 'conversation', detail);
    if (detail.messages.length) this.conversation.replaceBy(detail.messages);
    else this.line.show(NO_CONVERSATION, this.line.state);
  }

  #changed() {
    clearTimeout(this.#settling);
    this.requests.cancel();
    this.revision += 1;
    this.result.toggleAttribute('data-stale', Boolean(this.view));
    this.#settling = setTimeout(() => this.#analyse(), TEXT_SETTLES);
  }

  #analyse() {
    const empty = this.#isConversation ? this.conversation.empty : !this.text.value;
    if (empty) {
      this.#clear(EMPTY, 'empty');
    } else {
      this.line.show('Reading …', 'thinking');
      this.requests.schedule({length: JSON.stringify(this.#makeRequest()).length});
    }
  }

  /** @param {News} news */
  #takeNews(news) {
    if (news.state === 'error') this.#clear(news.sentence ?? '', 'error');
    else if (news.view) this.#show(news.view);
    else if (news.reading) this.line.progress(news.reading);
  }

  /**
   * Draw every token as a box, and the details of the token to come. Another text is shown from its beginning; the
   * list stays scrolled as it is if both texts begin alike.
   * @param {InternalsView} view
   */
  #show(view) {
    const isOther = !this.view || beginningOf(view.tokens) !== beginningOf(this.view.tokens);
    this.view = view;
    this.roles = this.#isConversation ? this.conversation.messages.map(({role}) => role) : null;
    this.lines.replaceChildren(...lineElements(view));
    this.result.removeAttribute('data-stale');
    this.#showLegend(view);
    this.details.hidden = false;
    if (isOther) this.lines.scrollTop = 0;
    this.#select(this.#box(view.tokens.length - 1));
    this.line.show(tokensSentence(view.tokens.length - 1, view.cost.passes), 'settled');
  }

  /** Show the legend, with the entries of what the boxes show. @param {InternalsView} view */
  #showLegend({tokens, spelled}) {
    const labels = findAll(this.lines, '.box .spelled').map(({textContent}) => textContent).join(''), byTemplate = this.lines.querySelector('.box[data-template]') !== null;
    const [part] = findAll(this.lines, '.box[data-part]'), token = part && tokens[Number(part.dataset.token)];
    if (token && token.id !== null) setSpokenText(find(this.legend, '.key.part'), tokenLabel(spelled[token.id]), spokenToken(token, spelled[token.id]));
    /** @type {Record<string, boolean>} */
    const shown = {
      template: byTemplate && this.#isConversation, start: byTemplate && !this.#isConversation,
      part: Boolean(part), space: labels.includes('␣'), break: labels.includes('↵'),
    };
    for (const entry of findAll(this.legend, '.entry')) entry.hidden = !shown[entry.dataset.entry ?? ''];
    this.legend.hidden = false;
  }

  /** @param {number | string} index */
  #box(index) { return find(this.lines, `[data-token="${index}"]`); }

  /**
   * Show the details of a token.
   * @param {HTMLElement} box
   */
  #select(box) {
    this.lines.querySelector('[aria-current]')?.removeAttribute('aria-current');
    box.setAttribute('aria-current', 'true');
    moveTabStop(this.lines, box);
    this.shownToken = Number(box.dataset.token);
    this.#paintDetails();
  }

  /**
   * Show the details of a token that a person has clicked, and announce them.
   * @param {HTMLElement} box
   */
  #choose(box) {
    this.#select(box);
    scrollWholeInto(this.lines, box);
    if (this.view) this.line.announce(spokenSummary(this.view, this.shownToken, this.#processing));
    this.#scrollToDetails(box);
  }

  /**
   * Scroll the page if the first lines of the details are below the window: as far as the token stays in sight, but at least
   * until those lines are seen. In a low window the tokens stand beside the details, and the page stays as it is.
   * @param {HTMLElement} box
   */
  #scrollToDetails(box) {
    if (matchMedia(`${WIDE} and ${LOW}`).matches) return;
    const below = find(this.details, '.controls').getBoundingClientRect().top - innerHeight;
    if (below <= 0) return;
    const rest = this.details.getBoundingClientRect().bottom - innerHeight, room = box.getBoundingClientRect().top - MARGIN;
    scrollBy({top: Math.max(below, Math.min(rest, room)), behavior: scrollBehavior()});
  }

  get #processing() { return {temperature: this.temperature.valueAsNumber, topP: this.topP.valueAsNumber}; }

  #paintDetails() {
    if (this.view) paintDetails(this.details, this.view, this.shownToken, this.#processing, this.roles);
  }

  /** @param {HTMLInputElement} slider */
  #onSlider(slider) {
    const label = slider.closest('label');
    if (label) find(label, 'output', HTMLOutputElement).value = slider.value;
    this.#paintDetails();
  }

  /**
   * Mark the text of a token, or the tokens of a text, where one of them is pointed at.
   * @param {HTMLElement | null} pointed
   */
  #mark(pointed) {
    for (const marked of findAll(this.lines, '[data-marked]')) marked.removeAttribute('data-marked');
    if (!pointed) return;
    const stretches = pointed.dataset.of ? [pointed] : findAll(this.lines, `[data-of~="${pointed.dataset.token}"]`);
    const boxes = stretches.flatMap(({dataset}) => (dataset.of ?? '').split(' ').map(index => this.#box(index)));
    for (const one of [...stretches, ...boxes]) one.setAttribute('data-marked', '');
  }

  /** @param {string} sentence @param {string} state */
  #clear(sentence, state) {
    this.requests.cancel();
    this.view = null;
    this.lines.replaceChildren();
    this.result.removeAttribute('data-stale');
    this.legend.hidden = this.details.hidden = true;
    this.line.show(sentence, state);
  }
}
