// What is announced of a person's own actions, in one message with the rows that follow them.
import {excerpt} from './text_words.js';
import {spokenQuote} from './figures_and_labels.js';

/** @typedef {{kind: string, text?: string, now?: string}} Confirmation an action that is not announced yet; `now`: the text of a changed row */

const MOST = 4;           // actions in one message
const MOST_TEXT = 120;    // characters of a text in it

/** @param {string} [text] */
const quoted = (text = '') => spokenQuote(text.length > MOST_TEXT && text.trim() ? excerpt(text, MOST_TEXT) : text.slice(0, MOST_TEXT));

/** @type {Record<string, (text?: string, now?: string) => string>} */
const SENTENCES = {
  inserted: text => `Inserted: ${quoted(text)}.`,
  undone: text => (text ? `Undone: ${quoted(text)}.` : 'Undone.'),
  redone: text => (text ? `Redone: ${quoted(text)}.` : 'Redone.'),
  restored: text => `Undone: ${quoted(text)} is back.`,
  removedAgain: text => (text ? `Redone: ${quoted(text)} is removed again.` : 'Redone.'),
  entered: text => `Put into the text: ${quoted(text)}.`,
  left: text => `Taken out of the text: ${quoted(text)}. Undo brings it back.`,
  conversationRestored: text => `Undone: the conversation is back${text ? `, with ${quoted(text)} in the text box` : ''}.`,
  banned: text => `Banned: ${quoted(text)}.`,
  allowed: text => `No longer banned: ${quoted(text)}.`,
  bannedAgain: text => `Undone: ${quoted(text)} is banned again.`,
  allowedAgain: text => `Redone: ${quoted(text)} is no longer banned.`,
  unbanned: text => `Undone: the ban of ${quoted(text)}.`,
  rebanned: text => `Redone: the ban of ${quoted(text)}.`,
  banning: text => `Banning ${quoted(text)}: the rows follow.`,
  banningAgain: text => `Banning ${quoted(text)} again: the rows follow.`,
  allowing: text => `Allowing ${quoted(text)} again: the rows follow.`,
  towards: text => `Steered towards the word ${quoted(text)}.`,
  avoid: text => `Steered away from the word ${quoted(text)}.`,
  steering: text => `Steering towards the word ${quoted(text)}: the rows follow.`,
  avoiding: text => `Steering away from the word ${quoted(text)}: the rows follow.`,
  unsteered: () => 'Rows are no longer steered by a word.',
  hidden: () => 'Grey text hidden until the text changes.',
  resumed: () => 'Branching goes on.',
  changed: (text, now) => `Changed: ${text}${now === undefined ? '' : ` is now “${now}”`}.`,
  changedAgain: (text, now) => `Redone: the change to ${text}${now === undefined ? '' : `, which is now “${now}”`}.`,
  unchanged: text => `Undone: the change to ${quoted(text)}.`,
  changingBack: text => `Undoing the change to ${quoted(text)}: the rows follow.`,
  lost: () => 'The row that you changed is gone.',
  leftOut: () => 'The row that you changed is left out until the word to go towards is removed.',
  caret: (text = '') => text,
};

/**
 * The actions with one more. Texts that were inserted one after the other are one.
 * @param {Confirmation[]} list
 * @param {Confirmation} added
 * @returns {Confirmation[]}
 */
export function withConfirmation(list, added) {
  const last = list[list.length - 1], {kind, text} = added;
  if (last && kind === 'inserted' && last.kind === kind) return [...list.slice(0, -1), {kind, text: `${last.text}${text}`}];
  return [...list, added].slice(-MOST);
}

/** What is said instead where the rows are late. @type {Record<string, string>} */
const BEFORE_ROWS = {
  banned: 'banning', bannedAgain: 'banningAgain', rebanned: 'banningAgain', allowed: 'allowing', allowedAgain: 'allowing', unbanned: 'allowing',
  towards: 'steering', avoid: 'avoiding', unchanged: 'changingBack',
};

/**
 * The actions as they are said before their rows are there.
 * @param {Confirmation[]} list
 */
export const beforeRows = list => list.map(one => ({...one, kind: BEFORE_ROWS[one.kind] ?? one.kind}));

/** @param {Confirmation[]} list */
const confirmationSentence = list => list.map(({kind, text, now}) => SENTENCES[kind]?.(text, now) ?? '').filter(Boolean).join(' ');

/**
 * One message of actions and of what follows them.
 * @param {Confirmation[]} list
 * @param {string} [sentence]
 */
export const withSentence = (list, sentence = '') => [confirmationSentence(list), sentence].filter(Boolean).join(' ');

/**
 * One message of actions and of the rows that follow them. The text of a changed row is said among the rows, and not before.
 * @param {Confirmation[]} list
 * @param {string} rows
 */
export const withRows = (list, rows) => withSentence(list.map(({kind, text}) => ({kind, text})), rows);
