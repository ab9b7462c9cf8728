// What the figures of a token and the columns of its table mean, in one sentence each.

const CHOICE = 'Choice: the place of this token among all, ordered by their probability here; 1 is the likeliest.';
const ID = 'Id: the number by which the model knows a token; it is the same wherever the token stands.';
const RAW = 'Raw: the probability that the model gives this token here, before temperature and top-p change it.';
const PROCESSED = 'Processed: the probability after temperature and top-p, as the two sliders are set.';

/**
 * Figures by what they begin with, and their meanings.
 * @type {[string, string][]}
 */
const FIGURES = [
  ['position', 'Position: how many tokens stand before this one.'],
  ['id ', ID],
  ['put there by the template', 'The chat template puts special tokens around each message, which tell the model who speaks.'],
  ['put before every text', 'This special token tells the model that a text begins.'],
  ['bytes of', 'A rare character takes several tokens; each holds some of its bytes, written here as pairs of hexadecimal digits.'],
  ['an ending', 'A special token by which the model ends a text or a message.'],
  ['Choice', CHOICE],
  ['raw', RAW],
  ['processed', PROCESSED],
  ['entropy', 'Entropy: how uncertain the model is here; 0 is certain, and 3.3 bits is as uncertain as ten equally likely tokens.'],
];

/**
 * The headings of the table of alternative tokens, each with the sentence that explains its column.
 * @type {[string, string][]}
 */
export const COLUMNS = [
  ['Choice', CHOICE],
  ['Token', 'The ten likeliest tokens here, and the one that came in your text; ␣ is a space.'],
  ['Id', ID],
  ['Raw', RAW],
  ['Processed', PROCESSED],
];

/**
 * The parts of a line, which dots separate, each with the sentence that explains its figure, and the term that the sentence
 * begins with; empty for a part without one.
 * @param {string} line
 * @returns {{text: string, meaning: string, term: string}[]}
 */
export const explainedFigures = line => line.split(' · ').map(text => {
  const meaning = FIGURES.find(([beginning]) => text.startsWith(beginning))?.[1] ?? '';
  return {text, meaning, term: /^(\w+): /.exec(meaning)?.[1] ?? ''};
});
