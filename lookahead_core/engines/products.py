"""The same products, asked for in the way that this machine does them best. Used in twins only; weights stay shared."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from lookahead_core.engines.lean import use_lean_layers
from lookahead_core.engines.native import NativeHead, NativeLayers
from lookahead_core.engines.output import Float32Head, SharpHead
from lookahead_core.engines.packed import PackedLinear, is_plain, packed, product, stacked
from lookahead_core.engines.ways import fastest_turns, linear_flipped, most_in_half, packs

TRIED = 60
"""How many of a model's matrices are multiplied to see which way is faster: fewer might stay in caches."""
COPY_BYTES = 1 << 30
"""The most memory that copies of weights may take: laid out for the processor, joined, or the head in float32."""
LEAST, LEAN_LEAST = 1.05, 0.9
"""How much faster products have to be packed: lean layers, which need that, save more between them than a tenth."""
NEIGHBOURS = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))


def prepare(twin: Any, *, lean: bool = False) -> None:
    """Everything that pays for this twin, on its device and in its type; lean layers where they were shown to fit."""
    if twin.device.type == "cpu" and use_packed_products(twin, lean=lean):
        return
    use_float32_head(twin)
    if twin.device.type == "cpu":
        if twin.dtype is torch.float32:
            use_flipped_products(twin)
        else:
            join_neighbours(twin)


