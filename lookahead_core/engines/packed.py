"""A matrix, kept in every way that pays on this processor; each product takes the one that is fastest for its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from lookahead_core.engines.ways import (
    MANY,
    halved,
    halved_product,
    is_exact_in_half,
    laid_out,
    laid_out_product,
    most_in_half,
    plain_is_faster,
)

APART = 8
"""From so many rows on, in float32, the library's own gate takes longer than one after its product."""


class Packed:
    """A matrix laid out once for the processor's library; for few rows also in half precision, where that is exact."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, plain: Sequence[nn.Linear] = ()) -> None:
        """`plain` are the layers that it stands for, one below the other, for products of many rows."""
        self.height = weight.shape[0]
        self.weight = laid_out(weight)
        self.bias = None if bias is None else bias.detach()
        self._exact = weight.dtype is torch.float32
        use_plain = bool(plain) and self._exact and plain_is_faster()
        self._plain = [(layer.weight.detach(), layer.bias) for layer in plain if use_plain]
        self._half: list[Any] = []
        self._few = most_in_half() if self._exact and is_exact_in_half(weight) else 0
        if self._few:
            self._half = halved(weight, bias)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        if not rows.numel():
            return rows.new_empty((*rows.shape[:-1], self.height))
        if self._goes_apart(rows):
            return self._apart(rows)
        return laid_out_product(rows, self.weight, self.bias, "none", [], "")

    def silu(self, rows: torch.Tensor) -> torch.Tensor:
        """The product through a sigmoid-weighted gate."""
        if self._exact and (_count(rows) >= APART or self._goes_apart(rows)):
            return functional.silu(self(rows), inplace=True)
        return laid_out_product(rows, self.weight, self.bias, "swish", [], "")

    def plus(self, rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """The product and others, added before anything is rounded."""
        if self._goes_apart(rows):
            return self._apart(rows).add_(others)
        return laid_out_product.binary(rows, others, self.weight, self.bias, "add")

    def times(self, rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """The product, multiplied by others before anything is rounded."""
        if self._goes_apart(rows):
            return self._apart(rows).mul_(others)
        return laid_out_product.binary(rows, others, self.weight, self.bias, "mul")

    def _goes_apart(self, rows: torch.Tensor) -> bool:
        """Whether for so many rows there is a faster product, one that does nothing else beside."""
        count = _count(rows)
        return count <= self._few or (bool(self._plain) and count >= MANY)

    def _apart(self, rows: torch.Tensor) -> torch.Tensor:
        if _count(rows) <= self._few:
            return halved_product(rows, self._half)
        parts = [functional.linear(rows, weight, bias) for weight, bias in self._plain]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)


def _count(rows: torch.Tensor) -> int:
    return rows.numel() // rows.shape[-1]


def stacked(layers: Sequence[nn.Linear]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Weight and bias of linear layers that read the same rows, as one; all have a bias, or none has."""
    bias = torch.cat([layer.bias.detach() for layer in layers]) if layers[0].bias is not None else None
    return torch.cat([layer.weight.detach() for layer in layers]), bias


def is_plain(layer: Any) -> bool:
    """A linear layer of plain numbers; rounded weights are of another class, and still give their type as a float."""
    return type(layer) is nn.Linear and type(layer.weight) is nn.Parameter


class PackedLinear(nn.Module):
    """A linear layer over a packed matrix; in float32 where that is asked for, whatever comes in."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.dtype = dtype or linear.weight.dtype
        bias = None if linear.bias is None else linear.bias.to(self.dtype)
        self.packed = Packed(linear.weight.to(self.dtype), bias, [linear] if dtype is None else [])

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.packed(rows.to(self.dtype))
