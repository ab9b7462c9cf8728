// What the help of a tab explains: its words, and which keys work where. Pure data, and the names of controls.

/**
 * Lines of the help under one title. Each has a word, or keys as `KEYS` describes them, and its meaning.
 * @typedef {{title: string, isOfKeys?: boolean, lines: [term: string, meaning: string][]}} Topic
 */

/** Between keys that are separated by spaces, these words are no keys. */
export const NO_KEYS = ['…', 'or'];

/** @type {Topic} */
const FINGER = {title: 'With a mouse or a finger', lines: [
  ['a button of a row', 'a click or a tap inserts the row up to that token'],
  ['point, or hold', 'on a token: how likely it is, and buttons to change or ban it'],
  ['‹ or › at a row’s end', 'the row is longer than what is seen: click or tap the sign, or swipe the row sideways'],
  ['“everything else”', 'a click or a tap lists what no row begins with; “…” after a beginning: its word may be longer'],
  ['a figure or a control', 'point at it or tap it, and a sentence explains it'],
  ['a dot', 'over a token: what follows it is known already, so a click on it is answered at once'],
  ['≤ and ≥', 'before a figure: at most, and at least; it is not known exactly'],
]};

/** @type {Topic['lines'][number]} */
const TOKEN = ['token', 'what the model writes at once: a word, a part of a word, or a sign such as a comma'];

/** What a fork is, and how it is drawn. @type {Topic['lines'][number]} */
const FORK = ['fork', 'a place where a text can go on in more than one way, and each row takes one: the rows have the same tokens up to there. A bracket marks it right after your text, a line that forks before a later token'];

/** @type {Topic} */
const WORDS = {title: 'Words of this page', lines: [
  ['branch', 'one way in which your text could go on; each is shown as a row'],
  [TOKEN[0], `${TOKEN[1]}. Each button of a row is one; several may make a word, as “cre” and “pt” make “crept”`],
  ['share', 'the figure of a row: the chance that your text goes on with the row’s beginning, which is in bold: all up to where it differs from the other rows'],
  ['coverage', '“These 5 hold …”: the shares of the rows together, so the chance that your text goes on with one of their beginnings in bold'],
  FORK,
]};

/** The keys of a text among branches. @type {Topic} */
const TEXT_KEYS = {title: 'In the text', isOfKeys: true, lines: [
  ['Alt 1 … 9', 'accept that branch’s next word; the whole branch, as soon as it is complete, with Shift'],
  ['Ctrl →', 'at the end of the text: accept the first branch’s next word'],
  ['Tab', 'accept the grey text after the caret, while it shows'],
  ['Esc', 'hide the grey text until the next change'],
  ['Ctrl Z', 'undo; each thing accepted is one step, and so is each ban and each change of a row'],
  ['Ctrl Shift Z', 'redo; so does Ctrl Y'],
  ['Alt ↓', 'go to the branches, also from a button, a setting or a tab'],
  ['Alt P', 'pause the branches, or continue them'],
]};

/** @type {Topic} */
const BRANCH_KEYS = {title: 'In the branches', isOfKeys: true, lines: [
  ['← → ↑ ↓', 'go from token to token and from row to row'],
  ['Enter', 'accept up to the token that has the focus'],
  ['1 … 9', 'accept that branch’s next word'],
  ['Alt ↑', 'go back to the text, also from a button, a setting or a tab'],
  ['F2 or E', 'change the token that has the focus; what follows it is computed again'],
  ['Delete', 'ban the token that has the focus, in this document: as a part of other words too'],
]};

/** @type {Topic} */
const EVERYWHERE = {title: 'Everywhere', isOfKeys: true, lines: [
  ['?', 'this help, unless you are writing in a field'],
  ['← →', 'in a row of tabs: go from tab to tab'],
  ['Esc', 'close this help, or the sentence of a control'],
]};

const KEYS_EVERYWHERE = EVERYWHERE.lines.map(([keys]) => keys);

/** @type {Topic} */
const EXPERIMENT_KEYS = {title: 'In the form', isOfKeys: true, lines: [['Enter', 'in a field for a number: run the experiment']]};

/** @type {Topic} */
const FIGURE_KEYS = {title: 'In the figure', isOfKeys: true, lines: [
  ['← → ↑ ↓', 'choose a token, and read about it'],
  ['Esc', 'choose none'],
]};

/** @type {Topic} */
const WRITE_WORDS = {...WORDS, lines: [
  ...WORDS.lines.slice(0, 2),
  ['share', 'the figure of a row: the chance that your text goes on with the row’s beginning, which is in bold: its next word, or, with Odds of (under More settings) tokens, all up to where it differs from the other rows'],
  WORDS.lines[3],
  ['depth', 'how many tokens long each row is; one that you change has so many tokens after your change'],
  ['temperature', 'it changes the chances: below 1 likely words become likelier still, for safer text; above 1 unlikely words gain, for stranger text; 1 is the model as it is'],
  FORK,
]};

