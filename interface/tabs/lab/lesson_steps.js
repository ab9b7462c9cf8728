// The lesson of the Lab: its eight steps with their questions, and the six questions before and after it. The page, the
// teacher's sheet and the tests read them from here.
import {capitalized, formatNumber} from '../../web/core/figures_and_labels.js';
import {runLink} from './run_link.js';

/** @import {Run} from './run_link.js' */

/**
 * A question with several choices, of which one is right.
 * @typedef {{text: string, choices: string[], right: number, why: string}} Question
 *   `right` is the index of the right choice, `why` says why it is right
 */

/**
 * A step of the lesson. What is shown, `shows`, is true for the model that the page starts with.
 * @typedef {{
 *   title: string, explanation: string[], question: Question, shows: string, notice: string,
 *   page: string, run: Run, say: string, misunderstanding: string,
 * }} Step
 *   `page` and `run` are the experiment's page, such as "cache", and the fields of its form; `say` and `misunderstanding` are
 *   for the teacher
 */

/** A question of the questionnaire, and the numbers of the steps that answer it. @typedef {Question & {steps: number[]}} Asked */

const CAPITAL = 'The capital of France is', SPEAKER = 'The man said that he', SHORT = 'After careful';

/** All fields of the decoding page: a link that leaves one out would keep what the form held before. @type {Run} */
const DECODING = {
  prompt: CAPITAL, tokens: 12, greedy: true, samples: 0, beams: 0, temperature: 1, top_k: 0, top_p: 1, min_p: 0,
  repetition_penalty: 1, frequency_penalty: 0, presence_penalty: 0, seed: 0,
};
/** All fields of the cache page. @type {Run} */
const CACHE = {prompt: SPEAKER, k: 5, depth: 20, levels: 1, runs: 1, precisions: false};
/** All fields of the speculation page. @type {Run} */
const SPECULATION = {
  prompt: SPEAKER, tokens: 40, suffix: true, recycled: true, model: false, temperature: 0, top_k: 0, top_p: 1, seed: 0,
};

/**
 * Figures that the steps state, measured on the model that the page starts with. Odds are in per cent; a test compares each
 * with the experiment.
 */
export const FIGURES = {
  vocabulary: 49_152, paris: 77, the: 6, london: 1.2, shown: 12, others: 9,
  loop: 'He said he was going to the bathroom.', repeats: 76,
  hotParis: 5, coldParis: 99,
  greedyText: 'analysis, the company\'s decision to implement', greedyTotal: -13.5,
  beamText: 'consideration of the potential risks and benefits,', beamTotal: -7.8, timesAsLikely: 300, dropped: 41,
  cachedTokens: 100, uncachedTokens: 1430, passes: 20, ratio: 14.3,
  slots: 11, maskPasses: 4, slot: 6, reads: [0, 1, 3, 6],
  tokens: 40, draftedPasses: 13, hardPasses: 31,
};

/** A negative number with a proper minus sign. @param {number} value */
const signed = value => String(value).replace('-', '−');

const cached = FIGURES.cachedTokens, without = formatNumber(FIGURES.uncachedTokens), tokens = formatNumber(FIGURES.vocabulary);

