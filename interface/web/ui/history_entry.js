// A moment of the history as a line of a list; a click on it goes back there.
import {excerpt} from '../core/text_words.js';
import {make, formatTime} from './elements.js';

const SHOWN = 160;   // characters of a piece
const KINDS = {
  accepted: 'accepted', undone: 'undone', left: 'left behind',
  send: 'before it was sent', edit: 'before going back', anew: 'before a new conversation', reenter: 'before going there',
};

export function historyEntry(moment, go) {
  const before = moment.before ? `${moment.before} ` : '', said = `${KINDS[moment.kind]} · ${formatTime(moment.time)}`;
  const piece = make('b', {text: excerpt(moment.text, SHOWN) || '↵'});
  const line = make('span', {className: 'piece', dir: 'auto'}, before, piece);
  const button = make('button', {className: 'moment'}, line, make('small', {text: said}));
  button.dataset.kind = moment.kind;
  button.addEventListener('click', go);
  return make('li', {}, button);
}
