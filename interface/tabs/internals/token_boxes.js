// The tokens of a text as boxes, line by line beside the text that they stand for.
/** @import {InternalsToken, InternalsView, SpelledToken} from '../../web/core/types.d.ts' */
/** @import {TokenLine} from './token_lines.js' */
import {NEXT_TOKEN_LABEL, spokenToken, tokenInText} from './visible_signs.js';
import {charactersOfSeveralTokens, tokenLines} from './token_lines.js';
import {make} from '../../web/ui/elements.js';
import {formatPercent, quotedText, visibleText} from '../../web/core/figures_and_labels.js';

/**
 * The lines of a view as elements.
 * @param {InternalsView} view
 */
export function lineElements(view) {
  const {tokens, spelled} = view, last = tokens.length - 1;
  /** @param {number} index @param {string} [part] */
  const boxOf = (index, part) => {
    const token = tokens[index];
    return index === last || token.id === null ? nextTokenBox(index) : tokenBox(token, token.id, spelled[token.id], {index, part});
  };
  return tokenLines(view).map(line => {
    const text = make('p', {className: 'text', dir: 'auto'}, ...line.stretches.map(stretchElement));
    return make('div', {className: 'line'}, text, make('div', {className: 'boxes'}, ...boxesOf(line, boxOf)));
  });
}

/**
 * The boxes of a line; those of the tokens of one character are held together under the character.
 * @type {(line: TokenLine, boxOf: (index: number, part?: string) => HTMLElement) => HTMLElement[]}
 */
function boxesOf(line, boxOf) {
  const groups = new Map(charactersOfSeveralTokens(line).map(group => [group.tokens[0], group]));
  const inside = new Set([...groups.values()].flatMap(({tokens}) => tokens.slice(1)));
  return line.tokens.filter(index => !inside.has(index)).map(index => {
    const group = groups.get(index);
    return group ? characterElement(group, boxOf) : boxOf(index);
  });
}

/** @type {(group: {text: string, tokens: number[]}, boxOf: (index: number, part?: string) => HTMLElement) => HTMLElement} */
function characterElement({text, tokens}, boxOf) {
  const whole = make('span', {text: visibleText(text.trim() || text), className: 'whole', dir: 'auto', ariaHidden: 'true'}), count = tokens.length;
  const parts = tokens.map((index, place) => boxOf(index, `part ${place + 1} of ${count} of ${quotedText(text)}`));
  const made = make('div', {className: 'character'}, whole, make('div', {className: 'parts'}, ...parts));
  made.setAttribute('role', 'group');
  made.ariaLabel = `${quotedText(text)} in ${count} tokens`;
  return made;
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

/**
 * The box of a token; `part` says which part of which character it is, if it is one.
 * @type {(token: InternalsToken, id: number, spelled: SpelledToken, context: {index: number, part?: string}) => HTMLElement}
 */
function tokenBox(token, id, spelled, {index, part}) {
  const {text, message, logprob} = token, isPart = spelled.bytes !== null;
  const label = tokenInText(token, spelled), made = boxElement(index, label, id, `position ${index}, id ${id}`);
  const chance = logprob === null ? '' : `${formatPercent({p: Math.exp(logprob)})} chance`;
  const notes = [message === null && 'of the template', isPart && (part ?? 'part of a character'), spelled.ended && 'an ending'];
  // The numbers stand together as they are seen, for those who speak to their computer.
  made.ariaLabel = [`“${spokenToken(token, spelled)}” ${index}, ${id}: position and id`, chance, ...notes].filter(Boolean).join(', ');
  made.toggleAttribute('data-template', message === null);
  made.toggleAttribute('data-part', isPart);
  made.toggleAttribute('data-end', spelled.ended);
  Object.assign(made.dataset, {id, text});
  if (logprob !== null) made.dataset.p = String(Math.exp(logprob));
  made.style.setProperty('--odds', logprob === null ? '0%' : `${(100 * Math.exp(logprob)).toFixed(1)}%`);
  return made;
}

/** @param {number} index */
function nextTokenBox(index) {
  const made = boxElement(index, NEXT_TOKEN_LABEL, '', 'The token to come');
  made.ariaLabel = `The token to come, position ${index}`;
  made.toggleAttribute('data-next', true);
  return made;
}

/**
 * A box with its token, position and id. The spaces are not seen: they part the three where their text is compared with the name.
 * The title is that of its parts: a screen reader would read it after the name of the box, which says the same.
 * @type {(index: number, text: string, id: number | string, title: string) => HTMLElement}
 */
function boxElement(index, text, id, title) {
  const numbers = make('small', {title}, make('span', {text: index, className: 'place'}), ' ', make('span', {text: id, className: 'id'}));
  const made = make('button', {className: 'box', tabIndex: -1}, make('span', {text, title, className: 'spelled', dir: 'auto'}), ' ', numbers);
  made.dataset.token = String(index);
  return made;
}
