// The status at the top of the page: how far the model is loaded, or the latest error.
/** @import {ComponentArguments, LoadingStatus} from '../core/types.d.ts' */
import {find, setAttribute, setText} from './elements.js';
import {Tips} from './tips.js';
import {keepScrolledSliders} from './slider_touches.js';
import {dispatch} from './events.js';
import {listenToHelp} from './help.js';
import {modelFactsSentence} from '../core/model_facts.js';
import {listenToTabKeys} from './tab_keys.js';
import {openLinkedTabs} from './tab_links.js';
import {skipToText} from './skip_to_text.js';

/** @type {LoadingStatus} */
const OUTDATED = {state: 'error', fraction: null, sentence: 'The server has a newer version of this page. Reload the page; your text is kept.'};
/** @type {HTMLElement | null} */
let status = null;
/** @type {LoadingStatus} */
let loading = {state: 'loading', sentence: 'Starting'};
/** @type {LoadingStatus | null} */
let reload = null;            // of a server that was started again
let outdated = false;         // whether the server serves another version of the page
/** @type {Map<object, LoadingStatus & {place?: HTMLElement}>} */
const errors = new Map();     // by their owners, the latest last
/** Watches the places of errors: another tab may have been opened. @type {IntersectionObserver | null} */
let places = null;

/**
 * Draw what Python says of the model. `lookahead:ready` is dispatched on the document once, when it is loaded.
 * @param {Pick<ComponentArguments, 'element' | 'props' | 'watch'>} component
 */
export function mount({element, props, watch}) {
  status = find(element, '#status');
  places = new IntersectionObserver(() => paint());
  new Tips(document.body);
  keepScrolledSliders(document);
  skipToText(find(element, '.skip'));
  listenToTabKeys(document.body);
  listenToHelp(document.body, element.closest('.contain') ?? document.body);
  openLinkedTabs();
  const take = () => {
    const was = loading.state;
    loading = props.value;
    paint();
    if (loading.state === 'ready' && was !== 'ready') dispatch(document, 'lookahead:ready');
  };
  document.addEventListener('lookahead:outdated', () => {
    outdated = true;
    paint();
  });
  watch('value', take);
  take();
}

/**
 * Show an error until its owner clears it with null. It is shown only while its place is visible, not above other tabs.
 * @param {object} owner
 * @param {string | null} sentence
 * @param {HTMLElement} [place] the element that the error is about; without it the error is shown on every tab
 */
export function showError(owner, sentence, place) {
  const before = errors.get(owner)?.place;
  if (before) places?.unobserve(before);
  errors.delete(owner);
  if (sentence) errors.set(owner, {state: 'error', sentence, fraction: null, place});
  if (sentence && place) places?.observe(place);
  paint();
}

/**
 * Show how far a server that was started again has loaded its model, until it answers.
 * @param {LoadingStatus} progress
 */
export function showReload(progress) {
  reload = progress;
  paint();
}

/**
 * The server has answered: clear the owner's error.
 * @param {object} owner
 */
export function clearErrors(owner) {
  reload = null;
  showError(owner, null);
}

/** The state of the model: `loading`, `ready` or `error`. */
export const loadingState = () => loading.state;

/** The model's name as files and links carry it; null until it is loaded. */
export const modelName = () => (loading.state === 'ready' ? loading.sentence.split(' · ')[0] : null);

/** The latest error whose place is visible. */
const shownError = () => [...errors.values()].findLast(({place}) => !place || place.checkVisibility());

function paint() {
  if (!status) return;
  const {state, sentence, fraction} = (outdated && OUTDATED) || reload || shownError() || loading;
  const progress = find(status, 'progress', HTMLProgressElement);
  status.dataset.state = state;
  const line = find(status, '.sentence'), facts = state === 'ready' ? modelFactsSentence(sentence) : '';
  setText(line, sentence);
  setAttribute(line, 'aria-description', facts || null);
  setAttribute(status, 'data-tip', facts || null);
  setAttribute(status, 'title', facts ? null : sentence);   // it may be cut
  progress.hidden = fraction === null || fraction === undefined;
  progress.value = fraction ?? 0;
}
