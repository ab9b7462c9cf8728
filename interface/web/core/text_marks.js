// Which stretches of a text were chosen, and which typed: for the mirror under the text, and for the strip above it.
const LONG = 20_000;   // characters; of longer texts only the last paragraphs are mirrored
const CELLS = 200;     // of the strip

// Pieces that touch each other as one.
const adjoining = spans => spans.reduce((runs, [from, to]) => {
  const last = runs.at(-1);
  if (last && last[1] >= from) last[1] = Math.max(last[1], to);
  else runs.push([from, to]);
  return runs;
}, []);

// Where the mirrored part of a text begins, or null where it has no paragraphs that are short enough.
export function mirrorStart(text) {
  if (text.length <= LONG) return 0;
  const line = text.indexOf('\n', text.length - LONG);
  return line < 0 ? null : line + 1;
}

// The text from `start` on as {text, chosen}; spaces around a piece are not of it.
export function* markedStretches(text, spans, start = 0) {
  let done = start;
  for (const [from, to] of adjoining(spans)) {
    const piece = text.slice(Math.max(from, start), to), lead = piece.length - piece.trimStart().length;
    if (!piece.trim()) continue;
    yield {text: text.slice(done, Math.max(from, start) + lead), chosen: false};
    yield {text: piece.trim(), chosen: true};
    done = Math.max(from, start) + lead + piece.trim().length;
  }
  yield {text: text.slice(done), chosen: false};
}

// The strip from left to right as {share, chosen}: shares of the length of the text, none of those that were chosen too
// narrow to be seen.
export function* stripCells(length, spans) {
  const cell = Math.max(1, length / CELLS), round = place => Math.round(place / cell) * cell;
  let done = 0;
  for (const [from, to] of adjoining(spans.map(([from, to]) => [round(from), Math.max(round(to), round(from) + cell)]))) {
    if (from > done) yield {share: from - done, chosen: false};
    yield {share: to - from, chosen: true};
    done = to;
  }
  if (length > done) yield {share: length - done, chosen: false};
}