/** @type {Topic} */
const TREE_KEYS = {title: 'In the tree', isOfKeys: true, lines: [
  ['← → ↑ ↓', 'go back, go on, and from branch to branch; to the first node with Home, to the last one on the right with End'],
  ['Enter', 'insert the text up to the node that has the focus; with Session, go back to an earlier one, or to the text before one that was only seen'],
  ['+ − 0', 'zoom in, zoom out, show all; so does Ctrl with the wheel'],
  ['Delete', 'ban the token of the node that has the focus'],
]};

/** The topics of Write's help: before and after what *Show* offers. */
export const WRITE_TOPICS = {words: [FINGER, WRITE_WORDS], keys: [TEXT_KEYS, BRANCH_KEYS, TREE_KEYS, EVERYWHERE]};

/** The topics of each other help by its name. @type {Record<string, Topic[]>} */
export const TOPICS = {
  rewrite: [FINGER, WORDS, TEXT_KEYS, BRANCH_KEYS, EVERYWHERE],
  assistant: [
    FINGER, WORDS, {...TEXT_KEYS, title: 'In the message', lines: [['Ctrl Enter', 'send the message, which passes the turn'], ...TEXT_KEYS.lines]},
    BRANCH_KEYS, EVERYWHERE,
  ],
  highlights: [
    {title: 'Words of this page', lines: [
      ['marked', 'one of the words and signs that were not the model’s first choice; the slider sets how many, and the first 4 tokens come last, unless there is an instruction'],
      ['underlined', 'the stronger the line, the less certain the model was there'],
      TOKEN,
      ['fits', 'an alternative after which your next words can stay'],
      ['…', 'after an alternative: its word may be longer'],
    ]},
    {title: 'In the analysed text', isOfKeys: true, lines: [
      ['← →', 'go from word to word; to the first or the last one with Home or End'],
      ['↑ ↓', 'go to the highlight before or after'],
      ['Enter', 'show how the text could have continued from that word'],
      ['Esc', 'hide what is said of the word, and close its branches'],
      ['Alt ↓', 'go to the branches'],
      ['Alt ↑', 'go to the text field; branches in its place are closed'],
    ]},
    {title: 'In the branches', isOfKeys: true, lines: [
      ['← → ↑ ↓', 'go from token to token and from row to row, to read them; nothing is inserted'],
      ['Alt ↑', 'go back to the word of the analysed text'],
    ]},
    EVERYWHERE,
  ],
  internals: [
    {title: 'In the tokens', isOfKeys: true, lines: [
      ['← → ↑ ↓', 'go from token to token and from line to line; to the first or the last one with Home or End'],
      ['Enter', 'show what the model expected at the token that has the focus'],
    ]},
    EVERYWHERE,
  ],
  lesson: [
    {title: 'In the lesson', isOfKeys: true, lines: [
      ['Tab', 'go to the next part, link, question or button'],
      ['↑ ↓', 'among the answers to a question: choose one'],
      ['Enter', 'follow the link, or press the button, that has the focus'],
      ['Alt ←', 'the browser’s Back: from an experiment back to the lesson'],
    ]},
    EVERYWHERE,
  ],
  cache: [EXPERIMENT_KEYS, EVERYWHERE],
  decoding: [EXPERIMENT_KEYS, EVERYWHERE],
  masks: [EXPERIMENT_KEYS, FIGURE_KEYS, EVERYWHERE],
  speculation: [EXPERIMENT_KEYS, FIGURE_KEYS, EVERYWHERE],
};

/**
 * The controls that a help explains, each with its sentence, in their order: each name and each sentence once. A sentence that
 * begins with a name and a colon does without both; one that only repeats the control's name, with or without a key, is left out.
 * So is a control that has the name of a key: *Everywhere* explains that.
 * @param {[name: string, sentence: string][]} controls
 * @returns {Topic}
 */
export function controlsTopic(controls) {
  /** @type {Map<string, string>} */
  const found = new Map(), said = new Set();
  for (const [name, sentence] of controls) {
    const own = sentence.replace(/^[A-Z][\w-]*: (.)/, (_, first) => first.toUpperCase()), bare = own.replace(/ \([^()]*\)$/, '');
    if (!name || KEYS_EVERYWHERE.includes(name) || !bare || bare === name || found.has(name) || said.has(own)) continue;
    found.set(name, own);
    said.add(own);
  }
  return {title: 'Controls and figures', lines: [...found]};
}
