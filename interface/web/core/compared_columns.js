// Columns in which one text goes on side by side, each with an instruction or a temperature of its own: which columns
// there are, and what their rows have in common.
/** @import {Column, DrawnView, Odds, Row, RowSettings, StoredSettings, View} from './types.d.ts' */
import {isPlainObject} from './json_values.js';
import {quotedText} from './figures_and_labels.js';
import {shapeRows} from './branch_rows.js';

export const FEWEST = 2, MOST = 4;
export const MOST_BRANCHES = 5;        // rows of a column
export const MOST_INSTRUCTION = 4000;  // characters
export const MOST_TEMPERATURE = 2;
export const EXAMPLE = 'Continue in a cheerful tone.';   // the instruction that the page itself puts into a second column
const OWN = [EXAMPLE, 'Continue this as a ghost story.'];   // documents of earlier versions hold the last one

/**
 * The columns of a document, a file or a link; null unless they are two to four columns. A wrong instruction counts as
 * none, and so does a wrong temperature.
 * @param {unknown} value
 * @returns {Column[] | null}
 */
export function columnsFrom(value) {
  if (!Array.isArray(value) || value.length < FEWEST || value.length > MOST || !value.every(isPlainObject)) return null;
  return value.map(({instruction, temperature}) => ({
    instruction: typeof instruction === 'string' ? instruction.slice(0, MOST_INSTRUCTION) : '',
    temperature: isTemperature(temperature) ? temperature : null,
  }));
}

/** @type {(value: unknown) => boolean} */
const isTemperature = value => Number.isFinite(value) && /** @type {number} */ (value) >= 0 && /** @type {number} */ (value) <= MOST_TEMPERATURE;

/**
 * The temperature in a column's field: null if the field is empty, NaN if it holds no number from 0 to 2. A decimal comma counts
 * as a decimal point.
 * @param {string} written
 */
export function temperatureFrom(written) {
  const text = written.trim();
  if (!text) return null;
  const value = /^[\d.,]+$/.test(text) ? Number(text.replace(',', '.')) : NaN;
  return isTemperature(value) ? value : NaN;
}

/**
 * What is said in place of a column's rows while its field holds no temperature.
 * @param {string} written
 */
export const temperatureComplaint = written =>
  `Write a number from 0 to ${MOST_TEMPERATURE}, such as 0.7, or empty the field: ${quotedText(written.trim())} cannot be used, so this column’s rows are hidden.`;

/**
 * The instruction of each column that stored settings show; empty where a column has none or an example of the page. There are
 * none unless the settings show columns.
 * @param {StoredSettings | null | undefined} settings unchecked
 */
export const columnInstructions = settings => (settings?.view === 'compare' ? columnsFrom(settings.columns) ?? [] : [])
  .map(({instruction}) => (instruction.trim() && !OWN.includes(instruction) ? instruction : ''));

/**
 * The same settings without these instructions of columns.
 * @param {StoredSettings} settings unchecked
 * @param {string[]} instructions
 * @returns {StoredSettings}
 */
export function withoutInstructions(settings, instructions) {
  const columns = columnsFrom(settings.columns);
  if (!columns) return settings;
  return {...settings, columns: columns.map(column => (instructions.includes(column.instruction) ? {...column, instruction: ''} : column))};
}

/**
 * The columns of a request.
 * @param {Column[]} columns
 */
export const columnsOfRequest = columns =>
  columns.map(({instruction, temperature}) => ({instruction: instruction.trim() ? instruction : null, temperature}));

/**
 * The settings that a column's rows are drawn with.
 * @param {RowSettings} settings of the page
 * @param {Column} column
 * @returns {RowSettings}
 */
export const settingsOfColumn = (settings, {temperature}) => ({
  ...settings, k: Math.min(settings.k ?? MOST_BRANCHES, MOST_BRANCHES), temperature: temperature ?? settings.temperature,
});

const END = 'end';

