import assert from 'node:assert/strict';
import {test} from 'node:test';

import {READY_INSTRUCTIONS, needsSource} from '../../../../interface/tabs/rewrite/ready_instructions.js';

test('a ready instruction is about a source, so it needs one', () => {
  for (const instruction of READY_INSTRUCTIONS) {
    for (const none of [null, '', ' \n']) assert.equal(needsSource(instruction, none), true, instruction);
    assert.equal(needsSource(` ${instruction}\n`, null), true, 'spaces make it no other instruction');
    assert.equal(needsSource(instruction, 'The lamp was lit.'), false);
  }
});

test('an instruction of one’s own may stand alone, and so may none', () => {
  for (const instruction of ['Name a colour.', `${READY_INSTRUCTIONS[0]} Say it as a pirate would.`, '', null]) assert.equal(needsSource(instruction, null), false);
});
