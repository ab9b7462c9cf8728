"""The output matrix: compiled for few rows; of a half-precision model, with its largest logits in float32."""

from __future__ import annotations

import torch
from torch import nn

from lookahead_core.engines.cpu.compiled_layers import ROWS, CompiledLayers, addresses, paired, room
from lookahead_core.engines.cpu.packed_matrix import flipped_linear, packed, product
from lookahead_core.engines.prediction_rows import TOP_TOKENS, top_k_ids

ROWS_AT_ONCE = 64
"""Rows whose largest logits are recomputed in one batch."""


class Float32Head(nn.Module):
    """The output matrix in float32. In bfloat16 a logit of 20 is rounded to a multiple of 1/16 or more."""

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.weight = head.weight.detach().float()
        self.bias = None if head.bias is None else head.bias.detach().float()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return flipped_linear(hidden.float(), self.weight, self.bias)


class RefinedHead(nn.Module):
    """The output matrix in its own half precision, packed, with each row's largest logits recomputed in float32.

    This takes half as long as the whole product in float32. The other logits are rounded as the model rounds them.
    """

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.weight = head.weight.detach()
        self.bias = None if head.bias is None else head.bias.detach()
        self.packed = packed(self.weight, self.bias)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        rows = hidden.reshape(-1, hidden.shape[-1]).to(self.weight.dtype)
        logits = rows.new_empty((len(rows), len(self.weight)), dtype=torch.float32)
        for some, found in zip(rows.split(ROWS_AT_ONCE), logits.split(ROWS_AT_ONCE), strict=True):
            if len(some):
                found.copy_(product(self.packed, some))
                self._recompute_largest(some.float(), found)
        return logits.view(*hidden.shape[:-1], len(self.weight))

    def _recompute_largest(self, rows: torch.Tensor, logits: torch.Tensor) -> None:
        """Replace the KEPT largest logits of each row by their values in float32, in place."""
        ids = top_k_ids(logits, min(TOP_TOKENS, logits.shape[-1]))
        weights = self.weight[ids.flatten()].view(*ids.shape, -1).float()
        exact = torch.bmm(weights, rows[..., None])[..., 0]
        if self.bias is not None:
            exact += self.bias[ids]
        logits.scatter_(1, ids, exact)


class CompiledHead(nn.Module):
    """An output matrix compiled for up to `ROWS` rows of float32; other rows go through `others`."""

    def __init__(self, others: nn.Module, weight: torch.Tensor, layers: CompiledLayers) -> None:
        super().__init__()
        self.others, self.layers, self.weight = others, layers, weight.detach()
        self._matrix = paired(weight, layers.shape.lanes)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        rows = hidden.reshape(-1, hidden.shape[-1])
        if hidden.dtype is not torch.float32 or not 0 < len(rows) <= ROWS:
            return self.others(hidden)
        rows, (height, depth), functions = rows.contiguous(), self.weight.shape, self.layers.functions
        if rows.shape[1] != depth:
            raise ValueError(f"The output matrix takes rows of {depth} numbers, and was given {rows.shape[1]}.")
        logits = room(len(rows), height)
        pointers = rows.data_ptr(), self._matrix.data_ptr(), logits.data_ptr()
        arguments = addresses([*pointers, len(rows), depth, height, len(self._matrix)])
        functions.run(functions.product, arguments, torch.get_num_threads())
        return logits.view(*hidden.shape[:-1], height)
