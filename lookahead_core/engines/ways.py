"""Ways to multiply rows with a matrix on a processor, and for how many rows this machine is faster with which."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

SIDE = 1024
MANY, TRIED_WITH_MANY, MATRICES_FOR_MANY = 128, 256, 12
"""Rows enough for a product with a matrix as it is, where that is faster: it is so from a hundred on, or never."""
FEW, MATRICES_FOR_FEW = (32, 16, 8, 4, 1), 24
"""Rows for which matrices in half precision are tried: so many matrices that no processor's caches hold them."""

LONGEST_SUM = 640
"""So many products of numbers are added up in a row; measured in benchmarks/README.md."""

laid_out_product = getattr(torch.ops.mkldnn, "_linear_pointwise", None)  # None where PyTorch has no such library


def laid_out(weight: torch.Tensor) -> torch.Tensor:
    """A matrix as the processor's library wants it, which else lays it out anew for every product."""
    return torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)


def halved(weight: torch.Tensor, bias: torch.Tensor | None) -> list[Any]:
    """A matrix in half precision, of which products with float32 are float32: there is half as much to read.

    Its columns come in parts, since the library sums up from the first to the last, and long sums round more.
    """
    first, *others = weight.detach().chunk(-(-weight.shape[1] // LONGEST_SUM), 1)
    pack = torch.ops.quantized.linear_prepack_fp16
    return [pack(first.contiguous(), None if bias is None else bias.detach()), *(pack(p.contiguous()) for p in others)]


def halved_product(rows: torch.Tensor, parts: list[Any]) -> torch.Tensor:
    """Rows of float32, multiplied with such a matrix, and its bias added."""
    multiply = torch.ops.quantized.linear_dynamic_fp16
    if len(parts) == 1:
        return multiply(rows, parts[0])
    first, *others = zip(rows.chunk(len(parts), -1), parts, strict=True)
    product = multiply(*first)
    for some in others:
        product += multiply(*some)
    return product


def is_exact_in_half(weight: torch.Tensor) -> bool:
    """Whether half precision keeps a matrix of float32, as it does most that were saved in sixteen bits.

    What may be lost of its smallest numbers is no more than float32 loses of its largest.
    """
    lost = (weight.half().float() - weight).abs().max()
    return bool(lost <= torch.finfo(torch.float32).eps * weight.abs().max())


@functools.cache
@torch.inference_mode()
def packs(dtype: torch.dtype) -> bool:
    """Whether the processor's library is there, and multiplies matrices of this type on this processor."""
    one = torch.ones(1, 1, dtype=dtype)
    try:
        laid_out_product(one, laid_out(one), None, "none", [], "")  # type: ignore[misc]
    except (AttributeError, RuntimeError):
        return False
    return True


@functools.cache
@torch.inference_mode()
def plain_is_faster() -> bool:
    """Measure, once, whether this machine multiplies many rows of float32 faster with matrices as they are."""
    matrices, rows = torch.ones(MATRICES_FOR_MANY, SIDE, SIDE), torch.ones(TRIED_WITH_MANY, SIDE)
    return _is_faster(functional.linear, list(matrices), _laid_out_product, list(map(laid_out, matrices)), rows)


@functools.cache
@torch.inference_mode()
def most_in_half() -> int:
    """Measure, once, up to how many rows of float32 are multiplied faster with halved matrices; 0 if none."""
    matrices = torch.ones(MATRICES_FOR_FEW, SIDE, SIDE)
    try:
        half = [halved(matrix, None) for matrix in matrices]
    except (AttributeError, RuntimeError):
        # A library for other processors.
        return 0
    packed = list(map(laid_out, matrices))
    tried = (count for count in FEW if _is_faster(halved_product, half, _laid_out_product, packed, matrices[0][:count]))
    return next(tried, 0)


def _laid_out_product(rows: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    assert laid_out_product is not None
    return laid_out_product(rows, matrix, None, "none", [], "")


def _is_faster(
    one: Callable[..., object], its: Sequence[Any], other: Callable[..., object], others: Sequence[Any], rows: Any
) -> bool:
    """Which of two ways is faster with its matrices, by the fastest of four turns: others only slow it down."""
    ways = (lambda: [one(rows, matrix) for matrix in its]), (lambda: [other(rows, matrix) for matrix in others])
    times = [[seconds(way) for way in ways] for _ in range(4)]
    first, second = map(min, zip(*times, strict=True))
    return first < second


def seconds(action: Callable[[], object]) -> float:
    """How long something takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
