"""CompiledLayers: decoder layers compiled by LLVM for this processor, for passes of at most `ROWS` rows.

llvm_kernels.py and llvm_layers.py define what they compute. This module compiles it, lays out the weights, compares the
result with a float32 reference, and runs passes. In every pass a row has the same bits, whichever other rows are in the
pass and whichever slots the row's ancestors have.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import logging
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lookahead_core.engines.cpu.packed_matrix import is_plain, stacked

binding: Any = None
if sys.platform == "linux" and platform.machine() == "x86_64":
    try:
        import llvmlite.binding
        import llvmlite.ir

        llvmlite.ir.PointerType()
        binding = llvmlite.binding
    except Exception:  # not installed, cannot be loaded, or a version without opaque pointers
        binding = None
if binding is not None:
    from lookahead_core.engines.cpu.llvm_kernels import ATTEND, LayerShape
    from lookahead_core.engines.cpu.llvm_layers import LAYER, llvm_ir_of, weight_sizes

log = logging.getLogger(__name__)
ROWS = 64
"""Passes of up to this many rows use compiled layers. With 64 rows they take 0.7 times as long as packed matrices in
float32 and 1.1 times as long in bfloat16: measured in docs/performance-notes.md."""
REGISTERS = (("avx512f", 16, ((6, 2), (14, 1))), ("avx2", 8, ((6, 1),)))
"""A processor feature, float32 numbers in a register, and (rows, column groups) whose sums fill the registers."""
CACHE_LINE = 64
"""Bytes in a cache line."""
TRIED_PASSES = ((1, 20), (4, 0), (6, 64), (7, 250), (14, 31), (32, 9))
"""(rows, earlier slots) of the passes with which a compiled layer is compared with the reference."""
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 2e-2}
"""The largest accepted difference of a layer's residual update from the reference, relative to it, by cache type."""
LayerFunction = Callable[..., torch.Tensor]
"""A function that computes layers, with the arguments of `CompiledLayers.__call__`."""


def registers() -> tuple[int, tuple[tuple[int, int], ...]] | None:
    """(lanes, blockings) of REGISTERS for this processor; None where layers cannot be compiled."""
    if binding is None or _openmp() is None:
        return None
    able = binding.get_host_cpu_features()
    return next(((lanes, tall) for name, lanes, tall in REGISTERS if able.get(name) and able.get("fma")), None)


