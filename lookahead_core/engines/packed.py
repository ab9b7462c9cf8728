"""Matrices laid out for this processor, in its library's own way."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.nn import functional

MANY = 128
"""Rows enough for a product with a matrix as it is, where that is faster: it is so from a hundred on, or never."""
APART = 8
"""From so many rows on, in float32, the library's own gate takes longer than one after its product."""
TRIED, SIDE, ROWS = 12, 1024, 256
"""Which products of many rows are tried: of so many square matrices, more than a processor's caches hold."""
_product = getattr(torch.ops.mkldnn, "_linear_pointwise", None)  # None where PyTorch was built without that library


class Packed:
    """A matrix laid out once as the processor's library wants it, which else lays it out anew for every product."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, plain: Sequence[nn.Linear] = ()) -> None:
        """`plain` are the layers that it stands for, one below the other, for products of many rows."""
        self.height = weight.shape[0]
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)
        self.bias = None if bias is None else bias.detach()
        self._exact = weight.dtype is torch.float32
        faster = bool(plain) and self._exact and plain_is_faster()
        self._plain = [(layer.weight.detach(), layer.bias) for layer in plain if faster]

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        if not rows.numel():
            return rows.new_empty((*rows.shape[:-1], self.height))
        if self._are_many(rows):
            return self._plainly(rows)
        return _product(rows, self.weight, self.bias, "none", [], "")

    def silu(self, rows: torch.Tensor) -> torch.Tensor:
        """The product through a sigmoid-weighted gate."""
        if self._exact and _count(rows) >= APART:
            return functional.silu(self(rows), inplace=True)
        return _product(rows, self.weight, self.bias, "swish", [], "")

    def plus(self, rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """The product and others, added before anything is rounded."""
        if self._are_many(rows):
            return self._plainly(rows).add_(others)
        return _product.binary(rows, others, self.weight, self.bias, "add")

    def times(self, rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """The product, multiplied by others before anything is rounded."""
        if self._are_many(rows):
            return self._plainly(rows).mul_(others)
        return _product.binary(rows, others, self.weight, self.bias, "mul")

    def _are_many(self, rows: torch.Tensor) -> bool:
        return bool(self._plain) and _count(rows) >= MANY

    def _plainly(self, rows: torch.Tensor) -> torch.Tensor:
        parts = [functional.linear(rows, weight, bias) for weight, bias in self._plain]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)


@functools.cache
@torch.inference_mode()
def packs(dtype: torch.dtype) -> bool:
    """Whether the processor's library is there, and multiplies matrices of this type on this processor."""
    try:
        Packed(torch.ones(1, 1, dtype=dtype), None)(torch.ones(1, 1, dtype=dtype))
    except (AttributeError, RuntimeError):
        return False
    return True


def _count(rows: torch.Tensor) -> int:
    return rows.numel() // rows.shape[-1]


@functools.cache
@torch.inference_mode()
def plain_is_faster() -> bool:
    """Measure, once, whether this machine multiplies many rows of float32 faster with matrices as they are."""
    matrices = torch.ones(TRIED, SIDE, SIDE)
    packed, rows = [Packed(matrix, None) for matrix in matrices], torch.ones(ROWS, SIDE)
    ways = (
        lambda: [functional.linear(rows, matrix) for matrix in matrices],
        lambda: [matrix(rows) for matrix in packed],
    )
    plain, ours = (min(seconds(way) for _ in range(4)) for way in ways)
    return plain < ours


def seconds(action: Callable[[], object]) -> float:
    """How long something takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def stacked(layers: Sequence[nn.Linear]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Weight and bias of linear layers that read the same rows, as one; all have a bias, or none has."""
    bias = torch.cat([layer.bias.detach() for layer in layers]) if layers[0].bias is not None else None
    return torch.cat([layer.weight.detach() for layer in layers]), bias


class PackedLinear(nn.Module):
    """A linear layer over a packed matrix; in float32 where that is asked for, whatever comes in."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.dtype = dtype or linear.weight.dtype
        bias = None if linear.bias is None else linear.bias.to(self.dtype)
        self.packed = Packed(linear.weight.to(self.dtype), bias, [linear] if dtype is None else [])

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.packed(rows.to(self.dtype))
