// For a program that has packed nodes itself: odds after them, from questions to answers, both as JSON.
import {text} from 'node:stream/consumers';

import {oddsAfter, unpackNode} from '../../../interface/web/core/reheated_odds.js';

const questions = JSON.parse(await text(process.stdin));
const answers = questions.map(({node, logprobs, temperature, topP}) => logprobs.map(oddsAfter(unpackNode(node), temperature, topP)));
process.stdout.write(JSON.stringify(answers));
