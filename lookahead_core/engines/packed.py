"""A matrix, kept in every way that pays on this processor; each product takes the one that is fastest for its rows.

TorchScript compiles the products (lean.py), so they are functions of plain tuples, written as that can read.
"""

from collections.abc import Sequence
from typing import Any, List, NamedTuple, Optional

import torch
from torch import nn
from torch.nn import functional

from lookahead_core.engines.ways import (
    MANY,
    Halves,
    halved,
    halved_product,
    is_exact_in_half,
    laid_out,
    most_in_half,
    plain_is_faster,
)

APART = 8
"""From so many rows on, in float32, the library's own gate takes longer than one after its product."""
NEVER = 1 << 62


class Packed(NamedTuple):
    """A matrix laid out once for the processor's library; for few rows of float32 also in half precision, where that
    is exact.
    """

    laid_out: torch.Tensor
    bias: Optional[torch.Tensor]
    few: int
    """For so many rows of float32 at most the product is one with the halves."""
    halves: Halves
    apart: int
    """From so many rows on a gate is a step after the product."""
    many: int
    """From so many rows on the product is one with the plain matrices that it stands for, one below the other."""
    plain: List[torch.Tensor]
    plain_biases: List[Optional[torch.Tensor]]


def packed(
    weight: torch.Tensor, bias: torch.Tensor | None, layers: Sequence[nn.Linear] = (), *, halves: bool | None = None
) -> Packed:
    """A matrix in all ways that pay; `layers` are those that it stands for, one below the other.

    `halves` says whether it is kept in half precision as well: where nothing is said, one of float32 is. A narrower one
    need be where somebody has few rows in float32.
    """
    exact = weight.dtype is torch.float32
    few = most_in_half(weight) if (exact if halves is None else halves) and is_exact_in_half(weight) else 0
    plain = list(layers) if exact and layers and plain_is_faster() else []
    return Packed(
        laid_out=laid_out(weight),
        bias=None if bias is None else bias.detach(),
        few=few,
        halves=halved(weight, bias) if few else [],
        apart=APART if exact else NEVER,
        many=MANY if plain else NEVER,
        plain=[layer.weight.detach() for layer in plain],
        plain_biases=[None if layer.bias is None else layer.bias.detach() for layer in plain],
    )


def product(matrix: Packed, rows: torch.Tensor) -> torch.Tensor:
    """Rows multiplied with a matrix, and its bias added."""
    if _goes_apart(matrix, rows):
        return _apart(matrix, rows)
    return torch.ops.mkldnn._linear_pointwise(rows, matrix.laid_out, matrix.bias, "none", [], "")


def silu_product(matrix: Packed, rows: torch.Tensor) -> torch.Tensor:
    """The product through a sigmoid-weighted gate."""
    if _count(rows) >= matrix.apart or _goes_apart(matrix, rows):
        return functional.silu(product(matrix, rows), inplace=True)
    return torch.ops.mkldnn._linear_pointwise(rows, matrix.laid_out, matrix.bias, "swish", [], "")


def product_plus(matrix: Packed, rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """The product and others, added before anything is rounded."""
    if _goes_apart(matrix, rows):
        return _apart(matrix, rows).add_(others)
    return torch.ops.mkldnn._linear_pointwise(rows, others, matrix.laid_out, matrix.bias, "add")


def product_times(matrix: Packed, rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """The product, multiplied by others before anything is rounded."""
    if _goes_apart(matrix, rows):
        return _apart(matrix, rows).mul_(others)
    return torch.ops.mkldnn._linear_pointwise(rows, others, matrix.laid_out, matrix.bias, "mul")


def _goes_apart(matrix: Packed, rows: torch.Tensor) -> bool:
    """Whether for so many rows there is a faster product, one that does nothing else beside."""
    count = _count(rows)
    return rows.dtype == torch.float32 and (count <= matrix.few or count >= matrix.many)


def _apart(matrix: Packed, rows: torch.Tensor) -> torch.Tensor:
    if _count(rows) <= matrix.few:
        return halved_product(rows, matrix.halves)
    parts = [functional.linear(rows, plain, matrix.plain_biases[i]) for i, plain in enumerate(matrix.plain)]
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
    """A linear layer over a packed matrix."""

    def __init__(self, linear: nn.Linear, *, halves: bool | None = None) -> None:
        super().__init__()
        self.height = linear.out_features
        self.packed = packed(linear.weight, linear.bias, [linear], halves=halves)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if not rows.numel():  # where no row is asked for
            return rows.new_empty((*rows.shape[:-1], self.height))
        return product(self.packed, rows)
