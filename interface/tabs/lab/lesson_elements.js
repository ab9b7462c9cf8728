// The elements of the lesson's parts: a step, a questionnaire before it is handed in and after, and the teacher's sheet.
/** @import {Block} from './lesson_sheet.js' */
/** @import {Progress} from './lesson_progress.js' */
/** @import {Question} from './lesson_steps.js' */
import {NONE, comparisonSentence} from './lesson_progress.js';
import {PARTS, QUESTIONS, STEPS, linkFromStep, pageName, partLink} from './lesson_steps.js';
import {make} from '../../web/ui/elements.js';
import {sheetBlocks} from './lesson_sheet.js';

const UNKNOWN = 'I do not know';

/** A text in which no line ends between a figure and its unit. @param {string} text */
const unbroken = text => text.replaceAll(' %', '\u00a0%');

/** @typedef {(choice: number) => void} Choose */

/** What a part is called. @param {string} part */
export function titleOf(part) {
  const names = {before: 'Before the lesson', after: 'After the lesson', teacher: 'For the teacher'};
  return part in names ? names[/** @type {keyof typeof names} */ (part)] : STEPS[Number(part) - 1].title;
}

/**
 * A paragraph that begins with a bold word.
 * @param {string} strong
 * @param {...(Node | string)} rest
 */
const labelled = (strong, ...rest) => make('p', {}, make('strong', {text: strong}), ' ', ...rest);

/**
 * A question as a field set of radio buttons.
 * @param {Question} question
 * @param {{name: string, chosen: number | null, number?: number, closed?: boolean, marked?: boolean, unknown?: boolean, choose?: Choose}} options
 *   `name` of its radio buttons; its `number`, if it is one of several; `closed` whether it can no longer be changed; `marked`
 *   whether the right choice is shown; `unknown` whether one may say that one does not know
 */
function questionElement({text, choices, right}, {name, chosen, number, closed = false, marked = false, unknown = false, choose = () => {}}) {
  const all = [...choices.map((choice, index) => /** @type {const} */ ([choice, index])), ...(unknown ? [/** @type {const} */ ([UNKNOWN, NONE])] : [])];
  return make('fieldset', {disabled: closed}, make('legend', {text: unbroken(number ? `${number}. ${text}` : text)}), ...all.map(([choice, index]) => {
    const input = make('input', {type: 'radio', name, value: String(index), checked: chosen === index});
    input.addEventListener('change', () => choose(index));
    const [className = '', mark = ''] = !marked ? [] : index === right ? ['is-right', '✓ right'] : index === chosen ? ['is-wrong', '✗ not right'] : [];
    return make('label', {className}, input, ' ', make('span', {text: unbroken(choice)}), ...(mark ? [make('span', {className: 'mark', text: mark})] : []));
  }));
}

/** What is said beside a button when an answer is missing. */
const missingElement = () => make('p', {className: 'missing', ariaLive: 'polite'});

/** @param {Question} question @param {number | null} choice */
const isRight = ({right}, choice) => choice === right;

/**
 * What an answer was worth, and what is right.
 * @param {Question} question
 * @param {number | null} choice
 */
function verdictOf(question, choice) {
  const right = unbroken(question.choices[question.right]);
  if (isRight(question, choice)) return `Right: ${right}`;
  return choice === NONE ? `The answer: ${right}` : `Not right. The answer: ${right}`;
}

/**
 * The content of a step.
 * @param {number} index of the step
 * @param {Progress} progress
 * @param {{answer: Choose, follow: (link: HTMLAnchorElement) => void}} calls `follow` is called when the experiment is opened
 * @returns {(Node | string)[]}
 */
export function stepElements(index, {steps}, {answer, follow}) {
  const step = STEPS[index], {question} = step, choice = steps[index], part = String(index + 1), page = pageName(step);
  const head = [...headOf(part, `Step ${part} of ${STEPS.length}`), ...step.explanation.map(text => make('p', {text: unbroken(text)}))];
  if (choice === null) {
    /** @type {number | null} */
    let chosen = null;
    const missing = missingElement();
    const fields = questionElement(question, {name: `lesson-${part}`, chosen, choose: value => { chosen = value; missing.textContent = ''; }});
    const check = make('button', {className: 'chief check', text: 'Check my answer'});
    check.addEventListener('click', () => {
      if (chosen === null) missing.textContent = 'Choose an answer first.';
      else answer(chosen);
    });
    const reveal = make('button', {className: 'reveal', text: 'Show without answering'});
    reveal.addEventListener('click', () => answer(NONE));
    return [...head, fields, make('div', {className: 'choose'}, check, reveal, missing), stepsBeside(part)];
  }
  const open = make('a', {className: 'open', href: linkFromStep(part), text: `Open the page ${page} and run the experiment`});
  open.addEventListener('click', () => follow(open));
  return [
    ...head, questionElement(question, {name: `lesson-${part}`, chosen: choice, closed: true, marked: true}),
    make('div', {className: `answer ${isRight(question, choice) ? 'is-right' : choice === NONE ? '' : 'is-wrong'}`},
      make('p', {className: 'verdict', tabIndex: -1, text: verdictOf(question, choice)}), make('p', {text: unbroken(question.why)}),
      labelled(`What the page ${page} shows, with the model that Lookahead starts with.`, unbroken(step.shows)), labelled('What to notice.', unbroken(step.notice)), make('p', {}, open)),
    stepsBeside(part),
  ];
}

