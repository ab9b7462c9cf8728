"""Layers that are compiled for the processor at hand, where that can be done and they come out faster.

What they compute is written in kernels.py; here it is compiled, and weights are laid out and passes handed over to it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

try:
    from llvmlite import binding

    from lookahead_core.engines.kernels import ATTEND, LAYER, Shape, kernels
except ImportError:  # where there is no LLVM for Python, layers go the way of all others
    binding = None

REGISTERS = (("avx512f", 16, ((6, 2), (14, 1))), ("avx2", 8, ((6, 1),)))
"""By what a processor can do, how many numbers its registers hold, and for at most how many rows their sums with how
many groups of columns fit into them."""
LINE = 64
"""Bytes that come from memory at a time."""


def registers() -> tuple[int, tuple[tuple[int, int], ...]] | None:
    """What there is of registers; None where nothing can be compiled, or what comes of it was never tried."""
    if binding is None or sys.platform != "linux" or platform.machine() != "x86_64" or _openmp() is None:
        return None
    able = binding.get_host_cpu_features()
    return next(((lanes, tall) for name, lanes, tall in REGISTERS if able.get(name) and able.get("fma")), None)


@functools.cache
def _openmp() -> Any:
    """The library that PyTorch has its threads from, as it is loaded already: another's would be in their way."""
    try:
        with open("/proc/self/maps") as file:
            paths = {line.split(maxsplit=5)[-1].strip() for line in file if "omp" in line.rsplit("/", 1)[-1]}
    except OSError:
        return None
    for path in sorted(paths, key=lambda path: "torch" not in path):
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(path)
            library.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
            library.GOMP_parallel.restype = None
            return library
    return None


@dataclass(frozen=True)
class Compiled:
    """The functions for a shape; what they lie in lives as long as this."""

    layers: int
    product: int
    held: Any

    def run(self, function: int, told: np.ndarray[Any, Any]) -> None:
        """Have all of PyTorch's threads run a function. Python goes on elsewhere meanwhile."""
        _openmp().GOMP_parallel(function, told.ctypes.data, torch.get_num_threads(), 0)


