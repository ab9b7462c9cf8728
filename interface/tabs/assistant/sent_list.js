// The list of sent messages and abandoned texts; a person can go back to each moment.
/** @import {Moment} from '../../web/core/types.d.ts' */
/** @import {Notice} from '../../web/ui/notice.js' */
/** @import {TextOwner} from '../../web/ui/text_owner.js' */
import {find} from '../../web/ui/elements.js';
import {historyEntry} from '../../web/ui/history_entry.js';
import {onDetail} from '../../web/ui/events.js';
import {turnMoments} from './conversation_state.js';

const GONE = 'The conversation of that moment is no longer known.';

/**
 * Fill the list while it is open.
 * @param {HTMLDetailsElement} details
 * @param {{draft: TextOwner, notice: Notice}} parts
 */
export function listTurns(details, {draft, notice}) {
  const list = find(details, '.moments');
  /** @param {Moment} moment */
  const restore = moment => { if (!draft.reenter(moment)) notice.show(GONE); };
  const paint = () => {
    if (details.open) list.replaceChildren(...turnMoments(draft.moments).map(moment => historyEntry(moment, () => restore(moment))));
  };
  details.addEventListener('toggle', paint);
  onDetail(draft, 'change', ({kind}) => { if (kind !== 'caret') paint(); });
}
