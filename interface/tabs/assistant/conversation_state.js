// A conversation as data. `earlier` holds the messages before the one in progress, and whose turn it is.
/** @import {ConversationState, Message, Moment} from '../../web/core/types.d.ts' */
import {formatCount} from '../../web/core/figures_and_labels.js';

/** @type {Record<string, string>} */
export const ROLE_NAMES = {user: 'User', assistant: 'Assistant'};
/** @type {Record<string, string>} */
export const OTHER_ROLE = {user: 'assistant', assistant: 'user'};
/** @type {ConversationState} */
export const EMPTY_CONVERSATION = {messages: [], role: 'user'};

/**
 * The conversation as fields of a request.
 * @param {{messages: Message[], role: string}} earlier
 */
export const conversationFields = ({messages, role}) => ({messages: messages.map(({role, content}) => ({role, content})), role});

/**
 * All messages, the one in progress last.
 * @param {{earlier: ConversationState, text: string}} draft
 * @returns {Message[]}
 */
export const allMessages = ({earlier, text}) => [...conversationFields(earlier).messages, {role: earlier.role, content: text}];

/**
 * A reviver for `JSON.parse` that makes equal conversations one object, as they were before they were stored: the history
 * compares them by identity.
 * @returns {(name: string, value: any) => any}
 */
export function conversationReviver() {
  const known = new Map([[JSON.stringify(EMPTY_CONVERSATION), EMPTY_CONVERSATION]]);
  return (name, value) => {
    if (!value?.messages) return value;
    const text = JSON.stringify(value);
    const found = known.get(text) ?? value;
    known.set(text, found);
    return found;
  };
}

/**
 * The moments of a history at which the turn was passed, and its abandoned texts, each described by its last message.
 * @param {Moment[]} moments
 */
export const turnMoments = moments => moments
  .filter(({kind, earlier, text}) => kind !== 'accepted' && kind !== 'undone' && (text || earlier?.messages.length))
  .map(describe);

/**
 * @param {Moment} moment
 * @returns {Moment}
 */
function describe(moment) {
  if (!moment.earlier) return moment;
  const {messages, role} = moment.earlier;
  /** @type {Message[]} */
  const all = moment.text ? [...messages, {role, content: moment.text}] : messages;
  const last = all[all.length - 1], before = all.length > 1 ? `${formatCount(all.length - 1, 'message')}, then ` : '';
  return {...moment, before: `${before}${ROLE_NAMES[last.role]}:`, text: last.content};
}
