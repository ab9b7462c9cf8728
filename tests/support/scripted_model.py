"""A bigram model with chosen texts: after each token it predicts the tokens that follow it in these texts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
import transformers

from lookahead_core import Model, load_model
from tests.conftest import byte_level

UNSEEN = -14.0
"""The logit of a token that never follows."""


def parrot(texts: Sequence[str], words: Sequence[str] = ()) -> Model:
    """A transformers model that repeats these texts; each of `words` is a single token."""
    tokenizer = byte_level(list(texts) * 3, vocabulary=300)
    tokenizer.add_tokens(list(words))
    size = len(tokenizer) + len(tokenizer) % 2
    follows = torch.full((size, size), UNSEEN)
    for text in texts:
        ids = [*tokenizer(text, add_special_tokens=False).input_ids, tokenizer.eos_token_id]
        for index, (one, other) in enumerate(itertools.pairwise(ids)):
            # A pair that comes first is more likely.
            follows[one, other] = max(float(follows[one, other]), 0.0) + 1.0 / (1 + index)
    return load_model(bigrams(follows), tokenizer=tokenizer)


def bigrams(follows: torch.Tensor) -> Any:
    """A Llama whose layers add zero, so that the logits depend on the last token alone: `follows[token]`."""
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
        # The final norm scales a one-hot vector by sqrt(size).
        model.lm_head.weight.copy_(follows.T / size**0.5)
    return model