/** @type {Step[]} */
export const STEPS = [
  {
    title: 'What a language model computes',
    explanation: [
      'A language model reads a text and predicts how it goes on. It reads and writes tokens: short pieces of text, often a word together with the space before it, sometimes a part of a word or a sign. Where a token is quoted here, its space is left out.',
      `The model that this page starts with knows ${tokens} different tokens. The beginning that you give it is called the prompt. Here it is “${CAPITAL}”.`,
    ],
    question: {
      text: 'What does the model compute for the next token after this prompt?',
      choices: [
        'One token, the answer that it has stored for this question',
        'A chance for each token that it knows',
        'A short list of the words that are allowed by the grammar',
        'A whole sentence, of which the first word is shown',
      ],
      right: 1,
      why: 'The model gives every token that it knows a score, called a logit. The scores are turned into chances: the higher the score, the higher the chance, and all chances together make 100 %. A chance is a probability. The model does not choose a token. A decoding method does that afterwards.',
    },
    shows: `“Paris” has a chance of ${FIGURES.paris} %, “the” of ${FIGURES.the} to ${FIGURES.the + 1} % and “London” of ${FIGURES.london} %. The plot has the ${FIGURES.shown} likeliest tokens. All others together have about ${FIGURES.others} %: see the last row of “The figures of these chances”.`,
    notice: 'Even where one token is by far the likeliest, the others keep a chance. A chance says how likely a token is to come next in such a text. It does not say whether the sentence is true.',
    page: 'decoding', run: {...DECODING, tokens: 4},
    say: 'Let the class complete the sentence aloud first, then ask what else could follow: “the”, “a”, “called”. That is the list that the model has, with a number for each entry.',
    misunderstanding: '“The model looks the answer up.” It computes a chance for every token, also for wrong answers.',
  },
  {
    title: 'Always the likeliest token',
    explanation: [
      'A decoding method makes a text out of chances. The simplest one is called greedy: take the token with the highest chance, add it to the text, let the model predict again, and so on.',
      `Here it writes ${FIGURES.tokens} tokens after “${SPEAKER}”.`,
    ],
    question: {
      text: `The likeliest token is taken ${FIGURES.tokens} times in a row. What do you expect of the text?`,
      choices: [
        'It is the best text the model can write, as each token is the best one',
        'It is another text each time that it is run, as chances are involved',
        'It comes to a sentence that it repeats again and again',
        'It gets stranger from token to token, as small errors add up',
      ],
      right: 2,
      why: 'A sentence that stands in the text makes the same sentence likelier to come again. Each repetition strengthens this. Greedy never takes a less likely token, so it does not get out of the repetition. As nothing is drawn, it writes the same text each time.',
    },
    shows: `The text comes to “${FIGURES.loop}” and repeats it to the end. Drag the tree to the left, or scroll it to the right, to see its later tokens: the chances of the sentence rise with each repetition. In the table below it, the column Repeats says ${FIGURES.repeats} %: so many sequences of three tokens have come before in the same text.`,
    notice: 'To take the best token at every step is not the same as to write the best text.',
    page: 'decoding', run: {...DECODING, prompt: SPEAKER, tokens: 40},
    say: 'Read the text aloud as far as the class can bear it, then ask at which token it could have left the repetition, and why it did not.',
    misunderstanding: '“Repetition shows that the model is broken.” The chances are as the model gives them; it is the method that always takes the highest one.',
  },
  {
    title: 'Drawing tokens, and temperature',
    explanation: [
      `The second method is sampling: the next token is drawn at random, each with its chance. A token with a chance of ${FIGURES.paris} % is drawn about ${FIGURES.paris} times in 100.`,
      'A number called temperature changes the chances before the draw: each score is divided by it, and the chances are computed from the results. At temperature 1 they stay as the model gives them.',
    ],
    question: {
      text: `After “${CAPITAL}”, the token “Paris” has a chance of ${FIGURES.paris} % at temperature 1. What is it at temperature 2?`,
      choices: [
        `About ${FIGURES.hotParis} %: tokens that are unlikely gain`,
        `About ${FIGURES.coldParis} %: the likeliest token gains`,
        'About 38 %: every chance is divided by two',
        `Still ${FIGURES.paris} %: there are more draws, with the same chances`,
      ],
      right: 0,
      why: `At temperature 2 the scores are halved, not the chances. A lead of 4.6 in the score makes a token 100 times as likely as another one; half of that lead makes it 10 times as likely. So thousands of unlikely tokens gain a little each, which is much in all: the chance of “Paris” falls far below a half. Below 1 the leads grow: at 0.5 “Paris” has ${FIGURES.coldParis} %.`,
    },
    shows: `At temperature 2, the chance of “Paris” falls from ${FIGURES.paris} % to ${FIGURES.hotParis} %. All tokens that the plot does not show have most of the chances together: see the last row of “The figures of these chances”. The four texts that are drawn make no sense; the tree shows the model’s own chances of their tokens, those at temperature 1.`,
    notice: 'On the page Decoding, set Temperature to 0.5 and run again: the texts agree far more. “Draw 10,000 tokens” shows that tokens really come as often as their chances say. The number called Seed stands for one series of draws: the same seed gives the same texts.',
    page: 'decoding', run: {...DECODING, samples: 4, temperature: 2},
    say: 'Change the temperature in front of the class in steps from 0 to 2, and let the class read the plot: which bars grow, which shrink? At 0 sampling is the same as greedy.',
    misunderstanding: '“A higher temperature makes the model more creative.” It makes unlikely tokens likelier, whether they fit or not.',
  },
  {
    title: 'Beam search looks further',
    explanation: [
      'The chance of a whole text is the product of the chances of its tokens. Such products are tiny, so the page adds up their logarithms instead and calls the sum Total. It is below 0, and the nearer to 0, the likelier the text.',
      'The third method, beam search, keeps several texts at once, called beams: here four. It lengthens each of them, keeps the four likeliest of all results, and drops the rest.',
    ],
    question: {
      text: `The prompt is “${SHORT}”, and the likeliest next token is “analysis”. Can a text that begins with another token have the better Total, at the same length?`,
      choices: [
        'No: the highest chance at each step gives the highest product',
        'No: beam search too begins with the likeliest token',
        'Yes, but only by luck, as the beams are drawn at random',
        'Yes: the tokens after a less likely one may be far likelier',
      ],
      right: 3,
      why: 'Greedy takes each token without knowing what can follow. “consideration” is less likely than “analysis”, but the tokens after it are so likely that the whole text is likelier. With figures: 50 % and then 10 % make 5 % for both tokens, but 40 % and then 90 % make 36 %. Beam search finds such a text because it did not drop its beginning.',
    },
    shows: `Each text has 8 tokens. Greedy writes “${FIGURES.greedyText}” with a Total of ${signed(FIGURES.greedyTotal)}. The best beam is “${FIGURES.beamText}” with ${signed(FIGURES.beamTotal)}, about ${FIGURES.timesAsLikely} times as likely. On the way, ${FIGURES.dropped} beginnings are dropped.`,
    notice: 'On the page Decoding, tick “dropped by the beam search” above the tree: the dropped beginnings are drawn in grey. Point at the last token of one to read why it was dropped. The likeliest text is not always the one that people like best: very likely texts are often dull.',
    page: 'decoding', run: {...DECODING, prompt: SHORT, tokens: 8, beams: 4},
    say: 'Draw two paths on the board: 50 % then 10 %, and 40 % then 90 %. The first step of the first path is better, its product of 5 % is worse than 36 %.',
    misunderstanding: '“Beam search finds the likeliest text of all.” It keeps only a few beginnings, so the likeliest text may be among those that it dropped.',
  },
  {
    title: 'The cache',
    explanation: [
      'When the model reads a text, it computes several numbers for each token, called keys and values, which all later tokens need. One such computation is called a pass. A cache keeps these numbers from pass to pass.',
      `Here five branches, that is five continuations, grow to ${FIGURES.passes} tokens each after “${SPEAKER}”, which is a prompt of 5 tokens: once with the cache, and once without.`,
    ],
    question: {
      text: 'For how many tokens are these numbers computed, with the cache and without it?',
      choices: [
        `${cached} and ${cached}: the same texts consist of the same tokens`,
        `${cached} and ${without}: each new token brings all earlier ones again`,
        `${cached} and ${2 * cached}: the prompt and the branches are read twice`,
        `${without} and ${cached}: the cache has to be filled before it is used`,
      ],
      right: 1,
      why: `With the cache: 5 tokens of the prompt, then 19 times the 5 newest tokens, which is ${cached}; the last token of a branch is chosen and not read. Without it, every branch is read from its beginning each time: 5 + 5 × (6 + 7 + … + 24) = ${without}.`,
    },
    shows: `The verdict is “Yes”: what the model predicts with the cache and without it is the same within the limits of rounding, which step 6 is about. Both sides need ${FIGURES.passes} passes, with ${cached} tokens and ${without} tokens: ${FIGURES.ratio} times as many. How much time that saves depends on the computer.`,
    notice: 'The cache changes how much is computed. It changes what comes out by rounding at most, which is coarse where the line at the top of the window, with the model’s name, says bfloat16. In the last plot on the page Cache, the curve is uneven where the computer had other work to do. The price is memory: see the last row of the first table there.',
    page: 'cache', run: {...CACHE, runs: 3},
    say: 'Let the class count by hand for one branch of three tokens after a prompt of two: 2, then 3, then 4 tokens without the cache, which is 9; with it 2 + 1 + 1, which is 4.',
    misunderstanding: '“The cache keeps finished answers.” It keeps numbers for tokens that were read, and every new token is still predicted by the model.',
  },
  {
    title: 'Rounding',
    explanation: [
      'A computer keeps only some digits of a number and rounds the rest. The number type float32 keeps about seven digits. The type bfloat16 keeps two or three, and needs half the memory.',
      'So two computations that are equal on paper can differ in the last digits. The verdict of step 5, “Yes”, means equal within a limit that leaves room for such rounding.',
    ],
    question: {
      text: 'The same branches are read once in float32 and once in bfloat16. What do you expect?',
      choices: [
        'The logits differ, and at some positions another token is the likeliest',
        'The logits are the same, as both types hold the same model',
        'The logits differ a little, but the likeliest token is always the same',
        'The likeliest tokens are other ones from the first one on',
      ],
      right: 0,
      why: 'Each of the many multiplications rounds a little, and in bfloat16 far more coarsely. Where one token is far ahead, it stays the likeliest. Where two tokens are nearly equally likely, a small difference decides between them.',
    },
    shows: `The sentence under the table says where float32 and bfloat16 part: within the ${FIGURES.passes} tokens at least one of the five branches has another likeliest token, while the logits differ by some per cent. At which token that happens depends on the computer, too.`,
    notice: 'Both number types read the same branches here, so they may agree again after such a token. A text that each of them continues by itself becomes another text from that token on, though no computation is wrong. Two computations that are right need not be equal in every digit.',
    page: 'cache', run: {...CACHE, precisions: true},
    say: 'Let the class compute 1/3 + 1/3 + 1/3 with two digits after the point, rounding each time: it is 0.99, though nobody has made a mistake.',
    misunderstanding: '“If the texts differ, one of the programs has an error.” Rounding alone is enough where two tokens are nearly equally likely.',
  },
  {
    title: 'Several futures in one pass',
    explanation: [
      'In step 5, one pass computes the newest token of each of the five branches together. In the cache every token has a slot: a numbered memory cell for its keys and values.',
      'How a token uses the numbers of other tokens is called attention. A mask is a table that says for each token which slots it attends to, and which stay hidden from it.',
    ],
    question: {
      text: `Three branches follow “${SHORT}”. One begins “consideration of”, another “analysis,”. Which tokens does “of” attend to?`,
      choices: [
        'To all tokens in the cache, as they are computed together',
        'To “consideration” alone, the token right before it',
        'To “After”, “careful”, “consideration” and itself',
        'To “After”, “careful” and the first token of each branch',
      ],
      right: 2,
      why: 'It attends to itself and to what stands before it in its own text: the prompt and its own branch. The other branches are hidden from it. So each branch gets the same chances as if it had been computed alone.',
    },
    shows: `Three branches of 4 tokens take ${FIGURES.maskPasses} passes and ${FIGURES.slots} slots: 2 for the prompt and 3 for each branch, since the last token of a branch needs none. “of” is in slot ${FIGURES.slot} and attends to slots ${FIGURES.reads.slice(0, -1).join(', ')} and ${FIGURES.reads.at(-1)}.`,
    notice: 'On the page Masks, press Play to see the passes one after the other, then point at a row of the mask. The two slots of the prompt are used by all three branches and exist once.',
    page: 'masks', run: {prompt: SHORT, k: 3, depth: 4},
    say: 'Let three students continue one sentence on three sheets of paper. Each may read the beginning on the board and the own sheet, and not the sheets of the others. That rule is the mask.',
    misunderstanding: '“Branches in one pass influence each other.” The mask hides them from each other, and the chances are those of a branch alone.',
  },
  {
    title: 'Draft several tokens, check them in one pass',
    explanation: [
      'A pass over one token takes nearly as long as a pass over a handful, because most of the time goes into fetching the numbers that the model consists of. Only passes over many tokens, as in step 5, take longer. Speculation makes use of this: a quick program guesses the next tokens, for example by looking up what followed the same words earlier in the text.',
      'The model then checks all guesses in one pass, and writes a token of its own after those that it keeps.',
    ],
    question: {
      text: 'A greedy text is written with guesses, some of them wrong. What can the wrong guesses change?',
      choices: [
        'The text: a wrong guess that looks likely is kept at times',
        'The text: it becomes simpler, like that of the quick program',
        'Nothing at all: each token needs a pass of its own anyway',
        'The number of passes, but no token of the text',
      ],
      right: 3,
      why: 'A guess is kept only if it is the token that the model would have written itself, and nothing is kept after the first wrong one. A right guess saves a pass. After a wrong one, the pass still gives the model’s own token, so nothing is lost but a little work.',
    },
    shows: `After “${SPEAKER}”, ${FIGURES.tokens} tokens take ${FIGURES.tokens} passes without guesses. With guesses it takes ${FIGURES.draftedPasses} passes in float32, and the text is the same. In bfloat16 the number may differ a little.`,
    notice: `On the page Speculation, press Play to see the passes one after the other. That page calls guesses drafts. Several tokens may be guessed for one position; those with a ✗ were wrong, and the line under the tree says which token the model added. A text that repeats itself is easy to guess. After “${SHORT}”, where little is repeated, ${FIGURES.tokens} tokens take ${FIGURES.hardPasses} passes. The text stays the same in any case.`,
    page: 'speculation', run: SPECULATION,
    say: 'Play it: one student guesses the next five words of a sentence, another one knows the sentence and checks all five at once. Count the rounds with good and with bad guesses.',
    misunderstanding: '“What is faster must be less exact.” The check is by the same model, and the text is the one that it writes alone.',
  },
];

