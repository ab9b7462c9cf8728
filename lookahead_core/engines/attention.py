"""Attention of rows over the slots of one tree. TorchScript compiles it too, so it is written as that can read."""

from typing import Optional

import torch
from torch.nn import functional

BLOCK_ROWS, FIRST_ROWS = 256, 64
"""How many rows of a chunk attend at a time, and how many of a text's first: measured in benchmarks/README.md."""
FOLD_ROWS = 64
"""For so many rows the heads that share a key are folded into them: measured in benchmarks/README.md."""


def folded(mask: torch.Tensor, group: int) -> torch.Tensor:
    """A mask for the rows of so many heads, one head's below the other's."""
    _, _, rows, slots = mask.shape
    return mask.expand(1, group, rows, slots).reshape(1, 1, group * rows, slots)


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: Optional[torch.Tensor],
    scaling: Optional[float],
    widens: bool,
    folds_one: bool,
    few: int = FOLD_ROWS,
) -> torch.Tensor:
    """What each row takes from the slots it sees, row by row and head by head; keys that heads share are not repeated.

    The mask may be folded already. Where the processor is faster so, a chunk of a text is done in float32 (`widens`),
    and a single row is folded as few rows are.
    """
    _, heads, rows, width = query.shape
    shared = key.shape[1]
    group = heads // shared
    if mask is not None and (1 < rows <= few or (rows == 1 and folds_one)) and group > 1:
        many = query.reshape(1, shared, group * rows, width)
        if mask.shape[2] != group * rows:
            mask = folded(mask, group)
        mixed = functional.scaled_dot_product_attention(many, key, value, attn_mask=mask, scale=scaling)
        apart = mixed.view(1, shared, group, rows, width).permute(0, 3, 1, 2, 4)
        return apart.reshape(1, rows, heads, width)
    if mask is not None and rows > few and query.device.type == "cpu":
        dtype = query.dtype
        if widens:
            query, key, value, mask = query.float(), key.float(), value.float(), mask.float()
        mixed = _in_blocks(query, key, value, mask, scaling).to(dtype)
    else:
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, scale=scaling, enable_gqa=group > 1
        )
    return mixed.transpose(1, 2).contiguous()


def _in_blocks(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor,
    scaling: Optional[float],
    later: int = BLOCK_ROWS,
    first_ones: int = FIRST_ROWS,
) -> torch.Tensor:
    """Attention of a chunk, block by block up to each block's own slots, since no row sees a slot behind its own."""
    rows, slots = query.shape[2], key.shape[2]
    block = first_ones if rows == slots else later
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
