// The making of a text as a file that plays itself in any browser.
/** @import {Replay} from '../../web/core/types.d.ts' */
import {ReplayPlayer} from './replay_player.js';
import {AUTHOR_MEANINGS, AUTHOR_NAMES} from '../../web/core/authored_pieces.js';
import {escapeMarkup} from '../../web/core/markup.js';
import {htmlPage} from './html_page.js';

const STYLE = `.replay-text { min-height: 12rem; max-height: 60vh; padding: 12px; overflow-y: auto; border: 1px solid var(--line); border-radius: 8px; font: 1.15rem/1.75 Georgia, 'Noto Serif', serif; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; }
.replay-text .fresh { background: color-mix(in srgb, var(--accent) 18%, transparent); scroll-margin-block: 1rem; }
.replay-caption { min-height: 3rem; margin: 8px 0; color: var(--soft); font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.replay-bar { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; }
.replay-bar input { flex: 1 1 10rem; min-width: 6rem; accent-color: var(--accent); }
.replay-bar button, .replay-bar select { min-width: 36px; min-height: 36px; padding: 4px 12px; border: 1px solid var(--line); border-radius: 8px; background: var(--paper); color: inherit; font: inherit; cursor: pointer; }
.replay-bar .chief { min-width: 104px; border-color: var(--accent); color: var(--accent); font-weight: 600; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }`;

/**
 * JSON that may stand within a script of a page: no text of it can end the script.
 * @param {unknown} value
 */
const scriptJson = value => JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, sign => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);

const START = `const player = new ReplayPlayer(document.querySelector('.replay'), JSON.parse(document.querySelector('#replay-data').textContent));
if (!matchMedia('(prefers-reduced-motion: reduce)').matches) player.play();`;

/**
 * A page that plays a replay. It begins by itself, unless the reader prefers less motion.
 * @param {{name: string, replay: Replay}} options
 */
export function replayHtml({name, replay}) {
  const authors = new Set([...replay.first, ...replay.steps.flatMap(({pieces}) => pieces)].map(({author}) => author));
  const legend = [...authors].sort().map(author => `<li><span class="${author}">${AUTHOR_NAMES[author]}</span>: ${AUTHOR_MEANINGS[author]}</li>`);
  const body = `<h1 dir="auto">${escapeMarkup(name)}</h1>
<div class="replay"></div>
<h2>Who wrote what</h2>
<ul class="legend">
${legend.join('\n')}
</ul>
<script type="application/json" id="replay-data">${scriptJson(replay)}</script>`;
  return htmlPage({title: `${name}: how it was made`, body, style: STYLE, script: `${ReplayPlayer}\n${START}`});
}