/**
 * The content of a questionnaire.
 * @param {'before' | 'after'} when
 * @param {Progress} progress
 * @param {{choose: (index: number, choice: number) => void, handIn: () => void}} calls `handIn` is called with all questions answered
 * @returns {(Node | string)[]}
 */
export function questionnaireElements(when, progress, {choose, handIn}) {
  const {choices, done} = progress[when], head = headOf(when, `${QUESTIONS.length} questions`);
  if (when === 'before' && !done && progress.after.done)
    return [...head, make('p', {text: 'The questions were answered after the lesson, where the right answers are shown. Start again to answer them here first.'}), stepsBeside(when)];
  if (when === 'after' && done) return [...head, ...resultElements(progress), stepsBeside(when)];
  const says = {
    before: 'Answer what you can before you begin. Nobody is expected to know this yet. The right answers are shown after the lesson, where the same questions come again.',
    after: 'These are the questions from before the lesson. When all are answered, you see both scores and the right answers.',
  };
  const saved = 'Your answers are saved. The same questions come after the lesson, with the right answers.';
  const button = make('button', {className: 'chief hand-in', text: when === 'before' ? 'Save my answers' : 'Show both scores'});
  const missing = missingElement();
  const fields = QUESTIONS.map((question, index) => questionElement(question, {
    name: `lesson-${when}-${index + 1}`, number: index + 1, chosen: choices[index], closed: done, unknown: true,
    choose: choice => { choose(index, choice); missing.textContent = ''; },
  }));
  button.addEventListener('click', () => {
    const open = choices.indexOf(null);
    if (open < 0) {
      handIn();
      return;
    }
    fields[open].append(missing);   // in sight where the page scrolls to
    missing.textContent = `Question ${open + 1} has no answer yet.`;
    fields[open].querySelector('input')?.focus();
  });
  return [
    ...head, make('p', {className: 'says', tabIndex: -1, text: done ? saved : says[when]}), ...fields, ...(done ? [] : [make('div', {className: 'choose'}, button, missing)]), stepsBeside(when),
  ];
}

/** Both scores, and each question with its answers. @param {Progress} progress @returns {Node[]} */
function resultElements({before, after}) {
  /** @type {(question: Question, choice: number | null, done: boolean) => string} */
  const said = (question, choice, done) => {
    if (!done || choice === null) return 'no answer';
    return `${isRight(question, choice) ? '✓ right' : '✗ not right'} – ${choice === NONE ? UNKNOWN : unbroken(question.choices[choice])}`;
  };
  return [
    make('p', {className: 'verdict', tabIndex: -1, text: comparisonSentence({before, after})}),
    make('ol', {className: 'results'}, ...QUESTIONS.map((question, index) => make('li', {},
      make('p', {className: 'asked', text: unbroken(question.text)}),
      labelled('Right:', unbroken(question.choices[question.right])), make('p', {text: unbroken(question.why)}),
      labelled('Before:', said(question, before.choices[index], before.done)), labelled('After:', said(question, after.choices[index], after.done)),
      make('p', {}, ...question.steps.flatMap((step, at) => [at ? ', ' : 'See ', make('a', {href: partLink(String(step)), text: `step ${step}`})])),
    ))),
  ];
}

/** The teacher's sheet. @param {() => void} print @returns {Node[]} */
export function teacherElements(print) {
  const button = make('button', {className: 'print', text: 'Print this sheet'});
  button.addEventListener('click', print);
  // The part's own heading stands for the sheet's title.
  const [, ...blocks] = sheetBlocks();
  return [...headOf('teacher', 'It holds all answers'), make('div', {className: 'choose'}, button), ...blocks.map(blockElement), stepsBeside('teacher')];
}

/** @type {Record<string, 'h4' | 'h5'>} */
const SHEET_HEADINGS = {h2: 'h4', h3: 'h5'};

/** @param {Block} block @returns {HTMLElement} */
function blockElement(block) {
  if (block.tag === 'ul')
    return make('ul', {}, ...block.items.map(unbroken).map((text, index) => (index === block.right ? make('li', {}, make('strong', {text}), ' (right)') : make('li', {text}))));
  if (block.tag !== 'p') return make(SHEET_HEADINGS[block.tag] ?? 'h4', {text: block.text});
  // In print an address that is cut short would open another run.
  const links = (block.addresses ?? []).flatMap(([href, ariaLabel]) => [' ', make('a', {href, text: href, ariaLabel})]);
  return block.strong ? labelled(`${block.strong}.`, unbroken(block.text), ...links) : make('p', {}, unbroken(block.text), ...links);
}

/** A small line above the heading of a part, and the heading. @param {string} part @param {string} over */
const headOf = (part, over) => [make('p', {className: 'over', text: over}), make('h3', {tabIndex: -1, text: titleOf(part)})];

/** Links to the part before and to the next one. @param {string} part */
function stepsBeside(part) {
  const at = PARTS.indexOf(part), element = make('nav', {className: 'beside', ariaLabel: 'The parts beside this one'});
  for (const [other, className, sign] of /** @type {const} */ ([[PARTS[at - 1], 'previous', '‹ '], [PARTS[at + 1], 'next', ' ›']])) {
    if (!other) continue;
    const text = /\d/.test(other) ? `Step ${other}: ${titleOf(other)}` : titleOf(other);
    element.append(make('a', {className, href: partLink(other), text: className === 'next' ? text + sign : sign + text}));
  }
  return element;
}
