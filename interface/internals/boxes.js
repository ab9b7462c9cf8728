// Tokens as boxes, line by line beside the text that they stand for.
import {BLANK, written} from './signs.js';
import {make} from '../shared/elements.js';

// Bytes of which the last begin a character that others go on with.
const OPEN = /(?:^| )(?:[CD].|E.(?: [89AB].)?|F.(?: [89AB].){0,2})$/;

// The lines of a view: each the text of some tokens, up to a line break, and the tokens.
export function lines({tokens, spelled}) {
  const last = tokens.length - 1, nodes = [];
  let line = newLine(), waiting = [];
  tokens.forEach((token, index) => {
    line.boxes.push(index === last ? blank(index) : box(token, spelled[token.id], index));
    if (token.text || spelled[token.id]?.bytes) waiting.push(index);   // the parts of a character lead up to it
    if (!token.text) return;
    line.texts.push(stretch(token, waiting));
    waiting = OPEN.test(spelled[token.id].bytes ?? '') ? [index] : [];
    if (!token.text.endsWith('\n') || index + 1 >= last) return;
    nodes.push(drawn(line));
    line = newLine();
  });
  return [...nodes, drawn(line)];
}

const newLine = () => ({texts: [], boxes: []});

function drawn({texts, boxes}) {
  const text = make('p', {className: 'text', dir: 'auto'}, ...texts);
  return make('div', {className: 'line'}, text, make('div', {className: 'boxes'}, ...boxes));
}

// Characters, and which tokens they are made of.
function stretch({text, message}, places) {
  const made = make('span', {text: text.replace(/\n/g, '↵').replace(/\t/g, '⇥')});
  made.dataset.of = places.join(' ');
  made.toggleAttribute('data-template', message === null);
  return made;
}

function box(token, spelled, index) {
  const {id, text, message, logprob} = token, part = spelled.bytes !== null;
  const shown = written(token, spelled), made = button(index, shown, id);
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
  const made = button(index, BLANK, '');
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
