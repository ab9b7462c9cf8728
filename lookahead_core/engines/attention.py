"""Attention of a pass's rows over the slots of one tree."""

from __future__ import annotations

import torch
from torch.nn import functional

BLOCK_ROWS, FIRST_ROWS = 256, 64
"""Rows of a chunk that attend at a time, and of a text's first chunk: measured in benchmarks/README.md."""
FOLD_ROWS = 64
"""Up to this many rows, query heads that share a key head become rows: measured in benchmarks/README.md."""


def folded(mask: torch.Tensor, group: int) -> torch.Tensor:
    """A mask of shape (1, 1, rows, slots), repeated for each head of a group: (1, 1, group * rows, slots)."""
    _, _, rows, slots = mask.shape
    return mask.expand(1, group, rows, slots).reshape(1, 1, group * rows, slots)


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, scaling: float | None
) -> torch.Tensor:
    """Scaled dot-product attention with shape (1, rows, heads, width); shared key heads are not repeated in memory.

    The mask may be folded already.
    """
    _, heads, rows, width = query.shape
    shared = key.shape[1]
    group = heads // shared
    if mask is not None and rows <= FOLD_ROWS and group > 1:
        many = query.reshape(1, shared, group * rows, width)
        if mask.shape[2] != group * rows:
            mask = folded(mask, group)
        mixed = functional.scaled_dot_product_attention(many, key, value, attn_mask=mask, scale=scaling)
        apart = mixed.view(1, shared, group, rows, width).permute(0, 3, 1, 2, 4)
        return apart.reshape(1, rows, heads, width)
    if mask is not None and rows > FOLD_ROWS and query.device.type == "cpu":
        mixed = _in_blocks(query, key, value, mask, scaling)
    else:
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, scale=scaling, enable_gqa=group > 1
        )
    return mixed.transpose(1, 2).contiguous()


def _in_blocks(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor, scaling: float | None
) -> torch.Tensor:
    """Attention of a chunk, block by block: each block reads the slots up to its own last row only."""
    rows, slots = query.shape[2], key.shape[2]
    block = FIRST_ROWS if rows == slots else BLOCK_ROWS
    blocks = []
    for first in range(0, rows, block):
        last = min(first + block, rows)
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
    return torch.cat(blocks, 2)