@functools.lru_cache(maxsize=32)
def compiled(shape: Shape) -> Compiled:
    """Functions for this shape and this processor."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for name in ("omp_get_thread_num", "omp_get_num_threads", "GOMP_barrier"):
        binding.add_symbol(name, ctypes.cast(getattr(_openmp(), name), ctypes.c_void_p).value)
    # Some processors are held to half of their registers unless asked.
    features = f"{binding.get_host_cpu_features().flatten()},-prefer-256-bit"
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=3)
    module = binding.parse_assembly(kernels(shape))
    module.verify()
    tuning = binding.create_pipeline_tuning_options(speed_level=3)
    # Vectors are written as such; loops that are unrolled need more registers than there are.
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return Compiled(*(engine.get_function_address(name) for name in ("layers", "product")), held=engine)


def laid_out(weight: torch.Tensor, lanes: int) -> torch.Tensor:
    """A matrix as the kernels read it: groups of columns, step by step, two columns in the halves of each number."""
    height, depth = weight.shape
    halves = weight.detach().bfloat16().view(torch.int16).view(height // (2 * lanes), 2, lanes, depth)
    return aligned(halves.permute(0, 3, 2, 1))


def aligned(numbers: torch.Tensor) -> torch.Tensor:
    """A copy, at the beginning of a line of memory."""
    spare = LINE // numbers.element_size()
    room = torch.empty(numbers.numel() + spare, dtype=numbers.dtype)
    first = -room.data_ptr() % LINE // numbers.element_size()
    return room[first : first + numbers.numel()].view(numbers.shape).copy_(numbers)


def native_layers(layers: Sequence[Any]) -> NativeLayers | None:
    """Layers of the common shape for few rows; None where they cannot be had, or would lose something."""
    found = registers()
    if found is None or not all(map(_is_known, layers)):
        return None
    shape, *others = dict.fromkeys(_shape_of(layer, *found) for layer in layers)
    if others or not shape.fits:
        return None
    try:
        return NativeLayers(layers, shape)
    except Exception:  # what this machine's LLVM cannot do, or the machine does not allow
        return None


def _is_known(layer: Any) -> bool:
    """Whether a layer has nothing that the kernels do not know, and numbers that they keep."""
    attention, mlp = layer.self_attn, layer.mlp
    bare = (attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj)
    every = (attention.q_proj, attention.k_proj, attention.v_proj, *bare)
    norms = [layer.input_layernorm, layer.post_attention_layernorm]
    norms += [getattr(attention, name) for name in ("q_norm", "k_norm") if hasattr(attention, name)]
    return (
        len({norm.variance_epsilon for norm in norms}) == 1
        and all(one.bias is None for one in bare)
        and all(is_exact(one.weight) for one in every)
    )


def is_exact(weight: torch.Tensor) -> bool:
    """Whether the upper halves of float32 hold all of a matrix, as they do most that were saved in sixteen bits."""
    if weight.device.type != "cpu" or weight.dtype not in (torch.float32, torch.bfloat16):
        return False
    return weight.dtype is torch.bfloat16 or bool((weight.detach().bfloat16() == weight.detach()).all())


def _shape_of(layer: Any, lanes: int, tall: tuple[tuple[int, int], ...]) -> Shape:
    attention = layer.self_attn
    width = int(attention.head_dim)
    return Shape(
        lanes=lanes,
        tall=tall,
        narrow=attention.q_proj.weight.dtype is torch.bfloat16,
        hidden=attention.q_proj.in_features,
        inner=layer.mlp.gate_proj.out_features,
        heads=attention.q_proj.out_features // width,
        key_heads=attention.k_proj.out_features // width,
        width=width,
        epsilon=float(layer.input_layernorm.variance_epsilon),
        scaling=float(attention.scaling),
        biased=attention.q_proj.bias is not None,
        norms_heads=hasattr(attention, "q_norm"),
    )


class NativeLayers:
    """Layers one after the other, in one call."""

    def __init__(self, layers: Sequence[Any], shape: Shape) -> None:
        self.shape = shape
        self.most = 0
        """For how many rows at most they are used: as many as it is faster for."""
        self.dtype = torch.bfloat16 if shape.narrow else torch.float32
        self.compiled = compiled(shape)
        self._weights = [self._laid_out(layer) for layer in layers]
        self._layers = _addresses([[part.data_ptr() for part in parts] for parts in self._weights])

    def _laid_out(self, layer: Any) -> list[torch.Tensor]:
        """A layer's weights, as LAYER in kernels.py names them."""
        attention, mlp, shape = layer.self_attn, layer.mlp, self.shape
        takers = [attention.q_proj, attention.k_proj, attention.v_proj]
        bias = torch.cat([one.bias for one in takers]) if shape.biased else torch.empty(0)
        norms = [attention.q_norm.weight, attention.k_norm.weight] if shape.norms_heads else [torch.empty(0)] * 2
        matrices = {
            "taken": torch.cat([one.weight for one in takers]),
            "given": attention.o_proj.weight,
            "gate_up": torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]),
            "down": mlp.down_proj.weight,
        }
        vectors = {
            "before_attention": layer.input_layernorm.weight,
            "bias": bias,
            "of_queries": norms[0],
            "of_keys": norms[1],
            "before_mlp": layer.post_attention_layernorm.weight,
        }
        parts = {name: laid_out(matrix, shape.lanes) for name, matrix in matrices.items()}
        parts |= {name: aligned(vector.detach().float()) for name, vector in vectors.items()}
        return [parts[name] for name in LAYER]

    def takes(self, head: nn.Linear) -> bool:
        """Whether an output matrix can be multiplied by the same kernels."""
        return head.bias is None and is_exact(head.weight) and head.out_features % self.shape.columns == 0

    def __call__(
        self,
        rows: torch.Tensor,
        counts: Sequence[int],
        starts: Sequence[int],
        masks: Sequence[torch.Tensor],
        keys: Sequence[Sequence[torch.Tensor]],
        values: Sequence[Sequence[torch.Tensor]],
        turning: torch.Tensor,
    ) -> torch.Tensor:
        """The rows of several trees: of each so many, which come into its caches' slots from its start on."""
        shape, count, threads = self.shape, len(rows), torch.get_num_threads()
        residual = rows.to(torch.float32, copy=True).contiguous()
        turning = turning.float().contiguous()
        masks = [mask.to(self.dtype) for mask in masks]
        firsts = itertools.accumulate(counts, initial=0)
        places = zip(firsts, counts, starts, (key[0].shape[2] for key in keys), strict=False)
        seen = [(mask.data_ptr(), mask.stride(2)) for mask in masks]
        trees = _addresses([[*place, *where] for place, where in zip(places, seen, strict=True)])
        layers = zip(zip(*keys, strict=True), zip(*values, strict=True), strict=True)
        caches = _addresses(
            [[kept.data_ptr() for both in zip(key, value, strict=True) for kept in both] for key, value in layers]
        )
        slots = max(start + some for start, some in zip(starts, counts, strict=True))
        score_width = -(-slots // shape.lanes) * shape.lanes
        each = (shape.taken, shape.mixed, 2 * shape.inner, threads * shape.hidden)
        room = [torch.empty(count * width) for width in each] + [torch.empty(threads * ATTEND * score_width)]
        told = [
            count, residual.data_ptr(), len(self._layers), self._layers.ctypes.data, len(trees), trees.ctypes.data,
            caches.ctypes.data, turning.data_ptr(), *(part.data_ptr() for part in room), score_width,
        ]  # fmt: skip
        self.compiled.run(self.compiled.layers, _addresses(told))
        return residual


class NativeHead(nn.Module):
    """An output matrix for few rows of float32; more go the way that they went before."""

    def __init__(self, others: nn.Module, weight: torch.Tensor, layers: NativeLayers) -> None:
        super().__init__()
        self.others, self.most = others, layers.most
        self.weight = weight.detach()
        self._compiled, self._matrix = layers.compiled, laid_out(weight, layers.shape.lanes)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        rows = hidden.reshape(-1, hidden.shape[-1])
        if hidden.dtype is not torch.float32 or not 0 < len(rows) <= self.most:
            return self.others(hidden)
        rows, (height, depth) = rows.contiguous(), self.weight.shape
        logits = torch.empty(*hidden.shape[:-1], height)
        addresses = rows.data_ptr(), self._matrix.data_ptr(), logits.data_ptr()
        self._compiled.run(
            self._compiled.product, _addresses([*addresses, len(rows), depth, height, len(self._matrix)])
        )
        return logits


def _addresses(numbers: Any) -> np.ndarray[Any, Any]:
    return np.array(numbers, dtype=np.int64)