/**
 * The ids of a row's first token as a string, to compare rows of several columns; `END` for a row that is the end of the text, and
 * null for a growing row that has no token yet.
 * @param {Pick<Row, 'pieces' | 'ids' | 'ended'>} row
 */
const firstKey = ({pieces, ids, ended}) => (pieces.length ? ids.slice(0, pieces[0].tokens).join(' ') : ended ? END : null);

/**
 * A letter for each row whose first token begins rows of several columns: the same letter for the same token, from a on
 * in the order of columns and rows. All other rows have an empty string.
 * @param {Pick<Row, 'pieces' | 'ids' | 'ended'>[][]} columns the rows of each column
 */
export function sharedFirsts(columns) {
  const keys = columns.map(rows => rows.map(firstKey));
  const shared = [...new Set(keys.flat())].filter(key => key !== null && keys.filter(column => column.includes(key)).length > 1);
  return keys.map(column => column.map(key => {
    const index = shared.indexOf(key);
    return index < 0 ? '' : String.fromCharCode('a'.charCodeAt(0) + index);
  }));
}

/** @typedef {{column: number, text: string | null, odds: Odds, same: boolean}} FirstElsewhere `text`: null for the end of the text */

/**
 * For each column, the first choices of the others: the text, its odds here, and whether it is the first choice here too.
 * The odds of a token that the view does not hold are at most those of the least likely one that it holds. There is no
 * entry for a column without rows, nor for a first choice of several tokens.
 * @param {{view: View | null, settings: RowSettings}[]} columns
 * @returns {FirstElsewhere[][]}
 */
export function firstsElsewhere(columns) {
  const drawn = columns.map(({view, settings}) => (view ? shapeRows(view, {...settings, order: 'share'}) : null));
  const firsts = drawn.map(one => (one ? firstChoice(one.rows) : null));
  return drawn.map((own, index) => {
    if (!own?.rows.length) return [];
    return firsts.flatMap((first, column) => {
      if (!first || column === index) return [];
      const {ids, text} = first;
      return [{column, text, odds: oddsOfFirst(own, ids), same: firsts[index]?.ids.join(' ') === ids.join(' ')}];
    });
  });
}

/**
 * The two parts of a sentence before and after the text of a token that is another column's likeliest; its odds follow.
 * @param {Pick<FirstElsewhere, 'column' | 'same'>} first
 * @returns {[before: string, after: string]}
 */
export const elsewhereSentence = ({column, same}) =>
  [`Column ${column + 1} ${same ? 'also ' : ''}puts `, ' first; here its chance is '];

/**
 * The first token of the likeliest row, or no tokens if the text ends there; null if that row begins with several.
 * @param {Row[]} rows
 */
function firstChoice(rows) {
  const row = rows.find(one => firstKey(one) !== null), piece = row?.pieces[0];
  if (!piece) return row ? {ids: [], text: null} : null;
  return isOneToken(piece.ids, rows) ? {ids: piece.ids, text: piece.text} : null;
}

/**
 * Whether a beginning is one token after the text; where rows replace the typed token, that one and another.
 * @type {(ids: number[], rows: Row[]) => boolean}
 */
const isOneToken = (ids, rows) => ids.length === 1 || (ids.length === 2 && rows.some(row => row.healed));

/**
 * The odds of a beginning in a view.
 * @type {(drawn: DrawnView, ids: number[]) => Odds}
 */
function oddsOfFirst({rows, others}, ids) {
  const key = ids.join(' ');
  const known = [
    ...rows.filter(row => firstKey(row) !== null).map(({pieces: [piece], share}) => ({ids: piece?.ids ?? [], odds: piece?.odds ?? share})),
    ...others.map(({ids, odds, end}) => ({ids: end ? [] : ids, odds})),
  ];
  const found = known.find(one => one.ids.join(' ') === key);
  if (found) return found.odds;
  const alike = known.filter(one => one.ids.length === ids.length), all = alike.length ? alike : known;
  return {p: Math.min(...all.map(({odds}) => odds.p)), bound: true};
}
