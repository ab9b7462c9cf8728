// The teacher's sheet of the lesson, as blocks of text: the page shows them, and docs/lesson.md holds them as Markdown.
/** @import {Question} from './lesson_steps.js' */
import {QUESTIONS, STEPS, experimentLink, pageName, partLink} from './lesson_steps.js';

/**
 * A heading, a paragraph or a list. `strong` stands before the text, `addresses` of the page after it, with names for screen readers;
 * `right` is the index of the list's right choice.
 * @typedef {{tag: 'h1' | 'h2' | 'h3', text: string} | {tag: 'p', text: string, strong?: string, addresses?: [address: string, name: string][]}
 *   | {tag: 'ul', items: string[], right?: number}} Block
 */

const MINUTES_OF_STEP = 2.5, MINUTES_BEFORE = 3, MINUTES_AFTER = 4;

/** @type {(question: Question) => Block[]} */
const questionBlocks = ({text, choices, right, why}) => [
  {tag: 'p', strong: 'Question', text}, {tag: 'ul', items: choices, right}, {tag: 'p', strong: 'Why', text: why},
];

/** @param {number} minutes since the beginning of the lesson */
const clock = minutes => `${Math.floor(minutes)}:${minutes % 1 ? '30' : '00'}`;

/** When each part begins, in minutes and seconds. @returns {string[]} */
function timetable() {
  const first = MINUTES_BEFORE, after = first + MINUTES_OF_STEP * STEPS.length;
  return [
    `${clock(0)} The six questions before the lesson, ${MINUTES_BEFORE} minutes`,
    ...STEPS.map(({title}, index) => `${clock(first + MINUTES_OF_STEP * index)} Step ${index + 1}: ${title}`),
    `${clock(after)} The same six questions again, and a look at both scores, ${MINUTES_AFTER} minutes`,
  ];
}

/** The sheet. @returns {Block[]} */
export const sheetBlocks = () => [
  {tag: 'h1', text: 'A lesson on how a language model writes'},
  {tag: 'p', text: 'For the teacher. It holds all answers. The lesson is the page Lesson of the Lab, at the address #lab-lesson. It has eight steps of two and a half minutes each, with the same six questions before and after them, so it takes about half an hour in all. It assumes no knowledge of language models, and it can be read without running anything.'},
  {tag: 'h2', text: 'Timetable'},
  {tag: 'ul', items: timetable()},
  {tag: 'p', text: 'In each step: one person reads the explanation aloud, everybody answers alone, and only then the answer is opened. Run the experiment at the front, or let everybody run it, and end with what to notice.'},
  {tag: 'h2', text: 'A class on one link'},
  {tag: 'ul', items: [
    'Give the class the address of the page with #lab-lesson at its end. The address of a step, such as #lab-lesson?step=3, opens it there. An address that begins with 127.0.0.1 or localhost works on your own computer only.',
    'Reading and answering need no server. Answers and scores stay in the tab of each person’s browser, survive a reload, and are gone when the tab is closed. Nothing of them is sent, so ask for a show of hands: who has more right answers after the lesson than before?',
    'Experiments run on the server. Steps 5 and 6 take the longest: with a large class, run them once at the front. People who write in the other tabs meanwhile go first.',
    'The stated figures are those of the model that the page starts with. With another model the experiments run as well, and texts and chances differ. Times and the figures of steps 6 and 8 also depend on the computer.',
    'To work without computers, print the lesson: the page prints all eight steps with their questions, and from this part the sheet.',
  ]},
  {tag: 'h2', text: 'The eight steps'},
  ...STEPS.flatMap((step, index) => stepBlocks(step, index + 1)),
  {tag: 'h2', text: 'The six questions before and after'},
  {tag: 'p', text: 'The part “Before the lesson” does not show the right answers. The part “After the lesson” shows both scores and the right answers once its questions are answered. This sheet shows all right answers, and everybody can open it: ask the class to leave it closed. “I do not know” is offered with each question and counts as not right.'},
  ...QUESTIONS.flatMap((question, index) => /** @type {Block[]} */ ([
    {tag: 'h3', text: `Question ${index + 1}, answered by ${question.steps.length > 1 ? 'steps' : 'step'} ${question.steps.join(' and ')}`}, ...questionBlocks(question),
  ])),
];

/** @type {(step: import('./lesson_steps.js').Step, number: number) => Block[]} */
const stepBlocks = (step, number) => [
  {tag: 'h3', text: `${number}. ${step.title}`},
  {tag: 'p', strong: 'What to say', text: step.say},
  ...questionBlocks(step.question),
  {tag: 'p', strong: `What the experiment shows on the page ${pageName(step)}`, text: step.shows},
  {tag: 'p', strong: 'What to notice', text: step.notice},
  {tag: 'p', strong: 'Common misunderstanding', text: step.misunderstanding},
  {tag: 'p', strong: 'Addresses', text: 'The step, and its experiment:', addresses: [[partLink(String(number)), `Step ${number}`], [experimentLink(step), `The experiment of step ${number}`]]},
];

/** A text without Markdown's own signs. @param {string} text */
const escaped = text => text.replace(/[*_<>[\]`\\]/g, '\\$&');

/** @param {Block} block */
function markdownOfBlock(block) {
  if (block.tag === 'ul')
    return block.items.map((item, index) => (index === block.right ? `- **${escaped(item)}** (right)` : `- ${escaped(item)}`)).join('\n');
  if (block.tag === 'p')
    return [block.strong && `**${block.strong}.**`, escaped(block.text), ...(block.addresses ?? []).map(([address]) => `\`${address}\``)].filter(Boolean).join(' ');
  return `${'#'.repeat(Number(block.tag[1]))} ${escaped(block.text)}`;
}

/** The blocks as Markdown, with a line break at the end. @param {Block[]} blocks */
export const markdownOf = blocks => `${blocks.map(markdownOfBlock).join('\n\n')}\n`;
