// A conversation as data: `earlier` holds the messages before the one in progress, and whose turn it is.
import {formatCount} from '../../web/core/branch_sentences.js';

export const ROLE_NAMES = {user: 'User', assistant: 'Assistant'};
export const OTHER_ROLE = {user: 'assistant', assistant: 'user'};
export const EMPTY_CONVERSATION = {messages: [], role: 'user'};

// The conversation as fields of a request.
export const conversationFields = ({messages, role}) => ({messages: messages.map(({role, content}) => ({role, content})), role});

// All of it, the message in progress last.
export const allMessages = ({earlier, text}) => [...conversationFields(earlier).messages, {role: earlier.role, content: text}];

// For `JSON.parse`: what stands before a message is one object wherever a history tells of it, as it was before it was kept.
export function conversationReviver() {
  const known = new Map([[JSON.stringify(EMPTY_CONVERSATION), EMPTY_CONVERSATION]]);
  return (name, value) => {
    if (!value?.messages) return value;
    const text = JSON.stringify(value);
    if (!known.has(text)) known.set(text, value);
    return known.get(text);
  };
}

// Of all moments of a history those where the turn was passed, and what was left behind, if anything stood there; each by
// its last message.
export const turnMoments = moments => moments
  .filter(({kind, earlier, text}) => kind !== 'accepted' && kind !== 'undone' && (text || earlier?.messages.length))
  .map(described);

function described(moment) {
  if (!moment.earlier) return moment;
  const {messages, role} = moment.earlier, all = moment.text ? [...messages, {role, content: moment.text}] : messages;
  const last = all.at(-1), before = all.length > 1 ? `${formatCount(all.length - 1, 'message')}, then ` : '';
  return {...moment, before: `${before}${ROLE_NAMES[last.role]}:`, text: last.content};
}
