"""How an engine's model copy computes matrix products and layers on a processor: decided here, and nowhere else.

The decision depends on the processor, the PyTorch build, the model and the `compute` setting. Nothing is timed, so it
is the same at every start, however busy the machine is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from lookahead_core.engines.cpu.compiled_layers import ROWS
from lookahead_core.engines.cpu.llama_layers import compiles_large_passes, use_compiled_layers
from lookahead_core.engines.cpu.output_head import CompiledHead, Float32Head
from lookahead_core.engines.cpu.packed_matrix import PackedLinear, is_plain, packs

COPY_BYTES = 1 << 30
"""The most bytes that each kind of copies may take: packed matrices, compiled layers, the output matrix in float32."""
COMPUTE = ("auto", "packed", "plain")
"""Values of the `compute` setting: the fastest supported way; without compiled layers; as transformers computes."""


@dataclass(frozen=True)
class Computation:
    """How a model's passes are computed, and why not faster: phrases to show, as `prepare` returns them."""

    few_rows: str
    """How passes of up to `exact_rows` rows are computed, or passes of few rows in general if that is 0."""
    many_rows: str
    """How larger passes are computed."""
    exact_rows: int = 0
    """In passes of up to this many rows, a row's bits do not depend on the pass's other rows; 0 if that is not so."""
    reason: str = ""
    """Why nothing faster is used, as a clause without a full stop; "" if nothing faster exists."""

    @property
    def is_uniform(self) -> bool:
        """Whether passes of all sizes are computed in the same way."""
        return self.few_rows == self.many_rows

    def lines(self) -> list[str]:
        """Return lines to print: how passes of few rows and larger ones are computed, and `reason` unless empty.

        If both kinds are computed alike, one line says so.
        """
        few = f"passes of up to {self.exact_rows} rows" if self.exact_rows else "passes of few rows"
        passes = [f"{few}: {self.few_rows}", f"larger passes: {self.many_rows}"]
        if self.is_uniform:
            passes = [f"all passes: {self.few_rows}"]
        return passes + [self.reason] * bool(self.reason)


PLAIN, PACKED, COMPILED = "as transformers computes them", "packed matrices", "layers compiled by LLVM"


def prepare(model_copy: Any, *, compute: str = "auto") -> Computation:
    """Change a model copy in place to compute in the fastest supported way that `compute` allows; return that way.

    `compute` is "auto", "packed" (no compiled layers) or "plain" (nothing is changed), and is not checked. On devices
    other than the CPU only the output matrix may change.
    """
    if compute == "plain":
        return Computation(PLAIN, PLAIN, reason='no copies of weights are made: compute is "plain"')
    if model_copy.device.type != "cpu":
        use_float32_head(model_copy)
        reason = f"packed matrices and compiled layers are for processors, and the model is on {model_copy.device}"
        return Computation(PLAIN, PLAIN, reason=reason)
    linears = [module for module in model_copy.modules() if is_plain(module)]
    not_packed = _why_not_packed(linears)
    not_compiled = _why_not_compiled(linears, model_copy.dtype, compute) or use_compiled_layers(model_copy)
    head = model_copy.get_output_embeddings()
    layers: Any = None if not_compiled else model_copy.forward.compiled
    exact_rows = ROWS if layers and layers.takes(head) else 0
    if exact_rows:
        model_copy.set_output_embeddings(CompiledHead(head.weight, layers))
    else:
        use_float32_head(model_copy)
    if layers and model_copy.forward.compiles_large_passes:
        return Computation(COMPILED, COMPILED, exact_rows)
    if not not_packed:
        _pack_matrices(model_copy)
    many = PLAIN if not_packed else PACKED
    reason = not_packed or (not_compiled and f"layers are not compiled: {not_compiled}")
    return Computation(COMPILED if layers else many, many, exact_rows, reason)


def _why_not_compiled(linears: list[nn.Linear], dtype: torch.dtype, compute: str) -> str:
    """Return why compiled layers must not be tried, for the setting `compute` or the size of copies; "" if they may.

    `linears` are the model's plain linear layers, and `dtype` is the model's.
    """
    if compute == "packed":
        return 'compute is "packed"'
    # Layers are copied in bfloat16, and once more as packed matrices where large passes are not compiled.
    size = 2 if compiles_large_passes(dtype) else 4
    return _why_too_large("compiled", size * sum(linear.weight.numel() for linear in linears))


def _why_not_packed(linears: list[nn.Linear]) -> str:
    """Return, as a clause, why the weights of these layers cannot be packed or would take too much memory; or ""."""
    types = {linear.weight.dtype for linear in linears}
    if len(types) != 1:
        return "the model has no plain linear layers, or several types of them"
    if not packs(*types):
        return f"this processor or this PyTorch build cannot pack matrices of {types.pop()}"
    return _why_too_large("packed", sum(linear.weight.nbytes for linear in linears))


def _why_too_large(kind: str, size: int) -> str:
    """Return a clause if `size` bytes of copies are more than COPY_BYTES, else ""; `kind` is its first word."""
    if size <= COPY_BYTES:
        return ""
    return f"{kind} copies of the weights would take {size >> 20} MiB, and {COPY_BYTES >> 20} MiB are allowed"


def _pack_matrices(model_copy: Any) -> None:
    """Replace all plain linear layers of a model copy by `PackedLinear`, in place.

    `_why_not_packed` must return "" for them.
    """
    for parent in list(model_copy.modules()):
        for name, child in list(parent.named_children()):
            if is_plain(child):
                setattr(parent, name, PackedLinear(child.weight, child.bias))


def use_float32_head(model_copy: Any) -> None:
    """Replace a model copy's output matrix by a `Float32Head`, in place.

    Does nothing unless it is a plain `nn.Linear` in half precision whose float32 copy takes at most COPY_BYTES.
    """
    head = model_copy.get_output_embeddings()
    half = is_plain(head) and head.weight.dtype in (torch.bfloat16, torch.float16)
    if half and head.weight.numel() * 4 <= COPY_BYTES:
        model_copy.set_output_embeddings(Float32Head(head))
