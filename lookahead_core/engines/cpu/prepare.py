"""Which way a twin's matrix products and layers are computed on a processor: decided here, and nowhere else.

The decision depends on the processor, the PyTorch build, the model and the `compute` setting. Nothing is timed, so it
is the same at every start, however busy the machine is.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import torch

from lookahead_core.engines.cpu.compiled_layers import ROWS, CompiledLayers
from lookahead_core.engines.cpu.fused_layers import FusedLayers, use_fused_layers
from lookahead_core.engines.cpu.output_head import CompiledHead, Float32Head, RefinedHead
from lookahead_core.engines.cpu.packed_matrix import FlippedLinear, PackedLinear, is_plain, packs

log = logging.getLogger(__name__)
COPY_BYTES = 1 << 30
"""The most memory that copies of weights may take: packed, compiled, or the output matrix in float32."""
COMPUTE = ("auto", "packed", "plain")
"""Values of the `compute` setting: the fastest supported way; without compiled layers; as transformers computes."""


@dataclass(frozen=True)
class Computation:
    """How a model's passes are computed, and why."""

    few_rows: str
    """How passes of up to `exact_rows` rows are computed, or small passes in general where that is 0."""
    many_rows: str
    """How larger passes are computed."""
    exact_rows: int = 0
    """In passes of up to this many rows, a row's bits do not depend on the pass's other rows; 0 if that is not so."""
    reason: str = ""
    """Why nothing faster is used; empty if nothing faster exists."""

    def lines(self) -> list[str]:
        """Sentences for people."""
        few = f"passes of up to {self.exact_rows} rows" if self.exact_rows else "passes of few rows"
        return [f"{few}: {self.few_rows}", f"larger passes: {self.many_rows}", *filter(None, [self.reason])]


def prepare(twin: Any, *, fuses: bool = False, compute: str = "auto") -> Computation:
    """Change a twin, in place, to compute the fastest way that is supported and allowed; returns what was chosen.

    `fuses` says that the probe found fused layers to compute what the model's own layers do.
    """
    done = _prepared(twin, fuses, compute)
    log.debug("%s: %s", type(twin).__name__, "; ".join(done.lines()))
    return done


def _prepared(twin: Any, fuses: bool, compute: str) -> Computation:
    reason = _why_not_packed(twin, compute)
    if not reason:
        return _use_packed_matrices(twin, fuses, compiles=compute == "auto")
    if compute != "plain":
        use_float32_head(twin)
        if twin.device.type == "cpu" and twin.dtype is torch.float32:
            use_flipped_products(twin)
            return Computation("weight @ rows.T", "as transformers computes them", reason=reason)
    return Computation(*["as transformers computes them"] * 2, reason=reason)


def _why_not_packed(twin: Any, compute: str) -> str:
    """Why a twin's matrices are not packed; an empty string if they are."""
    if compute == "plain":
        return 'no copies of weights are made: compute is "plain"'
    if twin.device.type != "cpu":
        return f"packed matrices and compiled layers are for processors, and the model is on {twin.device}"
    plain = [layer for layer in twin.modules() if is_plain(layer)]
    types = {layer.weight.dtype for layer in plain}
    if len(types) != 1:
        return "the model has no plain linear layers, or several types of them"
    if not packs(*types):
        return f"this processor or this PyTorch build cannot pack matrices of {types.pop()}"
    size = sum(layer.weight.nbytes for layer in plain)
    if size > COPY_BYTES:
        return f"packed copies of the weights would take {size >> 20} MiB, and {COPY_BYTES >> 20} MiB are allowed"
    return ""


def _use_packed_matrices(twin: Any, fuses: bool, *, compiles: bool) -> Computation:
    """Pack all matrices; use fused layers where they fit, and compiled ones where they can be had."""
    head = twin.get_output_embeddings()
    sharp = is_plain(head) and head.weight.dtype is not torch.float32
    reason = _why_not_compiled(twin, fuses, compiles, sharp)
    if fuses:
        reason = use_fused_layers(twin, compiles=not reason) or reason
    compiled = next((layer.compiled for layer in twin.modules() if isinstance(layer, FusedLayers)), None)
    if sharp or (compiled is not None and is_plain(head)):
        twin.set_output_embeddings(_packed_head(head, compiled))
    for parent in list(twin.modules()):
        for name, child in list(parent.named_children()):
            if is_plain(child):
                setattr(parent, name, PackedLinear(child))
    many = f"{'fused layers over ' if fuses else ''}packed matrices"
    if compiled is None:
        return Computation(many, many, reason=f"layers are not compiled: {reason}")
    whole = isinstance(twin.get_output_embeddings(), CompiledHead)
    return Computation("layers compiled by LLVM", many, exact_rows=ROWS if whole else 0)


def _why_not_compiled(twin: Any, fuses: bool, compiles: bool, sharp: bool) -> str:
    """Why compiled layers are not tried; an empty string if they are."""
    if not compiles:
        return 'compute is "packed"'
    if not fuses:
        return "they are for decoder layers of the Llama shape"
    if not sharp and twin.dtype is not torch.float32:
        return "the output matrix takes no rows in float32"
    plain = [layer for layer in twin.modules() if is_plain(layer)]
    size = sum(layer.weight.nbytes + 2 * layer.weight.numel() for layer in plain)
    if size > COPY_BYTES:
        return f"packed and compiled copies would take {size >> 20} MiB, and {COPY_BYTES >> 20} MiB are allowed"
    return ""


def _packed_head(head: Any, compiled: CompiledLayers | None) -> Any:
    """The output matrix, packed; for few rows compiled, where layers are and its shape allows it."""
    others = PackedLinear(head) if head.weight.dtype is torch.float32 else RefinedHead(head)
    if compiled is None or not compiled.takes(head):
        return others
    return CompiledHead(others, head.weight, compiled)


def use_float32_head(twin: Any) -> None:
    """Compute logits in float32, where the output matrix is a plain one in half precision and a copy is allowed."""
    head = twin.get_output_embeddings()
    half = is_plain(head) and head.weight.dtype in (torch.bfloat16, torch.float16)
    if half and head.weight.numel() * 4 <= COPY_BYTES:
        twin.set_output_embeddings(Float32Head(head))


def use_flipped_products(twin: Any) -> None:
    """Replace float32 linear layers on a processor by ones that compute `weight @ rows.T`."""
    for parent in list(twin.modules()):
        for name, child in list(parent.named_children()):
            if is_plain(child) and child.weight.dtype is torch.float32 and child.weight.device.type == "cpu":
                setattr(parent, name, FlippedLinear(child))
