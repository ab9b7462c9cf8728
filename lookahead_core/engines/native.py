"""Layers that are compiled for the processor at hand, where that can be done and they come out faster.

What they compute is written in kernels.py and layers.py; here it is compiled, weights are laid out for it, it is seen
whether it comes to the same and is faster, and passes are handed over.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import operator
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lookahead_core.engines.packed import stacked
from lookahead_core.engines.ways import fastest_turns

binding: Any = None
if sys.platform == "linux" and platform.machine() == "x86_64":
    try:
        from llvmlite import binding, ir

        ir.PointerType()
    except Exception:  # none there, one that cannot be loaded, or one from before pointers to anything
        binding = None
if binding is not None:
    from lookahead_core.engines.kernels import ATTEND, Shape
    from lookahead_core.engines.layers import LAYER, sizes, written

REGISTERS = (("avx512f", 16, ((6, 2), (14, 1))), ("avx2", 8, ((6, 1),)))
"""By what a processor can do, how many numbers its registers hold, and with how many groups of columns the sums of at
most how many rows fit into them."""
LINE = 64
"""Bytes that come from memory at a time."""
TRIED_ROWS = (32, 24, 16, 12, 8, 4, 2, 1)
"""Numbers of rows with which it is tried whether compiled layers are faster."""
TRIED_SLOTS = 256
TRIED_TREES = (((5, 37), (8, 90)), ((1, 20),), ((4, 0),), ((6, 64),), ((7, 250),), ((14, 31),), ((32, 9),))
"""Rows of trees, and the slots that they come after, with which it is tried whether two ways come to the same."""
APART = {torch.float32: 1e-3, torch.bfloat16: 2e-2}
"""How far what two ways add to rows in one layer may be apart, as a share of it, where the cache is of such numbers."""
Way = Callable[..., torch.Tensor]
"""Layers for some rows of some trees, as `NativeLayers` are called."""


def registers() -> tuple[int, tuple[tuple[int, int], ...]] | None:
    """What there is of registers; None where nothing can be compiled, or what comes of it was never tried."""
    if binding is None or _openmp() is None:
        return None
    able = binding.get_host_cpu_features()
    return next(((lanes, tall) for name, lanes, tall in REGISTERS if able.get(name) and able.get("fma")), None)


@functools.cache
def _openmp() -> Any:
    """The library that PyTorch has its threads from, by way of PyTorch's own: another's would be in their way."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        library.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        library.GOMP_parallel.restype = None
    except (OSError, AttributeError):
        return None
    return library


@dataclass(frozen=True)
class Functions:
    """Where the functions for a shape are; what they lie in lives as long as this."""

    layers: int
    product: int
    held: Any

    def run(self, function: int, told: np.ndarray[Any, Any], threads: int) -> None:
        """Have so many threads run a function. Python goes on elsewhere meanwhile."""
        _openmp().GOMP_parallel(function, told.ctypes.data, threads, 0)


@functools.lru_cache(maxsize=32)
def functions_for(shape: Shape) -> Functions:
    """What was written for this shape, compiled for this processor; an error where that cannot be done."""
    # Where memory that can be run is refused, LLVM goes on and dies.
    binding.check_jit_execution()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for name in ("omp_get_thread_num", "omp_get_num_threads", "GOMP_barrier"):
        binding.add_symbol(name, ctypes.cast(getattr(_openmp(), name), ctypes.c_void_p).value)
    # Some processors are held to half of their registers unless asked. Short ones are those of processors without long.
    long = "-prefer-256-bit" if shape.lanes == REGISTERS[0][1] else "-avx512f"
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=binding.get_host_cpu_name(), features=f"{binding.get_host_cpu_features().flatten()},{long}", opt=3
    )
    module = binding.parse_assembly(written(shape))
    module.verify()
    tuning = binding.create_pipeline_tuning_options(speed_level=3)
    # Vectors are written as such; loops that are unrolled need more registers than there are.
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return Functions(*(engine.get_function_address(name) for name in ("layers", "product")), held=engine)


