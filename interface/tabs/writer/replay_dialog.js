// The dialog that plays the making of the open document, and saves it as a file or a link.
/** @import {DocumentKeeper} from './document_keeper.js' */
import {ReplayPlayer} from './replay_player.js';
import {find} from '../../web/ui/elements.js';
import {replayOf} from '../../web/core/replay.js';

/**
 * The function that opens the dialog and plays from the start. It plays by itself unless the person prefers less motion.
 * @param {HTMLDialogElement} dialog
 * @param {{keeper: () => DocumentKeeper, share: () => unknown}} parts `share` opens the dialog of the replay's link
 */
export function replayDialog(dialog, {keeper, share}) {
  const root = find(dialog, '.replay');
  /** @type {ReplayPlayer | null} */
  let player = null;
  /** @type {(selector: string, run: () => unknown) => void} */
  const on = (selector, run) => find(dialog, selector).addEventListener('click', run);
  dialog.addEventListener('close', () => player?.pause());
  on('#replay-html', () => keeper().exportReplay('html'));
  on('#replay-json', () => keeper().exportReplay('json'));
  on('#replay-link', () => {
    player?.pause();
    share();
  });
  return () => {
    player?.pause();
    player = new ReplayPlayer(root, replayOf(keeper().draft.state()));
    const playable = player.replay.steps.length > 0;
    find(dialog, '.none').hidden = playable;
    for (const part of [root, find(dialog, 'footer')]) part.hidden = !playable;
    if (!dialog.open) dialog.showModal();
    if (!playable) return;
    player.playButton.focus();
    if (!matchMedia('(prefers-reduced-motion: reduce)').matches) player.play();
  };
}
