import assert from 'node:assert/strict';
import {test} from 'node:test';

import {modelFactsSentence} from '../../../../interface/web/core/model_facts.js';

test('each part of the line about the model is explained, in its order', () => {
  assert.equal(
    modelFactsSentence('SmolLM2-135M-Instruct · CPU · float32 · cached'),
    'SmolLM2-135M-Instruct is the language model; CPU is the device that computes it; float32 is the type of its numbers; cached: what was computed of a text is kept, and not computed again.',
  );
  assert.equal(
    modelFactsSentence('tiny · CUDA:0 · bfloat16 · 4 bit · uncached'),
    'tiny is the language model; CUDA:0 is the device that computes it; bfloat16 is the type of its numbers; 4 bit: how its weights are stored; uncached: all of a text is computed again each time.',
  );
});

test('of a model on a server the line has no more than its address', () =>
  assert.equal(modelFactsSentence('Qwen3-8B · host:8000 · remote'), 'Qwen3-8B is the language model; host:8000 is the server that computes it; remote: this app computes nothing of it.'));

test('a line that is not about a model is not explained', () => assert.equal(modelFactsSentence('Ready'), ''));
