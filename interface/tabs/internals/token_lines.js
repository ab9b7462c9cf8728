// The lines of a text with their tokens.
/** @import {InternalsToken} from '../../web/core/types.d.ts' */

/** Bytes whose last ones begin a character that the next token continues. */
const OPEN_CHARACTER = /(?:^| )(?:[CD].|E.(?: [89AB].)?|F.(?: [89AB].){0,2})$/;

/** @typedef {{text: string, template: boolean, tokens: number[]}} Stretch characters, and the indices of their tokens */
/** @typedef {{stretches: Stretch[], tokens: number[]}} TokenLine */

/** @returns {TokenLine} */
const newLine = () => ({stretches: [], tokens: []});

/**
 * The lines of a view: their tokens by index, and their text as stretches. The tokens of a character's parts precede its
 * text. The last token of a view is the one to come.
 * @param {{tokens: Pick<InternalsToken, 'id' | 'text' | 'message'>[], spelled: Record<number, {bytes?: string | null}>}} view
 */
export function tokenLines({tokens, spelled}) {
  const last = tokens.length - 1, lines = [newLine()];
  /** @type {number[]} */
  let waiting = [];
  tokens.forEach(({id, text, message}, index) => {
    const line = lines[lines.length - 1], bytes = id === null ? null : spelled[id]?.bytes;
    line.tokens.push(index);
    if (text || bytes) waiting.push(index);
    if (!text) return;
    line.stretches.push({text, template: message === null, tokens: waiting});
    waiting = OPEN_CHARACTER.test(bytes ?? '') ? [index] : [];
    if (text.endsWith('\n') && index + 1 < last) lines.push(newLine());
  });
  return lines;
}

/**
 * The characters of a line that several tokens stand for, with the indices of these tokens. Characters that share a token are
 * one entry.
 * @param {Pick<TokenLine, 'stretches'>} line
 */
export function charactersOfSeveralTokens({stretches}) {
  /** @type {{text: string, tokens: number[]}[]} */
  const found = [];
  for (const {text, tokens} of stretches.filter(stretch => stretch.tokens.length > 1)) {
    const last = found[found.length - 1];
    if (last?.tokens.at(-1) === tokens[0]) Object.assign(last, {text: last.text + text, tokens: [...last.tokens, ...tokens.slice(1)]});
    else found.push({text, tokens});
  }
  return found;
}
