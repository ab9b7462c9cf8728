import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

import {NONE, comparisonSentence, countRight, isComplete, noProgress, progressFrom, scoreSentence, withAnswer} from '../../../../interface/tabs/lab/lesson_progress.js';
import {PARTS, QUESTIONS, STEPS, experimentLink, linkFromStep, partLink, pageName, partOf, stepLinkingTo} from '../../../../interface/tabs/lab/lesson_steps.js';
import {markdownOf, sheetBlocks} from '../../../../interface/tabs/lab/lesson_sheet.js';

const ALL = [...STEPS.map(({question}) => question), ...QUESTIONS];
const rightChoices = questions => questions.map(({right}) => right);

test('there are eight steps, and six questions before and after them', () => {
  assert.deepEqual([STEPS.length, QUESTIONS.length], [8, 6]);
  assert.equal(new Set(ALL.map(({text}) => text)).size, 14, 'no question is asked twice');
});

test('each question has three or four different choices, and exactly one of them is right', () => {
  for (const {text, choices, right, why} of ALL) {
    assert.ok(choices.length === 3 || choices.length === 4, text);
    assert.equal(new Set(choices).size, choices.length, text);
    assert.ok(Number.isInteger(right) && right in choices, text);
    assert.ok(why, text);
  }
});

test('neither the length nor the position of a choice betrays that it is right', () => {
  for (const questions of [STEPS.map(({question}) => question), QUESTIONS])
    for (const position of [0, 1, 2, 3]) assert.ok(questions.filter(({right}) => right === position).length <= 2, `position ${position}`);
  for (const extreme of [Math.max, Math.min]) {
    const betrayed = ALL.filter(({choices, right}) => choices[right].length === extreme(...choices.map(({length}) => length)));
    assert.ok(betrayed.length <= 6, betrayed.map(({text}) => text).join('\n'));
  }
});

test('the steps answer all questions of the questionnaire', () => {
  for (const {text, steps} of QUESTIONS) assert.ok(steps.length && steps.every(number => STEPS[number - 1]), text);
});

test('the address of each part names it, and other fragments name none', () => {
  for (const part of PARTS) assert.equal(partOf(partLink(part)), part);
  for (const fragment of ['#lab-lesson', '#lab-lesson?step=', '#lab-lesson?step=9', '#lab-lesson?part=3']) assert.equal(partOf(fragment), '');
  for (const fragment of ['', '#lab-lessons?step=3', '#lab-cache?step=3', '#t=lesson']) assert.equal(partOf(fragment), null);
});

