"""Ways to multiply rows with a matrix on a processor, and for how many rows this machine is faster with which."""

import contextlib
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, List, TypeAlias

import torch
from torch.nn import functional

SIDE = 1024
MANY, TRIED_WITH_MANY, MATRICES_FOR_MANY = 128, 256, 12
"""Rows enough for a product with a matrix as it is, where that is faster: it is so from a hundred on, or never."""
FEW, MATRICES_FOR_FEW = (32, 24, 16, 12, 10, 8, 6, 4, 2, 1), 24
"""Rows for which matrices in half precision are tried: so many matrices that no processor's caches hold them."""

SPARED = 1.4
"""So much more than narrower ones products may take that are float32: nothing is rounded between them then, and the
likeliest logits need not be computed anew. Measured in benchmarks/README.md."""
FLIPPED_ROWS = 64
"""From so many rows on, a product from the left gains nothing any more: measured in benchmarks/README.md."""
LONGEST_SUM = 640
"""So many products of numbers are added up in a row; measured in benchmarks/README.md."""


def _half_matrix() -> Any:
    """The type of a matrix in half precision; where PyTorch was built without them there are none, of any type."""
    with contextlib.suppress(AttributeError, RuntimeError):
        return torch.classes.quantized.LinearPackedParamsBase
    return Any


Halves: TypeAlias = List[_half_matrix()]  # type: ignore[misc]
"""A matrix in half precision, in column parts."""


def linear_flipped(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """The same product as `functional.linear`, asked for as weight · rowsᵀ."""
    flat = rows.reshape(-1, rows.shape[-1])
    if not 1 < len(flat) < FLIPPED_ROWS or rows.device.type != "cpu":
        return functional.linear(rows, weight, bias)
    # Laid out as anybody expects: attention falls back to a slow path on transposed queries.
    product = (weight @ flat.t()).t().contiguous()
    if bias is not None:
        product += bias
    return product.reshape(*rows.shape[:-1], weight.shape[0])


def laid_out(weight: torch.Tensor) -> torch.Tensor:
    """A matrix as the processor's library wants it, which else lays it out anew for every product."""
    return torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)


def halved(weight: torch.Tensor, bias: torch.Tensor | None) -> Halves:
    """A matrix in half precision, of which products with float32 are float32: there is half as much to read.

    Its columns come in parts, since the library sums up from the first to the last, and long sums round more.
    """
    first, *others = (part.float().contiguous() for part in weight.detach().chunk(parts_in_half(weight), 1))
    pack = torch.ops.quantized.linear_prepack_fp16
    return [pack(first, None if bias is None else bias.detach().float()), *map(pack, others)]


