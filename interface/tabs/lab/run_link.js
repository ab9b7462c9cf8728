// The link that repeats a run of an experiment: its prompt and options in the fragment, which no server receives.

const MOST_PROMPT = 2000;

/**
 * The prompt and options of an experiment by the names of their fields.
 * @typedef {Record<string, string | number | boolean>} Run
 */

/**
 * What a field may hold: any text that is no longer than a prompt, true or false, or a number of a range; a whole number unless
 * `step` is set.
 * @typedef {'text' | 'switch' | {low: number, high: number, step?: number}} FieldKind
 */

/**
 * The fragment of a run, with its number sign.
 * @param {string} mark that the page's fragments begin with: "#lab-cache"
 * @param {Run} run
 */
export const runLink = (mark, run) => `${mark}?${new URLSearchParams(Object.entries(run).map(([name, value]) => [name, String(value)]))}`;

/**
 * The run in a fragment: what it holds of a prompt and options; null if the fragment is no link to the page. Values that are
 * not allowed are left out.
 * @param {string} fragment
 * @param {string} mark
 * @param {Record<string, FieldKind>} kinds
 * @returns {Run | null}
 */
export function runOf(fragment, mark, kinds) {
  const [own, query = ''] = fragment.split('?', 2);
  if (own !== mark) return null;
  const fields = new URLSearchParams(query);
  const found = Object.entries(kinds).map(([name, kind]) => [name, valueOf(fields.get(name) ?? '', kind)]);
  return Object.fromEntries(found.filter(([, value]) => value !== null));
}

/** @type {(text: string, kind: FieldKind) => string | number | boolean | null} */
function valueOf(text, kind) {
  if (!text) return null;
  if (kind === 'text') return text.length <= MOST_PROMPT ? text : null;
  if (kind === 'switch') return text === 'true' ? true : text === 'false' ? false : null;
  const value = Number(text);
  return value >= kind.low && value <= kind.high && (kind.step !== undefined || Number.isInteger(value)) ? value : null;
}
