"""Attention of the rows of a pass over the cache slots of their trees, registered with transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface

from lookahead_core.engines.joint_cache import JointTensors

ATTENTION = "lookahead"
"""The name under which `tree_attention` is registered with transformers."""
BLOCK_ROWS, FIRST_ROWS = 256, 64
"""Rows per attention block on a CPU: of a pass over cached slots, and of a pass with none before it. Measured in
docs/performance-notes.md."""
FOLD_ROWS = 64
"""In passes of up to this many rows, query heads that share a key head are computed as rows of one head. Measured in
docs/performance-notes.md."""


def tree_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor | JointTensors,
    value: torch.Tensor | JointTensors,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention function for transformers: each row attends to the slots of its own tree that the mask does not hide.

    Takes a query of shape (1, heads, rows, width), key and value of shape (1, key heads, slots, width), and an additive
    mask of shape (1, 1, rows, slots) or None, as for `attend`. In a pass over several trees, key and value are
    `JointTensors`, and the mask must be that of `joint_masks`. Returns the output of shape (1, rows, heads, width), and
    None for the attention weights. Raises NotImplementedError for models with soft-capped logits or attention sinks;
    `module` and all other options are ignored.
    """
    if options.get("softcap") is not None or options.get("s_aux") is not None:
        raise NotImplementedError("The fused attention supports neither soft-capped logits nor attention sinks.")
    if not isinstance(key, JointTensors):
        assert isinstance(value, torch.Tensor)
        return attend(query, key, value, attention_mask, scaling), None
    assert isinstance(value, JointTensors)
    assert attention_mask is not None
    masks = torch.split(attention_mask, list(key.rows), 2)
    parts = zip(torch.split(query, list(key.rows), 2), key.tensors, value.tensors, masks, strict=True)
    outputs = [
        attend(rows, keys, values, mask[..., : keys.shape[2]].contiguous(), scaling)
        for rows, keys, values, mask in parts
    ]
    return torch.cat(outputs, 1), None


AttentionInterface.register(ATTENTION, tree_attention)


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, scaling: float | None
) -> torch.Tensor:
    """Scaled dot-product attention of a query of shape (1, heads, rows, width); returns shape (1, rows, heads, width).

    `key` and `value` have the shape (1, key heads, slots, width); `heads` is a multiple of `key heads`, and shared key
    heads are not repeated in memory. With an additive mask of shape (1, 1, rows, slots), the rows must be the last
    slots, in order, and the mask must hide the slots after a row's own; neither is checked. Without a mask each row
    attends to all slots. `scaling` is the factor of the scores, 1 / sqrt(width) if None.
    """
    _, heads, rows, width = query.shape
    key_heads = key.shape[1]
    group = heads // key_heads
    if mask is not None and rows <= FOLD_ROWS and group > 1:
        folded_query = query.reshape(1, key_heads, group * rows, width)
        slots = mask.shape[3]
        mask = mask.expand(1, group, rows, slots).reshape(1, 1, group * rows, slots)
        output = functional.scaled_dot_product_attention(folded_query, key, value, attn_mask=mask, scale=scaling)
        unfolded = output.view(1, key_heads, group, rows, width).permute(0, 3, 1, 2, 4)
        return unfolded.reshape(1, rows, heads, width)
    if mask is not None and rows > FOLD_ROWS and query.device.type == "cpu":
        output = _attend_in_blocks(query, key, value, mask, scaling)
    else:
        output = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, scale=scaling, enable_gqa=group > 1
        )
    return output.transpose(1, 2).contiguous()


def _attend_in_blocks(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor, scaling: float | None
) -> torch.Tensor:
    """Compute what `attend` does, one block of rows after the other; returns shape (1, heads, rows, width).

    Takes the arguments of `attend`, and needs a mask. The rows must be the last slots, in order: each block reads only
    the slots up to that of its last row, so the mask must hide the slots after a row's own. Neither is checked.
    """
    rows, slots = query.shape[2], key.shape[2]
    block = FIRST_ROWS if rows == slots else BLOCK_ROWS
    blocks = []
    for first in range(0, rows, block):
        last = min(first + block, rows)
        end = slots - rows + last
        blocks.append(
            functional.scaled_dot_product_attention(
                query[:, :, first:last],
                key[:, :, :end],
                value[:, :, :end],
                attn_mask=mask[:, :, first:last, :end],
                scale=scaling,
                enable_gqa=key.shape[1] < query.shape[1],
            )
        )
    return torch.cat(blocks, 2)