/** The questions that are asked before the lesson and after it. @type {Asked[]} */
export const QUESTIONS = [
  {
    text: 'After “The sky is”, a model gives “blue” a chance of 60 %. What does that mean?',
    choices: [
      'The sentence “The sky is blue” is true with a certainty of 60 %',
      'By its prediction, such a text goes on with “blue” in 60 of 100 cases',
      'In the texts that it learned from, 60 % of the skies are blue',
      'The model is 60 % done with its choice, and “blue” is ahead',
    ],
    right: 1, steps: [1],
    why: 'A chance is a prediction of what comes next in the text, and not a statement about the world.',
  },
  {
    text: 'A program writes a text word by word and always takes the likeliest next word. What is certain about its text?',
    choices: [
      'It is the likeliest of all texts of its length',
      'It contains no sentence twice, as that would be unlikely',
      'It is the same text when the same computation is repeated',
      'It is correct as far as the model has learned the facts',
    ],
    right: 2, steps: [2, 4],
    why: 'Nothing is drawn, so the text is always the same. It may repeat itself, and another text can be likelier as a whole.',
  },
  {
    text: 'The words of a text are drawn at random, several times, and you want the texts to differ less. What do you do with the temperature?',
    choices: [
      'Lower it: likely words become likelier still',
      'Raise it: likely words become likelier still',
      'Leave it: only another seed changes how much they differ',
      'Leave it: it only changes how fast words are drawn',
    ],
    right: 0, steps: [3],
    why: 'Below 1, the chances of likely words grow, and the drawn texts agree more. The seed changes which texts are drawn, and not how much they differ.',
  },
  {
    text: 'A model writes a text, once with a cache of keys and values and once without. What is different?',
    choices: [
      'The text: with the cache the model remembers more of it',
      'The chances: the cache gives up some exactness for speed',
      'The number of words that can be chosen from',
      'The amount of computing: with the cache less is computed again',
    ],
    right: 3, steps: [5],
    why: 'The cache keeps what was computed for earlier tokens. The result is the same, but for rounding.',
  },
  {
    text: 'Two correct programs compute the same chances, and the results differ in the sixth digit. Each writes a text of the likeliest words. What follows?',
    choices: [
      'Nothing: such small differences never change a text',
      'The texts may part where two words are almost equally likely',
      'The texts part at the first word, as every chance differs',
      'One of the programs is wrong, or its text would be the same',
    ],
    right: 1, steps: [6],
    why: 'Where one word is far ahead, the sixth digit changes nothing. Where two are almost equally likely, it can decide.',
  },
  {
    text: 'A quick program guesses five words, and the model checks them all at once. Only the third guess is wrong. What happens?',
    choices: [
      'Two guesses are kept, and the model adds its own word',
      'Four guesses are kept, and the model replaces the third one',
      'All five are dropped, and the model writes five words one by one',
      'All five are kept, if most of them were right',
    ],
    right: 0, steps: [8],
    why: 'What follows a wrong word was guessed for another text. So guesses count up to the first wrong one, where the model’s own word is written.',
  },
];

