// Words of a text, in any script: an ideograph is a word.
const WORD = /\p{Ideographic}|[\p{L}\p{N}\p{M}]+(?:['’-][\p{L}\p{N}\p{M}]+)*/gu;

// How many words there are, and how many of them were chosen: those whose first character was.
export function count(text, spans) {
  let words = 0, chosen = 0, span = 0;
  for (const {index} of text.matchAll(WORD)) {
    while (span < spans.length && spans[span][1] <= index) span += 1;
    words += 1;
    if (span < spans.length && spans[span][0] <= index) chosen += 1;
  }
  return {words, chosen};
}

// The beginning of a text, for a list: one line, and no half characters.
export function excerpt(text, most = 80) {
  const line = text.slice(0, most * 4).replace(/\s+/g, ' ').trim(), characters = [...line];
  return characters.length > most || text.length > most * 4 ? `${characters.slice(0, most).join('').trimEnd()}…` : line;
}
