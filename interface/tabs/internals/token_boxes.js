// The tokens of a text as boxes, line by line beside the text that they stand for.
/** @import {InternalsToken, InternalsView, SpelledToken} from '../../web/core/types.d.ts' */
import {NEXT_TOKEN_LABEL, tokenInText} from './visible_signs.js';
import {make} from '../../web/ui/elements.js';
import {tokenLines} from './token_lines.js';

/**
 * The lines of a view as elements.
 * @param {InternalsView} view
 */
export function lineElements(view) {
  const {tokens, spelled} = view, last = tokens.length - 1;
  /** @param {number} index */
  const boxOf = index => {
    const token = tokens[index];
    return index === last || token.id === null ? nextTokenBox(index) : tokenBox(token, token.id, spelled[token.id], index);
  };
  return tokenLines(view).map(line => {
    const text = make('p', {className: 'text', dir: 'auto'}, ...line.stretches.map(stretchElement));
    return make('div', {className: 'line'}, text, make('div', {className: 'boxes'}, ...line.tokens.map(boxOf)));
  });
}

/**
 * Characters, with the indices of their tokens.
 * @param {{text: string, template: boolean, tokens: number[]}} stretch
 */
function stretchElement({text, template, tokens}) {
  const made = make('span', {text: text.replace(/\n/g, '↵').replace(/\t/g, '⇥')});
  made.dataset.of = tokens.join(' ');
  made.toggleAttribute('data-template', template);
  return made;
}

/** @type {(token: InternalsToken, id: number, spelled: SpelledToken, index: number) => HTMLElement} */
function tokenBox(token, id, spelled, index) {
  const {text, message, logprob} = token, part = spelled.bytes !== null;
  const label = tokenInText(token, spelled), made = boxElement(index, label, id);
  const notes = [message === null && 'of the template', part && 'part of a character', spelled.ended && 'an ending'];
  made.title = `position ${index}, id ${id}`;
  made.ariaLabel = [`“${label}”`, made.title, ...notes].filter(Boolean).join(', ');
  made.toggleAttribute('data-template', message === null);
  made.toggleAttribute('data-part', part);
  made.toggleAttribute('data-end', spelled.ended);
  Object.assign(made.dataset, {id, text});
  if (logprob !== null) made.dataset.p = String(Math.exp(logprob));
  made.style.setProperty('--odds', logprob === null ? '0%' : `${(100 * Math.exp(logprob)).toFixed(1)}%`);
  return made;
}

/** @param {number} index */
function nextTokenBox(index) {
  const made = boxElement(index, NEXT_TOKEN_LABEL, '');
  made.title = made.ariaLabel = 'The token to come';
  made.toggleAttribute('data-next', true);
  return made;
}

/** @type {(index: number, text: string, id: number | string) => HTMLElement} */
function boxElement(index, text, id) {
  const numbers = make('small', {}, make('span', {text: index, className: 'place'}), make('span', {text: id, className: 'id'}));
  const made = make('button', {className: 'box', tabIndex: -1}, make('span', {text, className: 'spelled', dir: 'auto'}), numbers);
  made.dataset.token = String(index);
  return made;
}
