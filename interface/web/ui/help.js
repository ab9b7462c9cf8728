// The help of the tabs: a dialog that a tab's button “?” opens, or the key where nobody is writing. It explains words and keys,
// and has the sentences of the tab's controls. Write has a dialog of its own, with the same lines.
/** @import {Topic} from '../core/help_topics.js' */
import {NO_KEYS, TOPICS, controlsTopic} from '../core/help_topics.js';
import {closeOnClick, findAll, make, setText} from './elements.js';
import {closestTo} from './events.js';
import {isHelp} from '../core/shortcuts.js';

const BUTTONS = '#help, .help[data-help]';
const OF_ROWS = '.rows, .rest, .cover, .strip';   // what is explained there is data, or stands under “Words of this page”
const WRITTEN = 'textarea, select, [contenteditable], input:not([type=range], [type=checkbox], [type=radio])';
const MAC = 'On a Mac, ⌘ does for undo and redo what Ctrl does here.';

/**
 * Let each button `.help` of the page open the help that its `data-help` names.
 * @param {HTMLElement} page
 * @param {Element} around the dialog: an element to which the page's style sheets apply
 */
export function listenToHelp(page, around) {
  const heading = make('h2'), content = make('div', {className: 'content'});
  const close = make('button', {className: 'round', text: '×', ariaLabel: 'Close'});
  close.dataset.close = '';
  const dialog = make('dialog', {className: 'help-dialog'}, make('header', {}, heading, close), content);
  closeOnClick(dialog);
  around.append(dialog);
  const open = (/** @type {HTMLElement} */ button) => {
    const {help = ''} = button.dataset, name = nameOf(page);
    setText(heading, `Help: ${name}`);
    dialog.setAttribute('aria-label', `Help: ${name}`);
    content.replaceChildren(...topicsOf(button, help).flatMap(topicElements));
    dialog.showModal();
    dialog.scrollTop = 0;
  };
  page.addEventListener('click', event => {
    const button = closestTo(event, '.help[data-help]');
    if (button) open(button);
  });
  document.addEventListener('keydown', event => {
    const button = isHelp(event) && !closestTo(event, WRITTEN) && !document.querySelector('dialog[open]') && findAll(page, BUTTONS).find(one => one.checkVisibility());
    if (!button) return;
    event.preventDefault();
    button.click();
  });
}

/** The name of the tab that is open, and of the one in it. @param {HTMLElement} page */
const nameOf = page => findAll(page, '[role=tab][aria-selected=true]').filter(one => one.checkVisibility()).map(one => one.textContent?.trim()).join(', ');

/**
 * The topics of a help, with the controls of its tab after its words.
 * @param {HTMLElement} button that opens it
 * @param {string} help
 * @returns {Topic[]}
 */
function topicsOf(button, help) {
  const topics = TOPICS[help] ?? [], panel = button.closest('.desk') ?? button, keys = topics.findIndex(({isOfKeys}) => isOfKeys);
  const explained = findAll(panel, '[data-tip], :is(.bar, .controls, .sheet-head) button[title]').filter(one => !one.closest(OF_ROWS));
  const controls = controlsTopic(explained.map(one => [nameOfControl(one), one.dataset.tip || one.title]));
  return [...topics.slice(0, keys), ...(controls.lines.length ? [controls] : []), ...topics.slice(keys)];
}

/** What a control is called: its `data-term`, or its own words, without signs and figures. @param {HTMLElement} element */
function nameOfControl(element) {
  if (element.dataset.term) return element.dataset.term;
  const words = element instanceof HTMLLabelElement ? element.querySelector('span') : element.querySelector('.says, .word') ?? element;
  return (words?.textContent ?? '').trim() || (element.ariaLabel ?? element.querySelector('[aria-label]')?.ariaLabel ?? '');
}

/**
 * A topic as elements of a dialog.
 * @param {Topic} topic
 */
export function topicElements({title, isOfKeys, lines}) {
  const list = make('dl', {}, ...lines.map(([term, meaning]) => make('div', {}, make('dt', {}, ...(isOfKeys ? keyElements(term) : [term])), make('dd', {text: meaning}))));
  return [make('h3', {text: title}), list, ...(lines.some(([term]) => isOfKeys && term === 'Ctrl Z') ? [make('p', {className: 'soft', text: MAC})] : [])];
}

/** @param {string} keys */
const keyElements = keys => keys.split(' ').flatMap(key => [NO_KEYS.includes(key) ? key : make('kbd', {text: key}), ' ']);
