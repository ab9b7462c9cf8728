"""The reference of analyses: one plain forward pass of transformers over a whole text."""

from __future__ import annotations

import torch

from lookahead_core import Model


def plain_logprobs(model: Model, token_ids: list[int]) -> torch.Tensor:
    """The log-probabilities after each of these tokens, from one plain forward of transformers."""
    with torch.no_grad():
        logits = model.hf_model(torch.tensor([token_ids], device=model.hf_model.device), use_cache=False).logits[0]
    return torch.log_softmax(logits.double(), -1)
