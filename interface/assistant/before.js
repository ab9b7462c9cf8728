// The list of what was sent and what was left: each moment can be gone back to.
import {NAMES} from './messages.js';
import {counted} from '../branch_view/words.js';
import {momentOf} from '../shared/moments.js';

const GONE = 'The conversation of that moment is no longer known.';

export function listBefore(details, {draft, notice}) {
  const list = details.querySelector('.moments');
  const go = moment => { if (!draft.reenter(moment)) notice.say(GONE); };
  const paint = () => {
    if (details.open) list.replaceChildren(...moments(draft).map(moment => momentOf(moment, () => go(moment))));
  };
  details.addEventListener('toggle', paint);
  draft.addEventListener('change', ({detail}) => { if (detail.kind !== 'caret') paint(); });
}

// Where the turn was passed, and what was left behind, if anything stood there.
const moments = draft => draft.moments
  .filter(({kind, earlier, text}) => kind !== 'accepted' && kind !== 'undone' && (text || earlier?.messages.length))
  .map(described);

// By its last message.
function described(moment) {
  if (!moment.earlier) return moment;
  const {messages, role} = moment.earlier, all = moment.text ? [...messages, {role, content: moment.text}] : messages;
  const last = all.at(-1), before = all.length > 1 ? `${counted(all.length - 1, 'message')}, then ` : '';
  return {...moment, before: `${before}${NAMES[last.role]}:`, text: last.content};
}
