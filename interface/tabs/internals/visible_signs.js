// The label of a token, in which every character counts.
/** @import {SpelledToken} from '../../web/core/types.d.ts' */
import {spokenText, visibleText} from '../../web/core/figures_and_labels.js';

/**
 * A text with all its white space as signs.
 * @param {string} text
 */
const withSpaceSigns = text => visibleText(text.replace(/ /g, '␣'));

/**
 * A token by itself: its text, its name, or its bytes where it is part of a character, with a sign for a space before that.
 * @param {Pick<SpelledToken, 'text' | 'bytes'>} spelled
 */
export const tokenLabel = ({text, bytes}) => (bytes === null ? withSpaceSigns(text) : bytes.replace(/^20 /, '␣ '));

/**
 * A token in its text: the characters that it adds there, where these are whole.
 * @param {{text: string}} token
 * @param {Pick<SpelledToken, 'text' | 'bytes'>} spelled
 */
export const tokenInText = ({text}, spelled) => (spelled.bytes !== null || !text ? tokenLabel(spelled) : withSpaceSigns(text));

/**
 * The label of a token in quotation marks, and the names of the signs of white space alone: “↵” (line break).
 * @param {string} label
 * @param {string} text of the token
 */
export const quotedLabel = (label, text) => `“${label}”${/^[ \n\r\t]+$/.test(text) ? ` (${spokenText(text)})` : ''}`;

/**
 * A token in its text as a screen reader is to say it: “space, love”, since a token without the space is another one.
 * @type {typeof tokenInText}
 */
export function spokenToken({text}, {text: alone, bytes}) {
  if (bytes !== null) {
    const rest = bytes.replace(/^20 /, '');
    return `${rest === bytes ? '' : 'space, '}${rest.includes(' ') ? 'bytes' : 'byte'} ${rest}`;
  }
  const said = text || alone, rest = said.replace(/^ +/, '');
  return [said.slice(0, said.length - rest.length), rest].filter(Boolean).map(spokenText).join(', ');
}

export const NEXT_TOKEN_LABEL = '[____]';
