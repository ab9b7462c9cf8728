// The list of what was sent and what was left: each moment can be gone back to.
import {historyEntry} from '../../web/ui/history_entry.js';
import {turnMoments} from './conversation_state.js';

const GONE = 'The conversation of that moment is no longer known.';

export function listTurns(details, {draft, notice}) {
  const list = details.querySelector('.moments');
  const go = moment => { if (!draft.reenter(moment)) notice.say(GONE); };
  const paint = () => {
    if (details.open) list.replaceChildren(...turnMoments(draft.moments).map(moment => historyEntry(moment, () => go(moment))));
  };
  details.addEventListener('toggle', paint);
  draft.addEventListener('change', ({detail}) => { if (detail.kind !== 'caret') paint(); });
}
