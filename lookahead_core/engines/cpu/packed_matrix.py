"""Matrices in oneDNN's own memory layout ("packed"), and products with them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn


class PackedMatrix(NamedTuple):
    """A weight matrix in oneDNN's layout, and its bias."""

    matrix: torch.Tensor
    bias: torch.Tensor | None


@functools.cache
@torch.inference_mode()
def packs(dtype: torch.dtype) -> bool:
    """Whether this PyTorch build and this processor multiply packed matrices of a type."""
    one = torch.ones(1, 1, dtype=dtype, device="cpu")
    try:
        product(packed(one, None), one)
    except (AttributeError, RuntimeError):
        return False
    return True


def packed(weight: torch.Tensor, bias: torch.Tensor | None) -> PackedMatrix:
    """A packed copy of a weight matrix. Without it, oneDNN would reorder the matrix in every product."""
    matrix = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)
    return PackedMatrix(matrix, None if bias is None else bias.detach())


def product(packed: PackedMatrix, rows: torch.Tensor) -> torch.Tensor:
    """`rows @ weight.T + bias`."""
    result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(rows, packed.matrix, packed.bias, "none", [], "")
    return result


def stacked(layers: Sequence[nn.Linear]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Weight and bias of linear layers that read the same rows, concatenated; all have a bias, or none has."""
    bias = torch.cat([layer.bias.detach() for layer in layers]) if layers[0].bias is not None else None
    return torch.cat([layer.weight.detach() for layer in layers]), bias


def is_plain(layer: Any) -> bool:
    """Whether a module is an unquantised `nn.Linear`. Quantised weights are a subclass of Parameter."""
    return type(layer) is nn.Linear and type(layer.weight) is nn.Parameter


class PackedLinear(nn.Module):
    """A linear layer with a packed copy of its weight."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.height = linear.out_features
        self.packed = packed(linear.weight, linear.bias)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if not rows.numel():
            # oneDNN rejects products without rows.
            return rows.new_empty((*rows.shape[:-1], self.height))
        return product(self.packed, rows)
