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

from lookahead_core.engines.joint import Parts

ATTENTION = "lookahead"
BLOCK_ROWS = 256
"""How many rows of a chunk attend at a time: measured in benchmarks/README.md."""
FOLD_ROWS = 64
"""Up to so many rows, the heads that share a key are folded into the rows: measured in benchmarks/README.md."""


def twin_of(hf_model: nn.Module) -> Any:
    """A copy of the modules around the very same parameters, ready for prediction."""
    shared = {id(parameter): parameter for parameter in hf_model.parameters()}
    for module in hf_model.modules():
        shared |= {id(held): held for held in _beside_parameters(module)}
    return copy.deepcopy(hf_model, shared).eval()


def _beside_parameters(module: Any) -> list[Any]:
    """What bitsandbytes keeps of rounded weights in its layers, where others would keep parameters."""
    if getattr(getattr(module, "weight", None), "CB", None) is not None:
        # At its first product a layer takes this from its parameter; of two with one parameter the second finds none.
        module.init_8bit_state()
    state = getattr(module, "state", None)
    kept = [getattr(state, "CB", None), getattr(state, "SCB", None), getattr(module, "quant_state", None)]
    return [held for held in kept if held is not None]


def tree_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor | Parts,
    value: torch.Tensor | Parts,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of a few rows over many slots, each over the slots of its own tree."""
    if options.get("softcap") is not None or options.get("s_aux") is not None:
        raise NotImplementedError("This attention has terms that the fused product cannot take.")
    if not isinstance(key, Parts):
        return _attend(query, key, value, attention_mask, scaling), None
    masks = attention_mask.split(key.rows, 2)
    parts = zip(query.split(key.rows, 2), key.tensors, value.tensors, masks, strict=True)
    mixed = [
        _attend(rows, keys, values, mask[..., : keys.shape[2]].contiguous(), scaling)
        for rows, keys, values, mask in parts
    ]
    return torch.cat(mixed, 1), None


def folded(mask: torch.Tensor, group: int) -> torch.Tensor:
    """A mask for the rows of so many heads, one head's below the other's."""
    _, _, rows, slots = mask.shape
    return mask.expand(1, group, rows, slots).reshape(1, 1, group * rows, slots)


def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: torch.Tensor | None, scaling: Any
) -> torch.Tensor:
    """Attention without repeating the keys that several heads share."""
    _, heads, rows, width = query.shape
    shared = key.shape[1]
    if shared < heads and attention_mask is not None and rows <= FOLD_ROWS:
        group = heads // shared
        many = query.reshape(1, shared, group * rows, width)
        mask = attention_mask if attention_mask.shape[2] == group * rows else folded(attention_mask, group)
        mixed = functional.scaled_dot_product_attention(many, key, value, attn_mask=mask, scale=scaling)
        mixed = mixed.reshape(1, heads, rows, -1)
    elif attention_mask is not None and rows > FOLD_ROWS and query.device.type == "cpu":
        mixed = _in_blocks(query, key, value, attention_mask, scaling)
    else:
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, scale=scaling, enable_gqa=shared < heads
        )
    return mixed.transpose(1, 2).contiguous()


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
