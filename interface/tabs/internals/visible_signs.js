// How a token is written where every character of it counts.
import {visibleText} from '../../web/core/branch_sentences.js';

// With all white space as signs.
const signed = text => visibleText(text.replace(/ /g, '␣'));

// A token by what it spells alone: text, a name, or the bytes of a part of a character.
export const tokenLabel = ({text, bytes}) => (bytes === null ? signed(text) : bytes);

// A token at its place: the characters that it stands for there, where it stands for whole ones alone.
export const tokenInText = ({text}, spelled) => (spelled.bytes !== null || !text ? tokenLabel(spelled) : signed(text));

export const NEXT_TOKEN_LABEL = '[____]';
