// Elements of the page: find them, make them, change them. Every text is set as text, never as markup.

/**
 * The first element that matches a selector. Throws an error if there is none of this class.
 * @template {Element} [T=HTMLElement]
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new () => T} [kind] its class, HTMLElement unless given
 * @returns {T}
 */
export function find(root, selector, kind) {
  const found = root.querySelector(selector);
  if (!(found instanceof (kind ?? HTMLElement))) throw new Error(`There is no element ${selector} of the expected class.`);
  return /** @type {T} */ (found);
}

/**
 * All elements that match a selector.
 * @param {ParentNode} root
 * @param {string} selector
 * @returns {HTMLElement[]}
 */
export const findAll = (root, selector) => [...root.querySelectorAll(selector)].filter(one => one instanceof HTMLElement);

/**
 * The children of an element.
 * @param {Element} element
 */
export const childrenOf = element => /** @type {HTMLElement[]} */ ([...element.children]);

/**
 * Make an element with these properties and children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {{text?: string | number | null, [property: string]: unknown}} [properties] `text` is the element's text
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(tag, {text, ...properties} = {}, ...children) {
  const made = Object.assign(document.createElement(tag), tag === 'button' ? {type: 'button', ...properties} : properties);
  if (text !== undefined) made.textContent = text === null ? null : String(text);
  made.append(...children);
  return made;
}

/**
 * A text as nodes, and what a screen reader says in its place where that is another one, as of signs. The style of
 * `spoken-only` in page.css hides it from sight.
 * @param {string} text
 * @param {string} said
 * @returns {(Node | string)[]}
 */
export const spokenAs = (text, said) =>
  (text === said ? [text] : [make('span', {text, ariaHidden: 'true'}), make('span', {text: said, className: 'spoken-only', dir: 'auto'})]);

/**
 * Set an element's text, and what a screen reader says in its place, see `spokenAs`. An equal text is not set again.
 * @param {Element} element
 * @param {string} text
 * @param {string} said
 */
export function setSpokenText(element, text, said) {
  const parts = spokenAs(text, said), texts = parts.map(part => (part instanceof Node ? part.textContent : part));
  if (element.textContent !== texts.join('')) element.replaceChildren(...parts);
}

/**
 * Make an element as the last child of another.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {Element} parent
 * @param {K} tag
 * @param {string} [className]
 * @returns {HTMLElementTagNameMap[K]}
 */
export function appendNew(parent, tag, className = '') {
  const made = make(tag, {className});
  parent.append(made);
  return made;
}

/**
 * Whether an element is a field in which text is written.
 * @param {Element | null} element
 * @returns {element is HTMLTextAreaElement | HTMLInputElement}
 */
export const isTextField = element => element instanceof HTMLTextAreaElement || (element instanceof HTMLInputElement && element.type === 'text');

const LIVE = '[aria-live], [role=status], [role=alert], output';

/**
 * Set an element's text. An equal text is not set again: a live region would announce it once more. Outside live regions the
 * element keeps its text node, because a new node makes the browser check the `:has()` rules of all elements around it. In a live
 * region the node is replaced, so that the whole text is announced and not only the part that differs.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent === text) return;
  const [own, ...others] = element.childNodes;
  if (text && own instanceof Text && !others.length && !element.closest(LIVE)) own.data = text;
  else element.textContent = text;
}

/**
 * Set an attribute; null and false remove it.
 * @param {Element} element
 * @param {string} name
 * @param {string | number | boolean | null | undefined} value
 */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

/**
 * Remove an element's children beyond the first so many.
 * @param {Element} element
 * @param {number} count
 */
export const trimChildren = (element, count) => { while (element.children.length > count) element.lastElementChild?.remove(); };

/**
 * Copy a text to the clipboard, also on a page that is not served securely.
 * @param {string} text
 * @param {Element} [holder] where a field for the copy may be inserted: an open dialog makes the rest inert
 * @returns {Promise<boolean>} whether it was copied
 */
export async function copyText(text, holder = document.body) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelecting(text, holder);
  }
}

/** @param {string} text @param {Element} holder */
function copyBySelecting(text, holder) {
  const focused = document.activeElement, field = make('textarea', {value: text, readOnly: true, className: 'off-screen'});
  holder.append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  if (focused instanceof HTMLElement) focused.focus({preventScroll: true});
  return done;
}

/**
 * Let the browser save a file.
 * @param {string | Blob} content
 * @param {string} name
 * @param {string} type its media type
 */
export function downloadFile(content, name, type) {
  const address = URL.createObjectURL(typeof content === 'string' ? new Blob([content], {type: `${type};charset=utf-8`}) : content);
  make('a', {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/**
 * Close a dialog at a click beside it, and at its buttons with `data-close`.
 * @param {HTMLDialogElement} dialog
 */
export function closeOnClick(dialog) {
  dialog.addEventListener('click', ({target}) => {
    if (target === dialog || /** @type {Element} */ (target).closest('[data-close]')) dialog.close();
  });
}

/** @type {Intl.DateTimeFormatOptions} */
const DAY_AND_TIME = {dateStyle: 'medium', timeStyle: 'short'};
/** @type {Intl.DateTimeFormatOptions} */
const TIME = {timeStyle: 'short'};

/**
 * A time for a list, with its day unless that is today.
 * @param {number} time in milliseconds
 */
export function formatTime(time) {
  const date = new Date(time), today = date.toDateString() === new Date().toDateString();
  return date.toLocaleString(undefined, today ? TIME : DAY_AND_TIME);
}

/**
 * How the page scrolls by itself: smoothly, unless the person wants little motion.
 * @returns {ScrollBehavior}
 */
export const scrollBehavior = () => (matchMedia('(prefers-reduced-motion: reduce)').matches ? 'instant' : 'smooth');
