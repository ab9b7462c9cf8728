// The words of a text that was read, each with the entry of it that is shown: where the model would first have gone
// elsewhere, else its first one.
export function markedWords({entries, marks}) {
  const words = [], ranks = new Map(marks.map((index, rank) => [index, rank]));
  entries.forEach((entry, index) => {
    if (!words.length || words.at(-1).from !== entry.word[0]) words.push({from: entry.word[0], entries: [], rank: Infinity});
    const word = words.at(-1);
    word.entries.push(entry);
    if (ranks.has(index)) Object.assign(word, {entry, rank: ranks.get(index)});
  });
  for (const word of words) {
    word.text = word.entries.map(({token}) => token).join('');
    word.entry ??= word.entries[0];
  }
  return words;
}

// Entropies as shares of the highest.
export function relativeEntropies(words) {
  const found = words.map(({entries}) => entries[0].entropy ?? 0), highest = Math.max(...found) || 1;
  return found.map(entropy => entropy / highest);
}
