// What a person has answered in the lesson of the Lab, and the scores of it.
/** @import {Question} from './lesson_steps.js' */
import {capitalized} from '../../web/core/figures_and_labels.js';
import {PARTS, QUESTIONS, STEPS} from './lesson_steps.js';

/** In place of a choice: the answer of a step was shown without answering, or "I do not know" in a questionnaire. */
export const NONE = -1;

/**
 * A questionnaire: the choice for each question, null if there is none yet, and whether the answers are handed in.
 * @typedef {{choices: (number | null)[], done: boolean}} Questionnaire
 */

/**
 * The progress of a person: the choice at each step, null while its question is open; the two questionnaires; and the part that
 * is open.
 * @typedef {{steps: (number | null)[], before: Questionnaire, after: Questionnaire, part: string}} Progress
 */

/** @type {(questions: unknown[]) => null[]} */
const open = questions => questions.map(() => null);

/** @returns {Progress} */
export const noProgress = () => ({
  steps: open(STEPS), before: {choices: open(QUESTIONS), done: false}, after: {choices: open(QUESTIONS), done: false}, part: PARTS[0],
});

/** Whether a value is a choice of a question. @param {unknown} value @param {Question} question */
const isChoice = (value, {choices}) => Number.isInteger(value) && Number(value) >= NONE && Number(value) < choices.length;

/** @type {(values: unknown, questions: Question[]) => (number | null)[]} */
const choicesFrom = (values, questions) => questions.map((question, index) => {
  const value = Array.isArray(values) ? values[index] : null;
  return isChoice(value, question) ? value : null;
});

/** @param {any} value @returns {Questionnaire} */
function questionnaireFrom(value) {
  const choices = choicesFrom(value?.choices, QUESTIONS);
  return {choices, done: value?.done === true && isComplete(choices)};
}

/** Whether every question has a choice. @param {(number | null)[]} choices */
export const isComplete = choices => !choices.includes(null);

/**
 * A stored progress; what is not a choice of its question is left open.
 * @param {any} value
 * @returns {Progress}
 */
export const progressFrom = value => ({
  steps: choicesFrom(value?.steps, STEPS.map(({question}) => question)),
  before: questionnaireFrom(value?.before), after: questionnaireFrom(value?.after),
  part: PARTS.includes(value?.part) ? value.part : PARTS[0],
});

/**
 * The progress with an answer to a step's question. The first answer counts: it is never replaced.
 * @param {Progress} progress
 * @param {number} index of the step
 * @param {number} choice NONE if the answer is shown without answering
 * @returns {Progress}
 */
export const withAnswer = (progress, index, choice) =>
  ({...progress, steps: progress.steps.map((earlier, at) => (at === index && earlier === null ? choice : earlier))});

/** How many choices are right. @param {(number | null)[]} choices @param {Question[]} questions */
export const countRight = (choices, questions) => questions.filter(({right}, index) => choices[index] === right).length;

/**
 * The score of the steps in one sentence: "5 of 8 steps answered right".
 * @param {Pick<Progress, 'steps'>} progress
 */
export function scoreSentence({steps}) {
  const right = countRight(steps, STEPS.map(({question}) => question)), left = steps.filter(choice => choice === null).length;
  return `${right} of ${STEPS.length} steps answered right${left && left < STEPS.length ? `, ${left} still open` : ''}`;
}

/**
 * The scores of both questionnaires in one sentence: "2 of 6 before, 5 of 6 after"; "Not answered before, 5 of 6 after".
 * @param {Pick<Progress, 'before' | 'after'>} progress
 */
export function comparisonSentence({before, after}) {
  /** @type {(one: Questionnaire, when: string) => string} */
  const score = ({choices, done}, when) => (done ? `${countRight(choices, QUESTIONS)} of ${QUESTIONS.length} ${when}` : `not answered ${when}`), sentence = `${score(before, 'before')}, ${score(after, 'after')}`;
  return capitalized(sentence);
}
