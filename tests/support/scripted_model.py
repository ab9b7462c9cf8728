"""A model that says what it is taught: after each token what came after it in some texts, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
import transformers

from lookahead_core import Model, load_model
from tests.conftest import byte_level

UNHEARD = -14.0


def parrot(texts: Sequence[str], words: Sequence[str] = ()) -> Model:
    """A real transformers model that repeats these texts; each of the words is one token of its own."""
    tokenizer = byte_level(list(texts) * 3, vocabulary=300)
    tokenizer.add_tokens(list(words))
    size = len(tokenizer) + len(tokenizer) % 2
    follows = torch.full((size, size), UNHEARD)
    for text in texts:
        ids = [*tokenizer(text, add_special_tokens=False).input_ids, tokenizer.eos_token_id]
        for place, (one, other) in enumerate(itertools.pairwise(ids)):
            # What was taught first is the likelier.
            follows[one, other] = max(float(follows[one, other]), 0.0) + 1.0 / (1 + place)
    return load_model(bigrams(follows), tokenizer=tokenizer)


def bigrams(follows: torch.Tensor) -> Any:
    """A Llama whose layers add nothing: its next token depends on the last one alone."""
    size = len(follows)
    config = transformers.LlamaConfig(
        hidden_size=size,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        intermediate_size=8,
        vocab_size=size,
        max_position_embeddings=4096,
        eos_token_id=0,
        bos_token_id=None,
        pad_token_id=None,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.model.layers.parameters():
            parameter.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(size))
        # The last norm makes sqrt(size) of a single 1.
        model.lm_head.weight.copy_(follows.T / size**0.5)
    return model