@functools.cache
def _openmp() -> Any:
    """PyTorch's own OpenMP library, or None: a second OpenMP library would compete for the cores."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        library.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        library.GOMP_parallel.restype = None
    except (OSError, AttributeError):
        return None
    return library


@dataclass(frozen=True)
class CompiledFunctions:
    """Addresses of the compiled functions for a shape; `held` keeps their memory alive."""

    layers: int
    product: int
    held: Any

    def run(self, function: int, arguments: np.ndarray[Any, Any], threads: int) -> None:
        """Run a function on this many OpenMP threads, without holding the GIL."""
        _openmp().GOMP_parallel(function, arguments.ctypes.data, threads, 0)


@functools.lru_cache(maxsize=32)
def functions_for(shape: LayerShape) -> CompiledFunctions:
    """The functions for a shape, compiled for this processor. Raises whatever llvmlite raises."""
    # Without this check, LLVM aborts the process where memory may not be made executable.
    binding.check_jit_execution()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for name in ("omp_get_thread_num", "omp_get_num_threads", "GOMP_barrier"):
        binding.add_symbol(name, ctypes.cast(getattr(_openmp(), name), ctypes.c_void_p).value)
    # LLVM uses 256-bit registers on some AVX-512 processors unless told otherwise.
    long = "-prefer-256-bit" if shape.lanes == REGISTERS[0][1] else "-avx512f"
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=binding.get_host_cpu_name(), features=f"{binding.get_host_cpu_features().flatten()},{long}", opt=3
    )
    module = binding.parse_assembly(llvm_ir_of(shape))
    module.verify()
    tuning = binding.create_pipeline_tuning_options(speed_level=3)
    # The kernels are vectorised already; unrolled loops would need more registers than there are.
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    layers, product = (engine.get_function_address(name) for name in ("layers", "product"))
    return CompiledFunctions(layers, product, held=engine)


def paired(weight: torch.Tensor, lanes: int) -> torch.Tensor:
    """A matrix in the kernels' layout: groups of 2 * lanes outputs; in each int32 the bfloat16 of two outputs."""
    height, depth = weight.shape
    halves = weight.detach().bfloat16().view(torch.int16).view(height // (2 * lanes), 2, lanes, depth)
    return aligned(halves.permute(0, 3, 2, 1))


def aligned(numbers: torch.Tensor) -> torch.Tensor:
    """A copy that begins at a cache line."""
    spare = CACHE_LINE // numbers.element_size()
    room = torch.empty(numbers.numel() + spare, dtype=numbers.dtype, device="cpu")
    first = -room.data_ptr() % CACHE_LINE // numbers.element_size()
    return room[first : first + numbers.numel()].view(numbers.shape).copy_(numbers)


@torch.inference_mode()
def compile_layers(
    layers: Sequence[Any], reference: Callable[[Any], LayerFunction]
) -> tuple[CompiledLayers | None, str]:
    """Decoder layers of the Llama shape, compiled; or None, and why they cannot be.

    `reference` makes of one layer a function that computes it in float32. The first and the last layer are compared
    with it.
    """
    found = registers()
    if found is None:
        return None, "compiling needs Linux, an x86-64 processor with AVX2 and FMA, and llvmlite"
    try:
        reason = next(filter(None, map(_why_unknown, layers)), "")
        shapes = dict.fromkeys(_shape_of(layer, *found) for layer in layers)
        if not reason and len(shapes) > 1:
            reason = "its layers differ in shape"
        (shape, *_) = shapes
        if not reason and not shape.fits:
            reason = "its widths are no multiples of the processor's registers"
        if not reason and not all(
            agrees(CompiledLayers([layer], shape), reference(layer)) for layer in (layers[0], layers[-1])
        ):
            reason = "a compiled layer differs from the same layer in float32"
        return (None, reason) if reason else (CompiledLayers(layers, shape), "")
    except Exception as error:  # whatever LLVM or a malformed layer raises: the packed matrices do without it
        log.debug("layers are not compiled", exc_info=True)
        return None, f"compiling failed with {type(error).__name__}: {error}"


def _why_unknown(layer: Any) -> str:
    """Why the kernels cannot compute a layer with the weights it has; an empty string if they can."""
    attention, mlp = layer.self_attn, layer.mlp
    bare = (attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj)
    every = (attention.q_proj, attention.k_proj, attention.v_proj, *bare)
    norms = [layer.input_layernorm, layer.post_attention_layernorm]
    norms += [getattr(attention, name) for name in ("q_norm", "k_norm") if hasattr(attention, name)]
    if len({norm.variance_epsilon for norm in norms}) > 1:
        return "its norms differ in epsilon"
    if not all(one.bias is None for one in bare):
        return "a projection has a bias"
    return "" if all(is_exact(one.weight) for one in every) else "its weights do not fit into bfloat16 exactly"


def is_exact(weight: torch.Tensor) -> bool:
    """Whether bfloat16 holds every number of a float32 or bfloat16 matrix exactly."""
    if weight.device.type != "cpu" or weight.dtype not in TOLERANCE:
        return False
    return weight.dtype is torch.bfloat16 or bool((weight.detach().bfloat16() == weight.detach()).all())


def _shape_of(layer: Any, lanes: int, blockings: tuple[tuple[int, int], ...]) -> LayerShape:
    attention = layer.self_attn
    width = int(attention.head_dim)
    return LayerShape(
        lanes=lanes,
        blockings=blockings,
        bf16_cache=attention.q_proj.weight.dtype is torch.bfloat16,
        hidden=attention.q_proj.in_features,
        intermediate=layer.mlp.gate_proj.out_features,
        heads=attention.q_proj.out_features // width,
        key_heads=attention.k_proj.out_features // width,
        head_width=width,
        epsilon=float(layer.input_layernorm.variance_epsilon),
        scaling=float(attention.scaling),
        has_bias=attention.q_proj.bias is not None,
        has_head_norms=hasattr(attention, "q_norm"),
    )


class CompiledLayers:
    """Decoder layers of one shape, computed one after the other in one call."""

    def __init__(self, layers: Sequence[Any], shape: LayerShape) -> None:
        self.shape = shape
        self.dtype = torch.bfloat16 if shape.bf16_cache else torch.float32
        self.functions = functions_for(shape)
        self._weights = [self._weights_of(layer) for layer in layers]
        self._layers = addresses([[part.data_ptr() for part in parts] for parts in self._weights])

    def __len__(self) -> int:
        return len(self._weights)

    def _weights_of(self, layer: Any) -> list[torch.Tensor]:
        """A layer's weights in the kernels' layout, in the order of LAYER."""
        attention, mlp, shape = layer.self_attn, layer.mlp, self.shape
        qkv, bias = stacked([attention.q_proj, attention.k_proj, attention.v_proj])
        gate_up, _ = stacked([mlp.gate_proj, mlp.up_proj])
        nothing = torch.empty(0, device="cpu")
        matrices = {
            "qkv": qkv,
            "o_proj": attention.o_proj.weight,
            "gate_up": gate_up,
            "down": mlp.down_proj.weight,
        }
        vectors = {
            "input_norm": layer.input_layernorm.weight,
            "bias": nothing if bias is None else bias,
            "query_norm": attention.q_norm.weight if shape.has_head_norms else nothing,
            "key_norm": attention.k_norm.weight if shape.has_head_norms else nothing,
            "mlp_norm": layer.post_attention_layernorm.weight,
        }
        due = weight_sizes(shape)
        for name, part in (matrices | vectors).items():
            if part.numel() != due[name]:
                raise ValueError(f"{name} holds {part.numel()} numbers, and must hold {due[name]}.")
        parts = {name: paired(matrix, shape.lanes) for name, matrix in matrices.items()}
        parts |= {name: aligned(vector.detach().float()) for name, vector in vectors.items()}
        return [parts[name] for name in LAYER]

    def takes(self, head: nn.Module) -> bool:
        """Whether `CompiledHead` can compute an output matrix."""
        return (
            is_plain(head)
            and head.bias is None
            and is_exact(head.weight)
            and head.out_features % self.shape.group_width == 0
        )

    def __call__(
        self,
        rows: torch.Tensor,
        counts: Sequence[int],
        starts: Sequence[int],
        masks: Sequence[torch.Tensor],
        keys: Sequence[Sequence[torch.Tensor]],
        values: Sequence[Sequence[torch.Tensor]],
        rope: torch.Tensor,
    ) -> torch.Tensor:
        """The hidden states of a pass's rows after all layers, in float32.

        `counts` are the rows of each tree. `starts` are its first free slots: keys and values of its rows are written
        there, into `keys[tree][layer]` and `values[tree][layer]` of shape (1, key heads, capacity, width). `masks` are
        additive, of shape (1, 1, rows, slots) for each tree; `rope` is what `rope_of` gives for each row.
        """
        shape, count, threads = self.shape, len(rows), torch.get_num_threads()
        residual = rows.to(torch.float32, copy=True).contiguous()
        rope = rope.to(torch.float32).contiguous()
        masks = [mask.to(self.dtype).contiguous() for mask in masks]
        if residual.shape != (sum(counts), shape.hidden) or rope.shape != (count, 2 * shape.head_width):
            raise ValueError(f"{tuple(rows.shape)} rows and {tuple(rope.shape)} ropes do not fit {list(counts)} rows.")
        self._check(counts, starts, masks, keys, values)
        firsts = itertools.accumulate(counts, initial=0)
        places = zip(firsts, counts, starts, (key[0].shape[2] for key in keys), strict=False)
        seen = [(mask.data_ptr(), mask.stride(2)) for mask in masks]
        trees = addresses([[*place, *where] for place, where in zip(places, seen, strict=True)])
        by_layer = zip(zip(*keys, strict=True), zip(*values, strict=True), strict=True)
        caches = addresses(
            [[kept.data_ptr() for both in zip(key, value, strict=True) for kept in both] for key, value in by_layer]
        )
        slots = max(start + some for start, some in zip(starts, counts, strict=True))
        score_width = -(-slots // shape.lanes) * shape.lanes
        each = (shape.qkv, shape.attention_width, 2 * shape.intermediate, threads * shape.hidden)
        buffers = [room(count, width) for width in each] + [room(threads * ATTEND, score_width)]
        arguments = [
            count, residual.data_ptr(), len(self), self._layers.ctypes.data, len(trees), trees.ctypes.data,
            caches.ctypes.data, rope.data_ptr(), *(part.data_ptr() for part in buffers), score_width,
        ]  # fmt: skip
        self.functions.run(self.functions.layers, addresses(arguments), threads)
        return residual

    def _check(
        self, counts: Sequence[int], starts: Sequence[int], masks: Sequence[torch.Tensor],
        keys: Sequence[Sequence[torch.Tensor]], values: Sequence[Sequence[torch.Tensor]],
    ) -> None:  # fmt: skip
        """Raise ValueError for what does not fit: compiled functions check no bounds."""
        shape = self.shape
        for count, start, mask in zip(counts, starts, masks, strict=True):
            if mask.shape[2] != count or mask.shape[3] < start + count:
                raise ValueError(f"The mask of {count} rows after {start} slots is {tuple(mask.shape)}.")
        for key, value, count, start in zip(keys, values, counts, starts, strict=True):
            capacity = key[0].shape[2]
            kind = (1, shape.key_heads, capacity, shape.head_width), self.dtype, True
            if len(key) != len(self) or len(value) != len(self) or start + count > capacity:
                raise ValueError(f"{count} rows after {start} slots do not fit into {len(key)} × {capacity}.")
            # All layers of a cache have one capacity, so the first and the last are enough.
            if any(
                (one.shape, one.dtype, one.is_contiguous()) != kind for one in (key[0], key[-1], value[0], value[-1])
            ):
                raise ValueError(f"The layers of a cache are not as they must be: {kind}.")


@torch.inference_mode()
def agrees(compiled: CompiledLayers, reference: LayerFunction) -> bool:
    """Whether compiled layers add to the residual what the reference adds, within TOLERANCE."""
    for count, start in TRIED_PASSES:
        given = _trial(compiled, [count], [start])
        ours, theirs = (layers(*given).to(torch.float32) - given[0] for layers in (compiled, reference))
        if not (ours - theirs).norm() <= TOLERANCE[compiled.dtype] * theirs.norm():
            return False
    return True


@torch.inference_mode()
def _trial(compiled: CompiledLayers, counts: list[int], starts: list[int]) -> tuple[Any, ...]:
    """Random arguments of a `LayerFunction`, by a fixed seed: `counts` rows after `starts` slots, for each tree."""
    dice, shape = torch.Generator().manual_seed(0), compiled.shape
    drawn = functools.partial(torch.randn, generator=dice, dtype=torch.float32, device="cpu")
    masks = []
    for count, start in zip(counts, starts, strict=True):
        sees = drawn(1, 1, count, start + count) < 1
        sees[..., 0] = True
        mask = torch.zeros(sees.shape, dtype=compiled.dtype, device="cpu")
        masks.append(mask.masked_fill_(~sees, torch.finfo(compiled.dtype).min))
    keys, values = (
        [
            [drawn(1, shape.key_heads, start + count, shape.head_width).to(compiled.dtype)] * len(compiled)
            for count, start in zip(counts, starts, strict=True)
        ]
        for _ in range(2)
    )
    rows, rope = (drawn(sum(counts), width) for width in (shape.hidden, 2 * shape.head_width))
    return rows, counts, starts, masks, keys, values, rope


def room(count: int, width: int) -> torch.Tensor:
    """An uninitialised float32 tensor on the CPU, whatever PyTorch's default dtype and device are."""
    return torch.empty(count, width, dtype=torch.float32, device="cpu")


def addresses(numbers: Any) -> np.ndarray[Any, Any]:
    """Counts and addresses as the int64 array that compiled functions take."""
    return np.array(numbers, dtype=np.int64)
