"""The output matrix in float32: compiled where layers are; otherwise, for half-precision models, as a float32 copy."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from lookahead_core.engines.cpu.compiled_layers import ROWS, CompiledLayers, addresses, paired_outputs, room


class Float32Head(nn.Module):
    """An output layer with float32 copies of the weight and bias of `head`, computed in float32.

    In bfloat16 a logit of 20 is rounded to a multiple of 1/8.
    """

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.weight = head.weight.detach().float()
        self.bias = None if head.bias is None else head.bias.detach().float()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return float32 logits of shape (..., vocabulary) for hidden states of shape (..., width)."""
        return functional.linear(hidden.float(), self.weight, self.bias)


class CompiledHead(nn.Module):
    """An output layer of a model, whose matrix is copied as bfloat16 and multiplied by compiled functions, in float32.

    `weight`, of shape (vocabulary, width), is that of a module that `layers.takes`; the functions are those of
    `layers`.
    """

    def __init__(self, weight: torch.Tensor, layers: CompiledLayers) -> None:
        super().__init__()
        self.layers, self.weight = layers, weight.detach()
        self._matrix = paired_outputs(weight, layers.shape.lanes)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return float32 logits of shape (..., vocabulary) for hidden states of shape (..., width), of any float dtype.

        Raises ValueError if the width is not that of the matrix.
        """
        rows, (height, depth) = hidden.reshape(-1, hidden.shape[-1]).float().contiguous(), self.weight.shape
        if rows.shape[1] != depth:
            raise ValueError(f"The output matrix takes rows of {depth} numbers, and was given {rows.shape[1]}.")
        logits, functions = room(len(rows), height), self.layers.functions
        for first in range(0, len(rows), ROWS):
            some, result = rows[first : first + ROWS], logits[first : first + ROWS]
            pointers = some.data_ptr(), self._matrix.data_ptr(), result.data_ptr()
            arguments = addresses([*pointers, len(some), depth, height, len(self._matrix)])
            functions.run(functions.product, arguments, torch.get_num_threads())
        return logits.view(*hidden.shape[:-1], height)
