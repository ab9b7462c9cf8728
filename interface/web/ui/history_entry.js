// A moment of the history as an item of a list.
/** @import {Moment} from '../core/types.d.ts' */
import {formatTime, make} from './elements.js';
import {momentTexts} from '../core/moment_texts.js';

/** @type {Record<string, string>} */
const KINDS = {
  accepted: 'accepted', undone: 'undone', left: 'left behind',
  send: 'before it was sent', edit: 'before going back', anew: 'before a new conversation', reenter: 'before going there',
};

/** What a moment is, as the list says it. @param {Moment} moment */
const captionOf = ({kind, isGone, isBack}) => (isGone ? 'accepted, no longer in the text' : isBack ? 'left behind, in the text again' : KINDS[kind]);

/**
 * The item of a moment.
 * @param {Moment} moment
 * @param {(click: MouseEvent) => void} restore called at a click
 */
export function historyEntry(moment, restore) {
  const texts = momentTexts(moment), caption = `${captionOf(moment)} · ${formatTime(moment.time)}`;
  const line = make('span', {className: 'piece', dir: 'auto'}, texts.before, ...texts.stretches.map(({text, chosen}) => make('b', {text, className: chosen ? '' : 'written'})));
  const button = make('button', {className: 'moment'}, line, make('small', {text: caption}));
  if (texts.spoken) button.ariaLabel = `${texts.spoken}, ${caption}`;
  button.dataset.kind = moment.kind;
  button.addEventListener('click', restore);
  return make('li', {}, button);
}
