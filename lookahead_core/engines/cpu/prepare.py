"""Which way a twin's matrix products and layers are computed on a processor: decided here, and nowhere else.

The decision depends on the processor, the PyTorch build, the model and the `compute` setting. Nothing is timed, so it
is the same at every start, however busy the machine is.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import torch

from lookahead_core.engines.cpu.compiled_layers import ROWS
from lookahead_core.engines.cpu.llama_layers import LayerRun, use_compiled_layers
from lookahead_core.engines.cpu.output_head import CompiledHead, Float32Head
from lookahead_core.engines.cpu.packed_matrix import PackedLinear, is_plain, packs

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
        passes = [f"{few}: {self.few_rows}", f"larger passes: {self.many_rows}"]
        if self.few_rows == self.many_rows:
            passes = [f"all passes: {self.few_rows}"]
        return [*passes, *filter(None, [self.reason])]


PLAIN, PACKED, COMPILED = "as transformers computes them", "packed matrices", "layers compiled by LLVM"


def prepare(twin: Any, *, compute: str = "auto") -> Computation:
    """Change a twin, in place, to compute the fastest way that is supported and allowed; returns what was chosen."""
    done = _prepared(twin, compute)
    log.debug("%s: %s", type(twin).__name__, "; ".join(done.lines()))
    return done


def _prepared(twin: Any, compute: str) -> Computation:
    if compute == "plain":
        return Computation(PLAIN, PLAIN, reason='no copies of weights are made: compute is "plain"')
    head = twin.get_output_embeddings()
    not_compiled, not_packed = _why_not_compiled(twin, compute), _why_not_packed(twin)
    if not not_compiled and (not_compiled := use_compiled_layers(twin)) == "":
        return _use_compiled(twin, head, not_packed)
    use_float32_head(twin)
    if not_packed:
        return Computation(PLAIN, PLAIN, reason=not_packed)
    _pack_matrices(twin)
    return Computation(PACKED, PACKED, reason=f"layers are not compiled: {not_compiled}")


def _use_compiled(twin: Any, head: Any, not_packed: str) -> Computation:
    """Use a compiled output matrix where it fits, and packed matrices for the passes that are not compiled."""
    compiled = next(layer.compiled for layer in twin.modules() if isinstance(layer, LayerRun))
    if exact := compiled.takes(head):
        twin.set_output_embeddings(CompiledHead(head.weight, compiled))
    else:
        use_float32_head(twin)
    many = COMPILED
    if compiled.dtype is not torch.float32:
        many = PLAIN if not_packed else PACKED
        if not not_packed:
            _pack_matrices(twin)
    return Computation(COMPILED, many, exact_rows=ROWS if exact else 0, reason=not_packed if many is PLAIN else "")


def _why_not_compiled(twin: Any, compute: str) -> str:
    """Why compiled layers are not tried; an empty string if they are."""
    if compute == "packed":
        return 'compute is "packed"'
    if twin.device.type != "cpu":
        return f"they are for processors, and the model is on {twin.device}"
    numbers = sum(layer.weight.numel() for layer in twin.modules() if is_plain(layer))
    return _why_too_large("compiled", numbers * (2 if twin.dtype is torch.float32 else 4))


def _why_not_packed(twin: Any) -> str:
    """Why a twin's matrices are not packed; an empty string if they can be."""
    if twin.device.type != "cpu":
        return f"packed matrices and compiled layers are for processors, and the model is on {twin.device}"
    plain = [layer for layer in twin.modules() if is_plain(layer)]
    types = {layer.weight.dtype for layer in plain}
    if len(types) != 1:
        return "the model has no plain linear layers, or several types of them"
    if not packs(*types):
        return f"this processor or this PyTorch build cannot pack matrices of {types.pop()}"
    return _why_too_large("packed", sum(layer.weight.nbytes for layer in plain))


def _why_too_large(kind: str, size: int) -> str:
    """A sentence if copies of this many bytes are more than is allowed; an empty string otherwise."""
    if size <= COPY_BYTES:
        return ""
    return f"{kind} copies of the weights would take {size >> 20} MiB, and {COPY_BYTES >> 20} MiB are allowed"


def _pack_matrices(twin: Any) -> None:
    """Replace all plain linear layers by packed ones."""
    for parent in list(twin.modules()):
        for name, child in list(parent.named_children()):
            if is_plain(child):
                setattr(parent, name, PackedLinear(child))


def use_float32_head(twin: Any) -> None:
    """Compute logits in float32, where the output matrix is a plain one in half precision and a copy is allowed."""
    head = twin.get_output_embeddings()
    half = is_plain(head) and head.weight.dtype in (torch.bfloat16, torch.float16)
    if half and head.weight.numel() * 4 <= COPY_BYTES:
        twin.set_output_embeddings(Float32Head(head))
