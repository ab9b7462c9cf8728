// Which tokens the lines of a text are made of, and each stretch of a line.

// Bytes of which the last begin a character that others go on with.
const OPEN = /(?:^| )(?:[CD].|E.(?: [89AB].)?|F.(?: [89AB].){0,2})$/;

const newLine = () => ({stretches: [], tokens: []});

// Lines up to each line break: their tokens by index, and their text as stretches {text, template, tokens}. The last token
// of a view is the one to come. The parts of a character lead up to its text.
export function tokenLines({tokens, spelled}) {
  const last = tokens.length - 1, lines = [newLine()];
  let waiting = [];
  tokens.forEach(({id, text, message}, index) => {
    lines.at(-1).tokens.push(index);
    if (text || spelled[id]?.bytes) waiting.push(index);
    if (!text) return;
    lines.at(-1).stretches.push({text, template: message === null, tokens: waiting});
    waiting = OPEN.test(spelled[id].bytes ?? '') ? [index] : [];
    if (text.endsWith('\n') && index + 1 < last) lines.push(newLine());
  });
  return lines;
}