class FlippedLinear(nn.Module):
    """A linear layer that multiplies from the left: twice as fast for a few rows where the library favours it."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return linear_flipped(rows, self.weight, self.bias)


class Joined:
    """Linear layers that read the same rows, multiplied as one; each call of a round takes its part."""

    def __init__(self, layers: list[nn.Linear], *, pack: bool = False) -> None:
        weight, bias = stacked(layers)
        self._product: Callable[[torch.Tensor], torch.Tensor] = (
            functools.partial(product, packed(weight, bias, layers))
            if pack
            else lambda rows: functional.linear(rows, weight, bias)
        )
        self.widths = [layer.weight.shape[0] for layer in layers]
        self._rows: torch.Tensor | None = None
        self._parts: tuple[torch.Tensor, ...] = ()

    def part(self, index: int, rows: torch.Tensor) -> torch.Tensor:
        """What layer `index` gives; the product is made once, by whoever comes first with new rows."""
        if self._rows is not rows:
            self._rows = rows
            self._parts = self._product(rows).split(self.widths, -1)
        found = self._parts[index]
        if index == len(self.widths) - 1:
            self._rows, self._parts = None, ()
        return found


class JoinedPart(nn.Module):
    """One of the layers that were joined."""

    def __init__(self, joined: Joined, index: int) -> None:
        super().__init__()
        self.joined, self.index = joined, index

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.joined.part(self.index, rows)


def use_packed_products(twin: Any, *, lean: bool = False) -> bool:
    """Lay all matrices out as this processor wants them, where a copy is bearable and a measurement says that it pays.

    Tells whether it was done.
    """
    plain = [layer for layer in twin.modules() if is_plain(layer)]
    head = twin.get_output_embeddings()
    size = sum(_copied(layer.weight, lean) for layer in plain)
    if (
        not plain
        or size > COPY_BYTES
        or not packing_pays([layer.weight for layer in plain if layer is not head], least=LEAN_LEAST if lean else LEAST)
    ):
        return False
    sharp = is_plain(head) and head.weight.dtype is not torch.float32
    # Compiled layers have a copy of their own, and make one in half precision needless.
    compiles = sum(layer.weight.nbytes + 2 * layer.weight.numel() for layer in plain) <= COPY_BYTES
    native = use_lean_layers(twin, widens=sharp, compiles=compiles) if lean else None
    if not lean:
        join_neighbours(twin, pack=True)
    if sharp or (native is not None and is_plain(head)):
        twin.set_output_embeddings(_packed_head(head, native))
    for parent in list(twin.modules()):
        for name, child in list(parent.named_children()):
            if is_plain(child):
                setattr(parent, name, PackedLinear(child))
    return True


def _packed_head(head: nn.Linear, native: NativeLayers | None) -> nn.Module:
    """The output matrix, packed; for few rows compiled, where layers are."""
    if native is not None and not native.takes(head):
        native = None
    kind = PackedLinear if head.weight.dtype is torch.float32 else SharpHead
    others = kind(head, halves=native is None)
    return others if native is None else NativeHead(others, head.weight, native)


def _copied(weight: torch.Tensor, lean: bool) -> int:
    """How many bytes the copies of a matrix take: there may be one in half precision as well."""
    halves = (lean or weight.dtype is torch.float32) and most_in_half(weight)
    return weight.nbytes + (2 * weight.numel() if halves else 0)


@torch.inference_mode()
def packing_pays(weights: list[torch.Tensor], rows: int = 5, *, least: float = LEAST) -> bool:
    """Measure on this machine whether products of a few rows are at least so many times as fast packed."""
    types = {weight.dtype for weight in weights}
    if len(types) != 1 or not packs(*types):
        return False
    few = [torch.zeros(rows, weight.shape[1], dtype=weight.dtype) for weight in weights[:TRIED]]
    pairs = list(zip(few, weights, strict=False))
    laid_out = [(row, packed(weight, None)) for row, weight in pairs]
    ways: list[Callable[[], object]] = [
        lambda: [product(matrix, row) for row, matrix in laid_out],
        lambda: [functional.linear(row, weight) for row, weight in pairs],
        lambda: [linear_flipped(row, weight, None) for row, weight in pairs],
    ]
    ours, *others = fastest_turns(ways)
    return ours * least < min(others)


def join_neighbours(twin: Any, *, pack: bool = False) -> None:
    """Multiply query, key and value as one, gate and up as one, where a copy of their weights is bearable."""
    found = [
        (parent, names, layers)
        for parent in twin.modules()
        for names in NEIGHBOURS
        if _can_be_joined(layers := [getattr(parent, name, None) for name in names])
    ]
    size = sum(layer.weight.nbytes for _, _, layers in found for layer in layers)
    if size > COPY_BYTES:
        return
    for parent, names, layers in found:
        joined = Joined(layers, pack=pack)
        for index, name in enumerate(names):
            setattr(parent, name, JoinedPart(joined, index))


def _can_be_joined(layers: list[Any]) -> bool:
    """Plain linear layers of one width, all with a bias or all without."""
    plain = all(map(is_plain, layers))
    return plain and len({(layer.in_features, layer.bias is None) for layer in layers}) == 1


def use_float32_head(twin: Any) -> None:
    """Have the logits computed in float32, where the output matrix is a plain one of bearable size."""
    head = twin.get_output_embeddings()
    half = is_plain(head) and head.weight.dtype in (torch.bfloat16, torch.float16)
    if half and head.weight.numel() * 4 <= COPY_BYTES:
        twin.set_output_embeddings(Float32Head(head))


def use_flipped_products(twin: Any) -> None:
    """On a processor, in float32, replace the linear layers where a measurement says that it pays."""
    found = [
        (parent, name, child)
        for parent in twin.modules()
        for name, child in parent.named_children()
        if is_plain(child) and child.weight.dtype is torch.float32 and child.weight.device.type == "cpu"
    ]
    if flipping_pays([child.weight for _, _, child in found]):
        for parent, name, child in found:
            setattr(parent, name, FlippedLinear(child))


@torch.inference_mode()
def flipping_pays(weights: list[torch.Tensor], rows: int = 5) -> bool:
    """Measure on this machine whether products of a few rows are faster from the left.

    Over different matrices, as a pass meets them: one matrix again and again would stay in the processor's caches.
    """
    dice = torch.Generator().manual_seed(0)
    few = [torch.randn(rows, weight.shape[1], generator=dice) for weight in weights[:TRIED]]
    pairs = list(zip(few, weights, strict=False))
    plain, flipped = fastest_turns(
        [
            lambda: [functional.linear(row, weight) for row, weight in pairs],
            lambda: [linear_flipped(row, weight, None) for row, weight in pairs],
        ]
    )
    return flipped * 1.1 < plain
