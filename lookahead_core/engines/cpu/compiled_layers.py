"""CompiledLayers: decoder layers compiled by LLVM for this processor, which compute at most `ROWS` rows in one call.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lookahead_core.engines.cpu.packed_matrix import is_plain

log = logging.getLogger(__name__)
binding: Any = None
if sys.platform == "linux" and platform.machine() == "x86_64":
    try:
        import llvmlite.binding
        import llvmlite.ir

        llvmlite.ir.PointerType()
        binding = llvmlite.binding
    except Exception:  # not installed, cannot be loaded, or a version without opaque pointers
        log.debug("llvmlite cannot be used, so layers are not compiled", exc_info=True)
if binding is not None:
    from lookahead_core.engines.cpu.llvm_kernels import ATTEND, LayerShape
    from lookahead_core.engines.cpu.llvm_layers import llvm_ir_of, row_widths, weight_shapes

ROWS = 64
"""The most rows that compiled layers compute in one call. Larger passes are computed in parts of this many rows, except
in bfloat16 on processors with AMX, where packed matrices are faster: measured in docs/performance-notes.md."""
REGISTERS = (("avx512f", 16, ((6, 2), (14, 1))), ("avx2", 8, ((6, 1),)))
"""Best first: a processor feature, float32 numbers in a register, and (rows, column groups) whose sums fill all."""
TRIED_PASSES = ((1, 20), (4, 0), (6, 64), (7, 250), (14, 31), (32, 9))
"""(rows, earlier slots) of the passes with which a compiled layer is compared with the reference."""
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 2e-2}
"""The largest accepted difference of a layer's residual update from the reference, relative to it, by cache type."""


