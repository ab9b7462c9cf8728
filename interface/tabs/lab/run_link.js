// The link that repeats a run: the experiment's prompt and options in the fragment, which no server receives.

const MARK = '#lab-cache';
const OPTIONS = {k: 20, depth: 100, levels: 3};   // and the highest value of each
const MOST_PROMPT = 2000;

/** @typedef {{prompt: string, k: number, depth: number, levels: number, precisions: boolean}} CacheRun */

/**
 * The fragment of a run, with its number sign.
 * @param {CacheRun} run
 */
export const runLink = ({prompt, k, depth, levels, precisions}) =>
  `${MARK}?${new URLSearchParams({prompt, k: String(k), depth: String(depth), levels: String(levels), precisions: String(precisions)})}`;

/**
 * The run in a fragment: what it holds of a prompt and options; null if the fragment is no link to this page. Values that
 * are not allowed are left out.
 * @param {string} fragment
 * @returns {Partial<CacheRun> | null}
 */
export function runOf(fragment) {
  const [mark, query = ''] = fragment.split('?', 2);
  if (mark !== MARK) return null;
  const fields = new URLSearchParams(query), prompt = fields.get('prompt');
  /** @type {Partial<CacheRun>} */
  const run = prompt && prompt.length <= MOST_PROMPT ? {prompt} : {};
  if (['true', 'false'].includes(fields.get('precisions') ?? '')) run.precisions = fields.get('precisions') === 'true';
  for (const name of /** @type {(keyof typeof OPTIONS)[]} */ (Object.keys(OPTIONS))) {
    const value = Number(fields.get(name) ?? NaN);
    if (Number.isInteger(value) && value >= 1 && value <= OPTIONS[name]) run[name] = value;
  }
  return run;
}