def paired(weight: torch.Tensor, lanes: int) -> torch.Tensor:
    """A matrix as the kernels read it: groups of columns, step by step, two columns in the halves of each number."""
    height, depth = weight.shape
    halves = weight.detach().bfloat16().view(torch.int16).view(height // (2 * lanes), 2, lanes, depth)
    return aligned(halves.permute(0, 3, 2, 1))


def aligned(numbers: torch.Tensor) -> torch.Tensor:
    """A copy, at the beginning of a line of memory."""
    spare = LINE // numbers.element_size()
    room = torch.empty(numbers.numel() + spare, dtype=numbers.dtype, device="cpu")
    first = -room.data_ptr() % LINE // numbers.element_size()
    return room[first : first + numbers.numel()].view(numbers.shape).copy_(numbers)


@torch.inference_mode()
def native_layers(layers: Sequence[Any], others: Way, exactly: Callable[[Any], Way]) -> NativeLayers | None:
    """Layers of the common shape for few rows; None where they cannot be had, would lose something, or are no faster.

    `others` is how they are gone through without; `exactly` makes of one layer what computes it in float32.
    """
    try:
        found = registers()
        if found is None or not all(map(_is_known, layers)):
            return None
        shape, *different = dict.fromkeys(_shape_of(layer, *found) for layer in layers)
        if different or not shape.fits:
            return None
        for layer in (layers[0], layers[-1]):
            if not comes_to_the_same(NativeLayers([layer], shape), exactly(layer)):
                return None
        native = NativeLayers(layers, shape)
        native.most = most_rows(native, others)
    except Exception:  # whatever cannot be done here: layers go their usual way, which tells what is wrong with them
        return None
    return native if native.most else None


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
    if weight.device.type != "cpu" or weight.dtype not in APART:
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
        self.dtype = torch.bfloat16 if shape.narrow else torch.float32
        self.most = 0
        """For how many rows at most they are used."""
        self.functions = functions_for(shape)
        self._weights = [self._laid_out(layer) for layer in layers]
        self._layers = _addresses([[part.data_ptr() for part in parts] for parts in self._weights])

    def __len__(self) -> int:
        return len(self._weights)

    def _laid_out(self, layer: Any) -> list[torch.Tensor]:
        """A layer's weights, in the order of LAYER."""
        attention, mlp, shape = layer.self_attn, layer.mlp, self.shape
        taken, bias = stacked([attention.q_proj, attention.k_proj, attention.v_proj])
        gate_up, _ = stacked([mlp.gate_proj, mlp.up_proj])
        nothing = torch.empty(0, device="cpu")
        matrices = {
            "taken": taken,
            "given": attention.o_proj.weight,
            "gate_up": gate_up,
            "down": mlp.down_proj.weight,
        }
        vectors = {
            "before_attention": layer.input_layernorm.weight,
            "bias": nothing if bias is None else bias,
            "of_queries": attention.q_norm.weight if shape.norms_heads else nothing,
            "of_keys": attention.k_norm.weight if shape.norms_heads else nothing,
            "before_mlp": layer.post_attention_layernorm.weight,
        }
        due = sizes(shape)
        for name, part in (matrices | vectors).items():
            if part.numel() != due[name]:
                raise ValueError(f"{name} holds {part.numel()} numbers, and must hold {due[name]}.")
        parts = {name: paired(matrix, shape.lanes) for name, matrix in matrices.items()}
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
        turning = turning.to(torch.float32).contiguous()
        masks = [mask.to(self.dtype).contiguous() for mask in masks]
        if residual.shape != (sum(counts), shape.hidden) or turning.shape != (count, 2 * shape.width):
            raise ValueError(
                f"{tuple(rows.shape)} rows and {tuple(turning.shape)} turns do not fit {list(counts)} rows."
            )
        self._check(counts, starts, masks, keys, values)
        firsts = itertools.accumulate(counts, initial=0)
        places = zip(firsts, counts, starts, (key[0].shape[2] for key in keys), strict=False)
        seen = [(mask.data_ptr(), mask.stride(2)) for mask in masks]
        trees = _addresses([[*place, *where] for place, where in zip(places, seen, strict=True)])
        by_layer = zip(zip(*keys, strict=True), zip(*values, strict=True), strict=True)
        caches = _addresses(
            [[kept.data_ptr() for both in zip(key, value, strict=True) for kept in both] for key, value in by_layer]
        )
        slots = max(start + some for start, some in zip(starts, counts, strict=True))
        score_width = -(-slots // shape.lanes) * shape.lanes
        each = (shape.taken, shape.mixed, 2 * shape.inner, threads * shape.hidden)
        room = [_room(count, width) for width in each] + [_room(threads * ATTEND, score_width)]
        told = [
            count, residual.data_ptr(), len(self), self._layers.ctypes.data, len(trees), trees.ctypes.data,
            caches.ctypes.data, turning.data_ptr(), *(part.data_ptr() for part in room), score_width,
        ]  # fmt: skip
        self.functions.run(self.functions.layers, _addresses(told), threads)
        return residual

    def _check(
        self, counts: Sequence[int], starts: Sequence[int], masks: Sequence[torch.Tensor],
        keys: Sequence[Sequence[torch.Tensor]], values: Sequence[Sequence[torch.Tensor]],
    ) -> None:  # fmt: skip
        """Compiled functions read and write where they are told to: what they are told must be so."""
        shape = self.shape
        for count, start, mask in zip(counts, starts, masks, strict=True):
            if mask.shape[2] != count or mask.shape[3] < start + count:
                raise ValueError(f"The mask of {count} rows after {start} slots is {tuple(mask.shape)}.")
        for key, value, count, start in zip(keys, values, counts, starts, strict=True):
            capacity = key[0].shape[2]
            kind = (1, shape.key_heads, capacity, shape.width), self.dtype, True
            if len(key) != len(self) or len(value) != len(self) or start + count > capacity:
                raise ValueError(f"{count} rows after {start} slots do not fit into {len(key)} × {capacity}.")
            # All layers of a cache are made and moved together.
            if any(
                (one.shape, one.dtype, one.is_contiguous()) != kind for one in (key[0], key[-1], value[0], value[-1])
            ):
                raise ValueError(f"The layers of a cache are not as they must be: {kind}.")


@torch.inference_mode()
def comes_to_the_same(native: NativeLayers, others: Way) -> bool:
    """Whether two ways make the same of rows of some trees, which see this and that."""
    for trees in TRIED_TREES:
        given = _trial(native, [count for count, _ in trees], [start for _, start in trees])
        ours, theirs = (way(*given).to(torch.float32) - given[0] for way in (native, others))
        if not (ours - theirs).norm() <= APART[native.dtype] * theirs.norm():
            return False
    return True


@torch.inference_mode()
def most_rows(native: NativeLayers, others: Way) -> int:
    """Up to how many rows compiled layers are faster; 0 if never."""
    for count in TRIED_ROWS:
        given = _trial(native, [count], [TRIED_SLOTS - count])
        if operator.lt(*fastest_turns([functools.partial(way, *given) for way in (native, others)])):
            return count
    return 0


@torch.inference_mode()
def _trial(native: NativeLayers, counts: list[int], starts: list[int]) -> tuple[Any, ...]:
    """What layers are given for some rows of some trees, drawn by dice that are always the same."""
    dice, shape = torch.Generator().manual_seed(0), native.shape
    drawn = functools.partial(torch.randn, generator=dice, dtype=torch.float32, device="cpu")
    masks = []
    for count, start in zip(counts, starts, strict=True):
        sees = drawn(1, 1, count, start + count) < 1
        sees[..., 0] = True
        masks.append(
            torch.zeros(sees.shape, dtype=native.dtype, device="cpu").masked_fill_(~sees, torch.finfo(native.dtype).min)
        )
    keys, values = (
        [
            [drawn(1, shape.key_heads, start + count, shape.width).to(native.dtype)] * len(native)
            for count, start in zip(counts, starts, strict=True)
        ]
        for _ in range(2)
    )
    rows, turning = (drawn(sum(counts), width) for width in (shape.hidden, 2 * shape.width))
    return rows, counts, starts, masks, keys, values, turning


class NativeHead(nn.Module):
    """An output matrix for few rows of float32; more go the way that they went before."""

    def __init__(self, others: nn.Module, weight: torch.Tensor, layers: NativeLayers) -> None:
        super().__init__()
        self.others, self.layers, self.weight = others, layers, weight.detach()
        self._matrix = paired(weight, layers.shape.lanes)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        rows = hidden.reshape(-1, hidden.shape[-1])
        if hidden.dtype is not torch.float32 or not 0 < len(rows) <= self.layers.most:
            return self.others(hidden)
        rows, (height, depth), functions = rows.contiguous(), self.weight.shape, self.layers.functions
        if rows.shape[1] != depth:
            raise ValueError(f"The output matrix takes rows of {depth} numbers, and was given {rows.shape[1]}.")
        logits = _room(len(rows), height)
        addresses = rows.data_ptr(), self._matrix.data_ptr(), logits.data_ptr()
        told = _addresses([*addresses, len(rows), depth, height, len(self._matrix)])
        functions.run(functions.product, told, torch.get_num_threads())
        return logits.view(*hidden.shape[:-1], height)


def _room(count: int, width: int) -> torch.Tensor:
    """So many rows of float32, whatever PyTorch would make unasked."""
    return torch.empty(count, width, dtype=torch.float32, device="cpu")


def _addresses(numbers: Any) -> np.ndarray[Any, Any]:
    return np.array(numbers, dtype=np.int64)
