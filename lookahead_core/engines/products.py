"""The same products, asked for in the way that this machine does them best. Used in twins only; weights stay shared."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from lookahead_core.engines.lean import use_lean_layers
from lookahead_core.engines.packed import Packed, PackedLinear, is_plain, stacked
from lookahead_core.engines.ways import most_in_half, packs, seconds

TRIED = 60
"""How many of a model's matrices are multiplied to see which way is faster."""
FLIPPED_ROWS = 64
"""From so many rows on, a product from the left gains nothing any more: measured in benchmarks/README.md."""
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


class Float32Head(nn.Module):
    """The output matrix with its product in float32: in bfloat16 a logit of 20 is only known to a sixteenth."""

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.weight = head.weight.detach().float()
        self.bias = None if head.bias is None else head.bias.detach().float()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return linear_flipped(hidden.float(), self.weight, self.bias)


class FlippedLinear(nn.Module):
    """A linear layer that multiplies from the left: twice as fast for a few rows where the library favours it."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return linear_flipped(rows, self.weight, self.bias)


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


class Joined:
    """Linear layers that read the same rows, multiplied as one; each call of a round takes its part."""

    def __init__(self, layers: list[nn.Linear], *, packed: bool = False) -> None:
        weight, bias = stacked(layers)
        self._product = Packed(weight, bias, layers) if packed else functools.partial(_linear, weight=weight, bias=bias)
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


def _linear(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return functional.linear(rows, weight, bias)


class JoinedPart(nn.Module):
    """One of the layers that were joined."""

    def __init__(self, joined: Joined, index: int) -> None:
        super().__init__()
        self.joined, self.index = joined, index

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.joined.part(self.index, rows)


def use_packed_products(twin: Any, *, lean: bool = False) -> bool:
    """Lay all matrices out as this processor wants them, where a copy is bearable and a measurement says that it pays.

    The head's product is in float32. Tells whether it was done.
    """
    plain = [layer for layer in twin.modules() if is_plain(layer)]
    head = twin.get_output_embeddings()
    size = sum(_copied(layer.weight, torch.float32 if layer is head else layer.weight.dtype) for layer in plain)
    if (
        not plain
        or size > COPY_BYTES
        or not packing_pays([layer.weight for layer in plain if layer is not head], least=LEAN_LEAST if lean else LEAST)
    ):
        return False
    if is_plain(head):
        twin.set_output_embeddings(PackedLinear(head, torch.float32))
    if lean:
        use_lean_layers(twin)
    else:
        join_neighbours(twin, packed=True)
    for parent in list(twin.modules()):
        for name, child in list(parent.named_children()):
            if is_plain(child):
                setattr(parent, name, PackedLinear(child))
    return True


def _copied(weight: torch.Tensor, dtype: torch.dtype) -> int:
    """How many bytes the copies of a matrix take: in float32 there may be one in half precision as well."""
    return weight.numel() * (4 + 2 * bool(most_in_half()) if dtype is torch.float32 else dtype.itemsize)


@torch.inference_mode()
def packing_pays(weights: list[torch.Tensor], rows: int = 5, *, least: float = LEAST) -> bool:
    """Measure on this machine whether products of a few rows are at least so many times as fast packed."""
    types = {weight.dtype for weight in weights}
    if len(types) != 1 or not packs(*types):
        return False
    few = [torch.zeros(rows, weight.shape[1], dtype=weight.dtype) for weight in weights[:TRIED]]
    pairs = list(zip(few, weights, strict=False))
    packed = [(row, Packed(weight, None)) for row, weight in pairs]
    ways: list[Callable[[], object]] = [
        lambda: [matrix(row) for row, matrix in packed],
        lambda: [functional.linear(row, weight) for row, weight in pairs],
        lambda: [linear_flipped(row, weight, None) for row, weight in pairs],
    ]
    ours, *others = [min(seconds(way) for _ in range(4)) for way in ways]
    return ours * least < min(others)


def join_neighbours(twin: Any, *, packed: bool = False) -> None:
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
        joined = Joined(layers, packed=packed)
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
    plain, flipped = [], []
    for _ in range(4):
        plain.append(seconds(lambda: [functional.linear(row, weight) for row, weight in pairs]))
        flipped.append(seconds(lambda: [linear_flipped(row, weight, None) for row, weight in pairs]))
    # The fastest of each, since another program on the machine can only slow a product down.
    return min(flipped) * 1.1 < min(plain)
