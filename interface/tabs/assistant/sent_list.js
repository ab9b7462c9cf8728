// The list of what was sent and what was left: each moment can be gone back to.
import {momentOf} from '../../web/ui/history_entry.js';
import {turnsOf} from './conversation_state.js';

const GONE = 'The conversation of that moment is no longer known.';

export function listBefore(details, {draft, notice}) {
  const list = details.querySelector('.moments');
  const go = moment => { if (!draft.reenter(moment)) notice.say(GONE); };
  const paint = () => {
    if (details.open) list.replaceChildren(...turnsOf(draft.moments).map(moment => momentOf(moment, () => go(moment))));
  };
  details.addEventListener('toggle', paint);
  draft.addEventListener('change', ({detail}) => { if (detail.kind !== 'caret') paint(); });
}
