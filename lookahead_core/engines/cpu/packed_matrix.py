"""Matrices in oneDNN's own memory layout ("packed"), and products with them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

FLIPPED_ROWS = 64
"""From this many rows on, `weight @ rows.T` is no faster than `linear`: measured in docs/performance-notes.md."""


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
    return torch.ops.mkldnn._linear_pointwise(rows, packed.matrix, packed.bias, "none", [], "")


def silu_product(packed: PackedMatrix, rows: torch.Tensor) -> torch.Tensor:
    """`silu(rows @ weight.T + bias)`."""
    if rows.dtype is torch.float32:
        # In float32, oneDNN's fused SiLU is slower than SiLU after the product.
        return functional.silu(product(packed, rows), inplace=True)
    return torch.ops.mkldnn._linear_pointwise(rows, packed.matrix, packed.bias, "swish", [], "")


def product_plus(packed: PackedMatrix, rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """`rows @ weight.T + bias + others`, rounded once."""
    return torch.ops.mkldnn._linear_pointwise(rows, others, packed.matrix, packed.bias, "add")


def product_times(packed: PackedMatrix, rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """`(rows @ weight.T + bias) * others`, rounded once."""
    return torch.ops.mkldnn._linear_pointwise(rows, others, packed.matrix, packed.bias, "mul")


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


class FlippedLinear(nn.Module):
    """A float32 linear layer that computes `weight @ rows.T`, which is faster for a few rows."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return flipped_linear(rows, self.weight, self.bias)


def flipped_linear(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """The same as `functional.linear`, computed as `weight @ rows.T` for 2 to 63 rows on a processor."""
    flat = rows.reshape(-1, rows.shape[-1])
    if not 1 < len(flat) < FLIPPED_ROWS or rows.device.type != "cpu":
        return functional.linear(rows, weight, bias)
    # Contiguous, because scaled_dot_product_attention is slow on transposed queries.
    result = (weight @ flat.t()).t().contiguous()
    if bias is not None:
        result += bias
    return result.reshape(*rows.shape[:-1], weight.shape[0])