@dataclass(frozen=True)
class TreeRows:
    """What the rows of a tree need in a pass beside their hidden states: mask, cache, and number of slots in use."""

    start: int
    """The number of slots in use: keys and values of the rows are written from this slot on."""
    mask: torch.Tensor
    """An additive attention mask of shape (1, 1, rows, slots), for `start` + rows slots or more."""
    cache: Sequence[tuple[torch.Tensor, torch.Tensor]]
    """For each layer, the keys and the values of all slots: tensors of shape (1, key heads, capacity, head width)."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.mask.shape[2]

    @property
    def capacity(self) -> int:
        """The number of slots in the cache, used and free."""
        return self.cache[0][0].shape[2]

    def parts(self, most: int) -> Iterator[TreeRows]:
        """Yield `TreeRows` with at most `most` of these rows each, in order; `most` is at least 1. All share the cache.

        A part's slots follow those of the part before, so parts must be computed in this order. A part's mask ends at
        the slot of its last row, so `mask` must hide the slots after a row's own.
        """
        for first in range(0, self.count, most):
            end = min(first + most, self.count)
            yield replace(self, start=self.start + first, mask=self.mask[:, :, first:end, : self.start + end])


LayerFunction = Callable[[torch.Tensor, torch.Tensor, Sequence[TreeRows]], torch.Tensor]
"""A function that computes layers, with the arguments of `CompiledLayers.__call__`."""


def registers() -> tuple[int, tuple[tuple[int, int], ...]] | None:
    """Return this processor's (lanes, blockings); None if it cannot run compiled layers.

    Lanes are the float32 numbers in a vector register; blockings are pairs (rows, column groups) of a matrix product
    whose sums fill the registers. Compiled layers need Linux on x86-64, llvmlite, PyTorch's OpenMP library, FMA, and
    AVX2 or AVX-512.
    """
    if binding is None or _openmp() is None:
        return None
    able = binding.get_host_cpu_features()
    return next(((lanes, tall) for name, lanes, tall in REGISTERS if able.get(name) and able.get("fma")), None)


def multiplies_pairs(lanes: int) -> bool:
    """Whether `FunctionBuilder.dot_pairs` can be used: registers of AVX-512 (`lanes` is 16), and AVX512-BF16.

    On an AMD EPYC it multiplies twice as many numbers in a second as FMA does: measured in docs/performance-notes.md.
    """
    return lanes == REGISTERS[0][1] and bool(binding.get_host_cpu_features().get("avx512bf16"))


@functools.cache
def _openmp() -> Any:
    """Return PyTorch's CPU library as a `ctypes` library, for PyTorch's own OpenMP functions; None if it lacks them.

    A second OpenMP library would compete for the cores.
    """
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        library.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        library.GOMP_parallel.restype = None
    except (OSError, AttributeError):
        return None
    return library


@dataclass(frozen=True)
class CompiledFunctions:
    """The memory addresses of two functions, `layers` and `product` of `llvm_ir_of`, compiled for one shape.

    `held` is an object that keeps their machine code in memory.
    """

    layers: int
    product: int
    held: Any

    def run(self, function: int, arguments: np.ndarray[Any, Any], threads: int) -> None:
        """Run the function at an address, `layers` or `product`, on this many OpenMP threads, and wait for its end.

        `arguments` is an int64 array: the values of the fields of PASS for `layers`, of PRODUCT for `product`. They are
        not checked. Other Python threads can run meanwhile.
        """
        _openmp().GOMP_parallel(function, arguments.ctypes.data, threads, 0)


@functools.lru_cache(maxsize=32)
def functions_for(shape: LayerShape) -> CompiledFunctions:
    """Return the functions compiled for a shape and this processor; those of the 32 last used shapes are kept.

    The shape must be one that `fits`, with what `registers` returns, which must not be None. Raises whatever llvmlite
    raises.
    """
    # Without this check, LLVM aborts the process where memory may not be made executable.
    binding.check_jit_execution()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()  # for `dot_pairs`
    for name in ("omp_get_thread_num", "omp_get_num_threads", "GOMP_barrier"):
        binding.add_symbol(name, ctypes.cast(getattr(_openmp(), name), ctypes.c_void_p).value)
    # LLVM uses 256-bit registers on some AVX-512 processors unless told otherwise.
    long = "-prefer-256-bit" if shape.lanes == REGISTERS[0][1] else "-avx512f"
    features = f"{binding.get_host_cpu_features().flatten()},{long}"
    target, processor = binding.Target.from_default_triple(), binding.get_host_cpu_name()
    machine = target.create_target_machine(cpu=processor, features=features, opt=3)
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


def paired_outputs(weight: torch.Tensor, lanes: int) -> torch.Tensor:
    """Return a copy of a matrix of shape (outputs, inputs), rounded to bfloat16, in the layout for rows of float32.

    The copy is int16, the bits of bfloat16 numbers, of shape (outputs / (2 * lanes), inputs, lanes, 2). Its element
    [g, i, l, h] is the number [(2 * g + h) * lanes + l, i] of the matrix. `outputs` must be a multiple of `2 * lanes`
    (RuntimeError). Its address is a multiple of 64, as that of any memory that PyTorch allocates on the CPU.
    """
    halves: torch.Tensor = weight.detach().bfloat16().view(torch.int16).unflatten(0, (-1, 2, lanes))
    return halves.permute(0, 3, 2, 1).clone(memory_format=torch.contiguous_format)


def paired_inputs(weight: torch.Tensor, lanes: int) -> torch.Tensor:
    """Return a copy like that of `paired_outputs`, in the layout for rows of bfloat16.

    Its shape is (outputs / (2 * lanes), inputs / 2, 2, lanes, 2), and its element [g, i, h, l, p] is the number
    [(2 * g + h) * lanes + l, 2 * i + p] of the matrix. `inputs` must be even (RuntimeError).
    """
    halves: torch.Tensor = (
        weight.detach().bfloat16().view(torch.int16).unflatten(0, (-1, 2, lanes)).unflatten(3, (-1, 2))
    )
    return halves.permute(0, 3, 1, 2, 4).clone(memory_format=torch.contiguous_format)


@torch.inference_mode()
def compile_layers(
    layers: Sequence[Any], reference: Callable[[Any], LayerFunction]
) -> tuple[CompiledLayers | None, str]:
    """Compile decoder layers of the Llama shape; return them and "", or None and the reason why that is not possible.

    `reference` turns one layer into a function that computes it in float32. The first and the last compiled layer must
    agree with it, and the weights of all projections must be `is_exact`. Errors are not raised: they become the reason.
    """
    try:
        reason = next(_refusals(layers, reference), "")
        return (None, reason) if reason else (CompiledLayers(layers, shape_of(layers[0])), "")
    except Exception as error:  # whatever LLVM or a malformed layer raises: the packed matrices do without it
        log.debug("layers are not compiled", exc_info=True)
        return None, f"compiling failed with {type(error).__name__}: {error}"


def _refusals(layers: Sequence[Any], reference: Callable[[Any], LayerFunction]) -> Iterator[str]:
    """Yield reasons why layers cannot be compiled; yield nothing if they can. Only the first reason may be used.

    Later checks assume that the earlier ones have passed, and may raise otherwise. The last ones compile the first and
    the last layer, and compare each with its `reference`, as in `compile_layers`. Errors pass through.
    """
    if registers() is None:
        yield "compiling needs Linux, an x86-64 processor with AVX2 and FMA, and llvmlite"
    for layer in layers:
        attention, mlp = layer.self_attn, layer.mlp
        inputs = attention.q_proj, attention.k_proj, attention.v_proj
        others = attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj
        if len({norm.variance_epsilon for norm in layer.modules() if hasattr(norm, "variance_epsilon")}) > 1:
            yield "its norms differ in epsilon"
        if any(linear.bias is not None for linear in others) or len({linear.bias is None for linear in inputs}) > 1:
            yield "a projection has a bias"
        if not all(is_exact(linear.weight) for linear in (*inputs, *others)):
            yield "its weights do not fit into bfloat16 exactly"
    shape = shape_of(layers[0])
    if any(shape_of(layer) != shape for layer in layers):
        yield "its layers differ in shape"
    if not shape.fits:
        yield "its widths are no multiples of the processor's registers"
    for layer in (layers[0], layers[-1]):
        if not agrees(CompiledLayers([layer], shape), reference(layer)):
            yield "a compiled layer differs from the same layer in float32"


def is_exact(weight: torch.Tensor) -> bool:
    """Whether a matrix is on the CPU, of dtype bfloat16 or float32, and bfloat16 holds all its numbers exactly."""
    known = weight.device.type == "cpu" and weight.dtype in TOLERANCE
    return known and (weight.dtype is torch.bfloat16 or bool((weight.bfloat16() == weight).all()))


def shape_of(layer: Any) -> LayerShape:
    """Return the dimensions of a decoder layer of the Llama shape, and of this processor's registers.

    The layer is not checked. `registers` must not return None (AssertionError).
    """
    attention, width, found = layer.self_attn, int(layer.self_attn.head_dim), registers()
    assert found is not None
    is_bf16 = attention.q_proj.weight.dtype is torch.bfloat16
    return LayerShape(
        lanes=found[0],
        blockings=found[1],
        bf16_cache=is_bf16,
        bf16_rows=is_bf16 and multiplies_pairs(found[0]),
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
    """Decoder layers of one shape, compiled for this processor; a call computes a pass through all of them, in order.

    `compile_layers` makes them, after checks. The weights of `layers` are copied: matrices are rounded to bfloat16,
    other weights become float32. `shape` must be `shape_of` each layer, and `fits`. Raises ValueError if a weight has
    another shape, and whatever llvmlite raises.
    """

    def __init__(self, layers: Sequence[Any], shape: LayerShape) -> None:
        self.shape = shape
        self.dtype = torch.bfloat16 if shape.bf16_cache else torch.float32
        self.functions = functions_for(shape)
        self._weights = [self._weights_of(layer) for layer in layers]
        self._layers = addresses([[part.data_ptr() for part in parts] for parts in self._weights])

    def __len__(self) -> int:
        return len(self._weights)

    def _weights_of(self, layer: Any) -> list[torch.Tensor]:
        """Return copies of a layer's weights for the compiled functions, in the order of `weight_shapes`.

        Matrices are laid out for the type of the rows that they multiply. Other weights are float32, and those that the
        shape lacks are empty. Raises ValueError if a weight does not have the shape that `weight_shapes` states.
        """
        attention, mlp, shape = layer.self_attn, layer.mlp, self.shape
        inputs = attention.q_proj, attention.k_proj, attention.v_proj
        absent = torch.empty(0, device="cpu")
        weights = {
            "input_norm": layer.input_layernorm.weight,
            "qkv": torch.cat([linear.weight for linear in inputs]),
            "bias": torch.cat([linear.bias for linear in inputs]) if shape.has_bias else absent,
            "query_norm": attention.q_norm.weight if shape.has_head_norms else absent,
            "key_norm": attention.k_norm.weight if shape.has_head_norms else absent,
            "o_proj": attention.o_proj.weight,
            "mlp_norm": layer.post_attention_layernorm.weight,
            "gate_up": torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]),
            "down": mlp.down_proj.weight,
        }
        for name, expected in weight_shapes(shape).items():
            if weights[name].shape != expected:
                raise ValueError(f"{name} has the shape {tuple(weights[name].shape)}, and must have {expected}.")
        paired = paired_inputs if shape.bf16_rows else paired_outputs
        return [
            paired(weights[name], shape.lanes) if len(expected) == 2 else weights[name].detach().clone().float()
            for name, expected in weight_shapes(shape).items()
        ]

    def takes(self, head: Any) -> bool:
        """Whether `CompiledHead` can compute `head`, a model's output layer; its number of inputs is not compared.

        True for a plain `nn.Linear` (see `is_plain`) without bias, whose weight `is_exact` and whose number of outputs
        is a multiple of the shape's `group_width`.
        """
        fits = is_plain(head) and head.bias is None and head.out_features % self.shape.group_width == 0
        return bool(fits and is_exact(head.weight))

    def __call__(self, rows: torch.Tensor, rope: torch.Tensor, trees: Sequence[TreeRows]) -> torch.Tensor:
        """Return the hidden states of a pass's rows after all layers, in float32, and write the trees' caches.

        `rows` are the hidden states before them, of shape (rows, hidden), one tree after the other; they are not
        changed. `rope`, of shape (rows, 2 * head width), holds for each row the cosines of its rotary embedding, then
        the sines with the first half negated. Keys and values are written from each tree's `start` on. All tensors must
        be on the CPU. Raises ValueError, before anything is written, if there are no trees, or if shapes or the dtype
        of a cache do not fit.
        """
        shape, count, threads = self.shape, len(rows), torch.get_num_threads()
        counts = [tree.count for tree in trees]
        if rows.shape != (sum(counts), shape.hidden) or rope.shape != (count, 2 * shape.head_width):
            raise ValueError(f"{tuple(rows.shape)} rows and {tuple(rope.shape)} ropes do not fit {counts} rows.")
        for tree in trees:
            self._check(tree)
        residual = rows.to(torch.float32, copy=True).contiguous()
        rope = rope.to(torch.float32).contiguous()
        masks = [self._readable_mask(tree.mask) for tree in trees]
        records = []
        for first, tree, mask in zip(itertools.accumulate(counts, initial=0), trees, masks, strict=False):
            records.append((first, tree.count, tree.start, tree.capacity, mask.shape[3], mask.data_ptr()))
        caches = [states.data_ptr() for layer in range(len(self)) for tree in trees for states in tree.cache[layer]]
        score_width = -(-max(tree.start + tree.count for tree in trees) // shape.lanes) * shape.lanes
        widths = row_widths(shape)
        buffers = [room(count, widths[name]) for name in ("qkv", "attended", "gate_up_out", "gated")]
        buffers += [room(threads * count, widths["normed"]), room(threads * ATTEND, score_width)]
        tables = self._layers, addresses(records), addresses(caches)
        arguments = [count, len(self), len(trees), score_width, *(table.ctypes.data for table in tables)]
        arguments += [tensor.data_ptr() for tensor in (rope, residual, *buffers)]
        self.functions.run(self.functions.layers, addresses(arguments), threads)
        return residual

    def _readable_mask(self, mask: torch.Tensor) -> torch.Tensor:
        """Return a contiguous copy of a mask in the caches' dtype, with memory for one further vector after it.

        The compiled functions read masks in whole vectors, and so beyond the last number.
        """
        memory = torch.zeros(mask.numel() + self.shape.lanes, dtype=self.dtype, device="cpu")
        return memory[: mask.numel()].view(mask.shape).copy_(mask)

    def _check(self, tree: TreeRows) -> None:
        """Raise ValueError if a tree's mask or cache is too small for its rows, or its cache does not fit these layers.

        It must have their number of layers, shape and dtype, and be contiguous. Compiled functions check nothing
        themselves.
        """
        if tree.mask.shape[3] < tree.start + tree.count:
            raise ValueError(f"The mask of {tree.count} rows after {tree.start} slots is {tuple(tree.mask.shape)}.")
        layers, capacity = len(tree.cache), tree.capacity
        if layers != len(self) or tree.start + tree.count > capacity:
            raise ValueError(f"{tree.count} rows after {tree.start} slots do not fit into {layers} × {capacity}.")
        expected = (1, self.shape.key_heads, capacity, self.shape.head_width), self.dtype, True
        # All layers of a cache have one capacity, so the first and the last are enough.
        for states in (*tree.cache[0], *tree.cache[-1]):
            if (states.shape, states.dtype, states.is_contiguous()) != expected:
                raise ValueError(f"The layers of a cache are not as they must be: {expected}.")


@torch.inference_mode()
def agrees(compiled: CompiledLayers, reference: LayerFunction) -> bool:
    """Whether a compiled layer and a float32 reference give nearly the same in all TRIED_PASSES of random numbers.

    Compared is what each adds to the hidden states: the norm of the difference may be at most TOLERANCE times the norm
    of what the reference adds; NaN counts as a difference. `compiled` must hold one layer, which `reference` computes.
    """
    for count, start in TRIED_PASSES:
        rows, rope, trees = random_pass(compiled, [(count, start)])
        ours, theirs = (layers(rows, rope, trees).to(torch.float32) - rows for layers in (compiled, reference))
        if not (ours - theirs).norm() <= TOLERANCE[compiled.dtype] * theirs.norm():
            return False
    return True


@torch.inference_mode()
def random_pass(
    compiled: CompiledLayers, sizes: Sequence[tuple[int, int]]
) -> tuple[torch.Tensor, torch.Tensor, list[TreeRows]]:
    """Return random arguments of a `LayerFunction`: hidden states, rotary embeddings, and a `TreeRows` for each tree.

    `sizes` holds, for each tree, its number of rows and the number of slots in use before them. Its cache has exactly
    these slots and one for each row, and all layers share the cache's tensors. Masks and caches have the dtype of
    `compiled`, the others are float32. Equal arguments give equal numbers.
    """
    shape, generator = compiled.shape, torch.Generator().manual_seed(0)
    randn = functools.partial(torch.randn, generator=generator, dtype=torch.float32, device="cpu")
    trees = []
    for count, start in sizes:
        visible = randn(1, 1, count, start + count) < 1
        visible[..., 0] = True
        mask = torch.zeros_like(visible, dtype=compiled.dtype).masked_fill(~visible, torch.finfo(compiled.dtype).min)
        keys, values = randn(2, 1, shape.key_heads, start + count, shape.head_width).to(compiled.dtype)
        trees.append(TreeRows(start, mask, [(keys, values)] * len(compiled)))
    count = sum(tree.count for tree in trees)
    return randn(count, shape.hidden), randn(count, 2 * shape.head_width), trees


def room(count: int, width: int) -> torch.Tensor:
    """Return an uninitialised float32 CPU tensor of shape (count, width), whatever PyTorch's defaults are."""
    return torch.empty(count, width, dtype=torch.float32, device="cpu")


def addresses(numbers: Any) -> np.ndarray[Any, Any]:
    """Return integers, such as counts and memory addresses, as the int64 array from which compiled functions read them.

    A list of equally long lists gives a 2-D array.
    """
    return np.array(numbers, dtype=np.int64)