test('each experiment has an address of its page with a prompt', () => {
  for (const step of STEPS) {
    const [mark, query] = experimentLink(step).split('?');
    assert.match(mark, /^#lab-(cache|decoding|masks|speculation)$/);
    assert.equal(new URLSearchParams(query).get('prompt'), step.run.prompt);
  }
});

test('what to notice names the page of the experiment where it names a part of that page', () => {
  for (const step of STEPS)
    if (/\b(plot|table|row|tree|Play|Temperature|Seed|passes)\b/.test(step.notice)) assert.ok(step.notice.includes(`n the page ${pageName(step)}`), step.notice);
  assert.deepEqual(STEPS.map(pageName), ['Decoding', 'Decoding', 'Decoding', 'Decoding', 'Cache', 'Cache', 'Masks', 'Speculation']);
  for (const step of STEPS) assert.ok(markdownOf(sheetBlocks()).includes(`What the experiment shows on the page ${pageName(step)}`));
});

test('the step whose text goes on beyond the edge of the tree says how to get there', () => {
  assert.match(STEPS[1].shows, /Drag the tree to the left, or scroll it to the right/);
});

test('the address in a step names the step, and other addresses of the experiment name none', () => {
  STEPS.forEach((step, index) => {
    const part = String(index + 1), mark = `#lab-${step.page}`;
    assert.equal(stepLinkingTo(linkFromStep(part), mark), part);
    assert.equal(stepLinkingTo(linkFromStep(part), '#lab-other'), '', 'it is the address of another page');
    assert.equal(stepLinkingTo(experimentLink(step), mark), '');
  });
  for (const query of ['', '?lesson=', '?lesson=9', '?lesson=before', '?lesson=0']) assert.equal(stepLinkingTo(`#lab-cache${query}`, '#lab-cache'), '');
});

test('a new progress is open, and so is what is stored but no progress', () => {
  const {steps, before, after, part} = noProgress();
  assert.ok([...steps, ...before.choices, ...after.choices].every(choice => choice === null) && !before.done && !after.done);
  assert.equal(part, 'before');
  for (const value of [null, 3, 'x', [], {steps: 'abc', before: 4, after: {choices: {}}, part: '9'}]) assert.deepEqual(progressFrom(value), noProgress());
});

test('a stored progress is restored, without what is not a choice', () => {
  const progress = {...noProgress(), steps: [1, 0, NONE, 3, null, null, null, null], before: {choices: [NONE, 0, 1, 2, 3, 0], done: true}, part: '4'};
  assert.deepEqual(progressFrom(JSON.parse(JSON.stringify(progress))), progress);
  assert.deepEqual(progressFrom({steps: [4, -2, 0.5, '1', true, 2]}).steps, [null, null, null, null, null, 2, null, null]);
  assert.equal(progressFrom({before: {choices: [0, 0, 0, 0, 0, null], done: true}}).before.done, false, 'an open question cannot be handed in');
});

test('the first answer of a step counts', () => {
  const wrong = withAnswer(noProgress(), 0, 3), again = withAnswer(wrong, 0, STEPS[0].question.right);
  assert.equal(again.steps[0], 3);
  assert.equal(withAnswer(noProgress(), 2, NONE).steps[2], NONE);
  assert.equal(noProgress().steps[0], null, 'and no other progress is changed');
});

test('the score counts right answers, and neither wrong ones nor those that were shown', () => {
  assert.equal(scoreSentence(noProgress()), '0 of 8 steps answered right');
  const right = rightChoices(STEPS.map(({question}) => question)), wrong = right.map(choice => (choice + 1) % 3);
  assert.equal(scoreSentence({steps: right}), '8 of 8 steps answered right');
  assert.equal(scoreSentence({steps: wrong}), `${countRight(wrong, STEPS.map(({question}) => question))} of 8 steps answered right`);
  assert.equal(scoreSentence({steps: [...right.slice(0, 5), NONE, NONE, NONE]}), '5 of 8 steps answered right');
  assert.equal(scoreSentence({steps: [...right.slice(0, 2), NONE, null, null, null, null, null]}), '2 of 8 steps answered right, 5 still open');
});

test('both questionnaires are counted against the same questions', () => {
  const right = rightChoices(QUESTIONS), two = right.map((choice, index) => (index < 2 ? choice : NONE));
  const five = right.map((choice, index) => (index ? choice : NONE));
  assert.equal(comparisonSentence({before: {choices: two, done: true}, after: {choices: five, done: true}}), '2 of 6 before, 5 of 6 after');
  assert.equal(comparisonSentence({before: {choices: two, done: false}, after: {choices: right, done: true}}), 'Not answered before, 6 of 6 after');
});

test('a questionnaire is complete when every question has a choice, be it that one does not know', () => {
  assert.ok(isComplete([0, NONE, 2]));
  assert.ok(!isComplete([0, null, 2]));
});

test('the sheet has every question with its choices and marks the right one', () => {
  const sheet = markdownOf(sheetBlocks());
  for (const {text, choices, right, why} of ALL) {
    assert.ok(sheet.includes(text), text);
    choices.forEach((choice, index) => assert.ok(sheet.includes(index === right ? `- **${choice}** (right)` : `- ${choice}\n`), choice));
    assert.ok(sheet.includes(why), why);
  }
});

test('the sheet does not say that the page hides the right answers: everybody can open the sheet', () => {
  const sheet = markdownOf(sheetBlocks());
  assert.ok(!sheet.includes('The page does not show the right answers'));
  assert.ok(sheet.includes('This sheet shows all right answers, and everybody can open it'));
});

test('docs/lesson.md is the sheet', () => {
  const written = readFileSync(new URL('../../../../docs/lesson.md', import.meta.url), 'utf-8');
  assert.equal(written, markdownOf(sheetBlocks()), 'write it again: node tests/support/scripts/write_lesson_sheet.js');
});
