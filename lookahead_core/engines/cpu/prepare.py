"""How an engine's model copy computes matrix products and layers on a processor: decided here, and nowhere else.

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


def prepare(model_copy: Any, *, compute: str = "auto") -> Computation:
    """Change a model copy in place to compute in the fastest supported and allowed way; returns what was chosen."""
    done = _prepared(model_copy, compute)
    log.debug("%s: %s", type(model_copy).__name__, "; ".join(done.lines()))
    return done


def _prepared(model_copy: Any, compute: str) -> Computation:
    if compute == "plain":
        return Computation(PLAIN, PLAIN, reason='no copies of weights are made: compute is "plain"')
    head = model_copy.get_output_embeddings()
    not_compiled, not_packed = _why_not_compiled(model_copy, compute), _why_not_packed(model_copy)
    if not not_compiled and (not_compiled := use_compiled_layers(model_copy)) == "":
        return _use_compiled(model_copy, head, not_packed)
    use_float32_head(model_copy)
    if not_packed:
        return Computation(PLAIN, PLAIN, reason=not_packed)
    _pack_matrices(model_copy)
    return Computation(PACKED, PACKED, reason=f"layers are not compiled: {not_compiled}")


def _use_compiled(model_copy: Any, head: Any, not_packed: str) -> Computation:
    """Use a compiled output matrix where it fits, and packed matrices for the passes that are not compiled."""
    compiled = next(layer.compiled for layer in model_copy.modules() if isinstance(layer, LayerRun))
    if exact := compiled.takes(head):
        model_copy.set_output_embeddings(CompiledHead(head.weight, compiled))
    else:
        use_float32_head(model_copy)
    many = COMPILED
    if compiled.dtype is not torch.float32:
        many = PLAIN if not_packed else PACKED
        if not not_packed:
            _pack_matrices(model_copy)
    return Computation(COMPILED, many, exact_rows=ROWS if exact else 0, reason=not_packed if many is PLAIN else "")


def _why_not_compiled(model_copy: Any, compute: str) -> str:
    """Why compiled layers are not tried; an empty string if they are."""
    if compute == "packed":
        return 'compute is "packed"'
    if model_copy.device.type != "cpu":
        return f"they are for processors, and the model is on {model_copy.device}"
    numbers = sum(layer.weight.numel() for layer in model_copy.modules() if is_plain(layer))
    return _why_too_large("compiled", numbers * (2 if model_copy.dtype is torch.float32 else 4))


def _why_not_packed(model_copy: Any) -> str:
    """Why a model copy's matrices are not packed; an empty string if they can be."""
    if model_copy.device.type != "cpu":
        return f"packed matrices and compiled layers are for processors, and the model is on {model_copy.device}"
    plain = [layer for layer in model_copy.modules() if is_plain(layer)]
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


def _pack_matrices(model_copy: Any) -> None:
    """Replace all plain linear layers by packed ones."""
    for parent in list(model_copy.modules()):
        for name, child in list(parent.named_children()):
            if is_plain(child):
                setattr(parent, name, PackedLinear(child))


def use_float32_head(model_copy: Any) -> None:
    """Compute logits in float32, where the output matrix is a plain one in half precision and a copy is allowed."""
    head = model_copy.get_output_embeddings()
    half = is_plain(head) and head.weight.dtype in (torch.bfloat16, torch.float16)
    if half and head.weight.numel() * 4 <= COPY_BYTES:
        model_copy.set_output_embeddings(Float32Head(head))
