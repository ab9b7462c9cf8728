"""The output matrix, with logits that are known better than sixteen bits can tell."""

from __future__ import annotations

import torch
from torch import nn

from lookahead_core.engines.packed import packed, product
from lookahead_core.engines.rows import KEPT, largest
from lookahead_core.engines.ways import linear_flipped

AT_ONCE = 64
"""For so many rows the likeliest logits are computed anew at a time."""


class Float32Head(nn.Module):
    """The output matrix with its product in float32: in bfloat16 a logit of 20 is only known to a sixteenth."""

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.weight = head.weight.detach().float()
        self.bias = None if head.bias is None else head.bias.detach().float()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return linear_flipped(hidden.float(), self.weight, self.bias)


class SharpHead(nn.Module):
    """The output matrix in sixteen bits, packed, and then the likeliest logits of each row in float32.

    It takes half as long as the whole product in float32. What is less likely is as the model in hand has it. Few rows
    that come in float32 are multiplied so.
    """

    def __init__(self, head: nn.Linear, *, halves: bool = True) -> None:
        super().__init__()
        self.weight = head.weight.detach()
        self.bias = None if head.bias is None else head.bias.detach()
        self.packed = packed(self.weight, self.bias, halves=halves)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        if hidden.dtype is torch.float32 and 0 < hidden.numel() <= self.packed.few * hidden.shape[-1]:
            return product(self.packed, hidden)
        rows = hidden.reshape(-1, hidden.shape[-1]).to(self.weight.dtype)
        logits = rows.new_empty((len(rows), len(self.weight)), dtype=torch.float32)
        for some, found in zip(rows.split(AT_ONCE), logits.split(AT_ONCE), strict=True):
            if len(some):
                found.copy_(product(self.packed, some))
                self._sharpen(some.float(), found)
        return logits.view(*hidden.shape[:-1], len(self.weight))

    def _sharpen(self, rows: torch.Tensor, logits: torch.Tensor) -> None:
        ids = largest(logits, min(KEPT, logits.shape[-1]))
        weights = self.weight[ids.flatten()].view(*ids.shape, -1).float()
        exact = torch.bmm(weights, rows[..., None])[..., 0]
        if self.bias is not None:
            exact += self.bias[ids]
        logits.scatter_(1, ids, exact)
