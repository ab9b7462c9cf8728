// Words of a text, in any script: an ideograph is a word, and so is a run of other letters, digits and their marks.
const WORD = /\p{Ideographic}\p{M}*|(?:(?!\p{Ideographic})[\p{L}\p{N}\p{M}])+(?:['’-](?:(?!\p{Ideographic})[\p{L}\p{N}\p{M}])+)*/gu;

// How many words there are, and how many of them were chosen: those whose first character was.
export function countWords(text, spans) {
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
  const cut = text.slice(0, most * 4).replace(/[\ud800-\udbff]$/, '');
  const line = cut.replace(/\s+/g, ' ').trim(), characters = [...line];
  return characters.length > most || text.length > most * 4 ? `${characters.slice(0, most).join('').trimEnd()}…` : line;
}

// Pieces [start, …] in the order of a text, with their starts counted in characters, as Python does.
export function withCharacterStarts(text, pieces) {
  let from = 0, count = 0;
  return pieces.map(([start, ...piece]) => {
    count += [...text.slice(from, start)].length;
    from = start;
    return [count, ...piece];
  });
}
