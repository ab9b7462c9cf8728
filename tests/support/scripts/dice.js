// Random numbers, texts and changes of texts, the same at every run.

// Among them characters of two halves that share the first half, or the second; line breaks; and scripts without spaces.
const CHARACTERS = ['a', 'a', 'b', ' ', ' ', '\n', 'é', 'e\u0301', '中', 'ع', '🙂', '😂', '🩂'];

export class Dice {
  #state;

  constructor(seed) { this.#state = seed >>> 0; }

  // A number from 0 up to 1 (mulberry32).
  number() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  // A whole number from 0 to `most`, both included.
  upTo(most) { return Math.floor(this.number() * (most + 1)); }

  chance(share) { return this.number() < share; }

  among(list) { return list[this.upTo(list.length - 1)]; }

  // A number from a normal distribution (Box and Muller).
  gauss() { return Math.sqrt(-2 * Math.log(1 - this.number())) * Math.cos(2 * Math.PI * this.number()); }

  text(most, characters = CHARACTERS) {
    return Array.from({length: this.upTo(most)}, () => this.among(characters)).join('');
  }

  // A stretch of a text that cuts no character in two, as [start, end].
  stretch(text, most = Infinity) {
    const characters = [...text], from = this.upTo(characters.length);
    const to = from + this.upTo(Math.min(most, characters.length - from));
    return [characters.slice(0, from).join('').length, characters.slice(0, to).join('').length];
  }

  // A change of a text: {start, removed, inserted}.
  change(text, most = 4) {
    const [start, end] = this.stretch(text, most);
    return {start, removed: text.slice(start, end), inserted: this.text(most)};
  }
}

// Run a test with many dice; a failure names the seed.
export function withDice(count, run) {
  for (let seed = 1; seed <= count; seed += 1) {
    try {
      run(new Dice(seed));
    } catch (error) {
      error.message = `Seed ${seed}: ${error.message}`;
      throw error;
    }
  }
}