/** The parts of the lesson, as its addresses name them: `#lab-lesson?step=3`. */
export const PARTS = ['before', ...STEPS.map((_, index) => String(index + 1)), 'after', 'teacher'];

export const MARK = '#lab-lesson';

/** The address of a part. @param {string} part */
export const partLink = part => `${MARK}?step=${part}`;

/**
 * The part that a fragment names: empty if it names none of the parts, null if it is no address of the lesson.
 * @param {string} fragment
 */
export function partOf(fragment) {
  const [own, query = ''] = fragment.split('?', 2);
  if (own !== MARK) return null;
  const part = new URLSearchParams(query).get('step') ?? '';
  return PARTS.includes(part) ? part : '';
}

/** The address that opens a step's experiment and runs it. @param {Step} step */
export const experimentLink = ({page, run}) => runLink(`#lab-${page}`, run);

/** What the experiment's page is called. @param {Step} step */
export const pageName = ({page}) => capitalized(page);

const CAME_FROM = 'lesson';   // the field of an experiment's address that holds the step that links to it

/** The same with the number of the step, to which the experiment's page then has a link back. @param {string} part */
export const linkFromStep = part => `${experimentLink(STEPS[Number(part) - 1])}&${CAME_FROM}=${part}`;

/**
 * The step that links to an experiment's address; empty if none does.
 * @param {string} fragment
 * @param {string} mark that the fragments of the experiment's page begin with: "#lab-cache"
 */
export function stepLinkingTo(fragment, mark) {
  const [own, query = ''] = fragment.split('?', 2), part = new URLSearchParams(query).get(CAME_FROM) ?? '';
  return own === mark && Number(part) && PARTS.includes(part) ? part : '';
}