def parts_in_half(weight: torch.Tensor) -> int:
    """In how many parts a matrix's columns come: one, where its numbers are not known to float32 anyway."""
    return -(-weight.shape[1] // LONGEST_SUM) if weight.dtype is torch.float32 else 1


def halved_product(rows: torch.Tensor, parts: Halves) -> torch.Tensor:
    """Rows of float32, multiplied with such a matrix, and its bias added."""
    if len(parts) == 1:
        return torch.ops.quantized.linear_dynamic_fp16(rows, parts[0])
    columns = rows.chunk(len(parts), -1)
    product = torch.ops.quantized.linear_dynamic_fp16(columns[0], parts[0])
    for i in range(1, len(parts)):
        product += torch.ops.quantized.linear_dynamic_fp16(columns[i], parts[i])
    return product


def is_exact_in_half(weight: torch.Tensor) -> bool:
    """Whether half precision keeps a matrix, as it does most that were saved in sixteen bits.

    What may be lost of its smallest numbers is no more than float32 loses of its largest; or, of numbers that are not
    known so well, a small part of what their own type loses.
    """
    lost = _largest(weight.detach().half().float().sub_(weight.detach()))
    bearable = max(torch.finfo(torch.float32).eps, torch.finfo(weight.dtype).eps ** 2)
    return bool(lost <= bearable * _largest(weight))


def _largest(weight: torch.Tensor) -> torch.Tensor:
    least, most = torch.aminmax(weight.detach())
    return torch.maximum(-least, most)


@functools.cache
@torch.inference_mode()
def packs(dtype: torch.dtype) -> bool:
    """Whether the processor's library is there, and multiplies matrices of this type on this processor."""
    one = torch.ones(1, 1, dtype=dtype)
    try:
        _laid_out_product(one, laid_out(one))
    except (AttributeError, RuntimeError):
        return False
    return True


@functools.cache
@torch.inference_mode()
def plain_is_faster() -> bool:
    """Measure, once, whether this machine multiplies many rows of float32 faster with matrices as they are."""
    matrices, rows = torch.ones(MATRICES_FOR_MANY, SIDE, SIDE), torch.ones(TRIED_WITH_MANY, SIDE)
    packed = list(map(laid_out, matrices))
    plain, ours = fastest_turns(
        [
            functools.partial(_each, functional.linear, rows, list(matrices)),
            functools.partial(_each, _laid_out_product, rows, packed),
        ]
    )
    return plain < ours


def most_in_half(weight: torch.Tensor) -> int:
    """Up to how many rows are multiplied faster in float32 with a matrix in half precision; 0 if none."""
    return _most_in_half(min(parts_in_half(weight), 2), weight.dtype)


@functools.cache
@torch.inference_mode()
def _most_in_half(parts: int, dtype: torch.dtype) -> int:
    """Measure, once for matrices of a type in one part and once for those in several."""
    matrices = torch.ones(MATRICES_FOR_FEW, SIDE, LONGEST_SUM * parts, dtype=dtype)
    try:
        half = [halved(matrix, None) for matrix in matrices]
        packed = list(map(laid_out, matrices))
    except (AttributeError, RuntimeError):
        # A library for other processors.
        return 0
    spared = 1.0 if dtype is torch.float32 else SPARED
    for count in FEW:
        narrow = matrices[0][:count]
        wide = narrow.float()
        ours, theirs = fastest_turns(
            [
                functools.partial(_each, halved_product, wide, half),
                functools.partial(_each, _laid_out_product, narrow, packed),
            ]
        )
        if ours < theirs * spared:
            return count
    return 0


def _each(way: Callable[..., object], rows: torch.Tensor, matrices: Sequence[Any]) -> None:
    """The same rows with one matrix after the other."""
    for matrix in matrices:
        way(rows, matrix)


@functools.cache
@torch.inference_mode()
def single_rows_fold(dtype: torch.dtype) -> bool:
    """Measure, once, whether a single row attends faster with the heads that share a key folded into rows."""
    query, key = torch.ones(1, 8, 1, 64, dtype=dtype), torch.ones(1, 2, 2 * TRIED_WITH_MANY, 64, dtype=dtype)
    mask = torch.zeros(1, 1, 1, 2 * TRIED_WITH_MANY, dtype=dtype)
    attend = functional.scaled_dot_product_attention
    apart, together = fastest_turns(
        [
            lambda: [attend(query, key, key, mask, enable_gqa=True) for _ in range(MATRICES_FOR_FEW)],
            lambda: [
                attend(query.view(1, 2, 4, 64), key, key, mask.expand(1, 1, 4, -1)) for _ in range(MATRICES_FOR_FEW)
            ],
        ]
    )
    return together < apart


@functools.cache
@torch.inference_mode()
def attention_widens(dtype: torch.dtype) -> bool:
    """Measure, once, whether this processor lets a chunk of numbers of this type attend faster in float32."""
    if dtype.itemsize >= torch.float32.itemsize:
        return False
    rows, slots = TRIED_WITH_MANY, 2 * TRIED_WITH_MANY
    query, key = torch.ones(1, 8, rows, 64, dtype=dtype), torch.ones(1, 2, slots, 64, dtype=dtype)
    mask = torch.zeros(1, 1, rows, slots, dtype=dtype)
    attend = functools.partial(functional.scaled_dot_product_attention, enable_gqa=True)
    narrow, wide = fastest_turns(
        [
            lambda: attend(query, key, key, mask),
            lambda: attend(query.float(), key.float(), key.float(), mask.float()).to(dtype),
        ]
    )
    return wide < narrow


def _laid_out_product(rows: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise(rows, matrix, None, "none", [], "")


def fastest_turns(ways: Sequence[Callable[[], object]]) -> list[float]:
    """How many seconds each way takes at its fastest, of four turns that all have: others only slow it down."""
    turns = [[seconds(way) for way in ways] for _ in range(4)]
    return [min(times) for times in zip(*turns, strict=True)]


def seconds(action: Callable[[], object]) -> float:
    """How long something takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
