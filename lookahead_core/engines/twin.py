"""A second body on the same weights.

Engines never touch the model that a person handed over. They run a twin: the same modules copied, every parameter
shared and none copied, so that attention, products and the type of the last product can be our own.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface

ATTENTION = "lookahead"
BLOCK_ROWS = 256
"""How many rows of a chunk attend at a time: measured in benchmarks/README.md."""
FOLD_ROWS = 64
"""Up to so many rows, the heads that share a key are folded into the rows: measured in benchmarks/README.md."""


def twin_of(hf_model: nn.Module) -> Any:
    """A copy of the modules around the very same parameters, ready for prediction."""
    shared = {id(parameter): parameter for parameter in hf_model.parameters()}
    return copy.deepcopy(hf_model, shared).eval()


def tree_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of a few rows over many slots, without repeating the keys that several heads share."""
    if options.get("softcap") is not None or options.get("s_aux") is not None:
        raise NotImplementedError("This attention has terms that the fused product cannot take.")
    _, heads, rows, width = query.shape
    shared = key.shape[1]
    if shared < heads and attention_mask is not None and rows <= FOLD_ROWS:
        group = heads // shared
        folded = query.reshape(1, shared, group * rows, width)
        mask = attention_mask.expand(1, group, rows, -1).reshape(1, 1, group * rows, -1)
        mixed = functional.scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=scaling)
        mixed = mixed.reshape(1, heads, rows, -1)
    elif attention_mask is not None and rows > FOLD_ROWS and query.device.type == "cpu":
        mixed = _in_blocks(query, key, value, attention_mask, scaling)
    else:
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, scale=scaling, enable_gqa=shared < heads
        )
    return mixed.transpose(1, 2).contiguous(), None


def _in_blocks(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor, scaling: float | None
) -> torch.Tensor:
    """Attention of a chunk, block by block up to each block's own slots, since no row sees a slot behind its own.

    In float32 also where the model is not: on processors that is faster, and it rounds less.
    """
    rows, slots, dtype = query.shape[2], key.shape[2], query.dtype
    query, key, value, mask = (each.float() for each in (query, key, value, mask))
    blocks = []
    for first in range(0, rows, BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, rows)
        seen = slots - rows + last
        blocks.append(
            functional.scaled_dot_product_attention(
                query[:, :, first:last],
                key[:, :, :seen],
                value[:, :, :seen],
                attn_mask=mask[:, :, first:last, :seen],
                scale=scaling,
                enable_gqa=key.shape[1] < query.shape[1],
            )
        )
    return torch.cat(blocks, 2).to(dtype)


AttentionInterface.register(ATTENTION, tree_attention)
