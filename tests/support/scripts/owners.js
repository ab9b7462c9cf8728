// The slow way to keep spans and pieces of a text: every character knows to which piece it belongs, null where it was typed.
export class Owners {
  cells = [];
  #pieces = 0;

  // `marks` are stretches of what is inserted that are pieces, counted from its start.
  change({start, removed, inserted}, marks = []) {
    const fresh = Array.from(inserted).flatMap(character => Array.from({length: character.length}, () => null));
    for (const [from, to] of marks) {
      this.#pieces += 1;
      fresh.fill(this.#pieces, from, to);
    }
    const head = this.cells.slice(0, start), tail = this.cells.slice(start + removed.length);
    this.cells = [...head, ...fresh, ...(inserted ? this.#parted(head, tail) : tail)];
  }

  // The runs of characters of one piece, as [start, end].
  get spans() {
    const found = [];
    this.cells.forEach((piece, index) => {
      if (piece === null) return;
      if (index > 0 && this.cells[index - 1] === piece) found.at(-1)[1] = index + 1;
      else found.push([index, index + 1]);
    });
    return found;
  }

  // A piece with something inserted into it is two from then on.
  #parted(head, tail) {
    const fresh = new Map();
    return tail.map(piece => {
      if (piece === null || !head.includes(piece)) return piece;
      if (!fresh.has(piece)) fresh.set(piece, this.#pieces += 1);
      return fresh.get(piece);
    });
  }
}

// Up to two stretches of a text of this length that were chosen, in order.
export function randomMarks(dice, length) {
  const cuts = Array.from({length: 4}, () => dice.upTo(length)).sort((one, other) => one - other);
  return [[cuts[0], cuts[1]], [cuts[2], cuts[3]]].filter(([from, to]) => from < to).slice(0, dice.upTo(2));
}
