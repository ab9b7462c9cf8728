// Tokens as boxes, line by line beside the text that they stand for.
import {NEXT_TOKEN_LABEL, tokenInText} from './visible_signs.js';
import {tokenLines} from './token_lines.js';
import {make} from '../../web/ui/elements.js';

// The lines of a view as elements.
export function lineElements(view) {
  const {tokens, spelled} = view, last = tokens.length - 1;
  const boxOf = index => (index === last ? blank(index) : box(tokens[index], spelled[tokens[index].id], index));
  return tokenLines(view).map(line => {
    const text = make('p', {className: 'text', dir: 'auto'}, ...line.stretches.map(stretch));
    return make('div', {className: 'line'}, text, make('div', {className: 'boxes'}, ...line.tokens.map(boxOf)));
  });
}

// Characters, and which tokens they are made of.
function stretch({text, template, tokens}) {
  const made = make('span', {text: text.replace(/\n/g, '↵').replace(/\t/g, '⇥')});
  made.dataset.of = tokens.join(' ');
  made.toggleAttribute('data-template', template);
  return made;
}

function box(token, spelled, index) {
  const {id, text, message, logprob} = token, part = spelled.bytes !== null;
  const shown = tokenInText(token, spelled), made = button(index, shown, id);
  const told = [message === null && 'of the template', part && 'part of a character', spelled.ended && 'an ending'];
  made.title = `position ${index}, id ${id}`;
  made.ariaLabel = [`“${shown}”`, made.title, ...told].filter(Boolean).join(', ');
  made.toggleAttribute('data-template', message === null);
  made.toggleAttribute('data-part', part);
  made.toggleAttribute('data-end', spelled.ended);
  Object.assign(made.dataset, {id, text});
  if (logprob !== null) made.dataset.p = Math.exp(logprob);
  made.style.setProperty('--odds', logprob === null ? '0%' : `${(100 * Math.exp(logprob)).toFixed(1)}%`);
  return made;
}

function blank(index) {
  const made = button(index, NEXT_TOKEN_LABEL, '');
  made.title = made.ariaLabel = 'The token to come';
  made.toggleAttribute('data-next', true);
  return made;
}

function button(index, text, id) {
  const place = make('small', {}, make('span', {text: index, className: 'place'}), make('span', {text: id, className: 'id'}));
  const made = make('button', {className: 'box', tabIndex: -1}, make('span', {text, className: 'spelled', dir: 'auto'}), place);
  made.dataset.token = index;
  return made;
}
