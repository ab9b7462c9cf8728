"""LLVM IR of all decoder layers as one function, which the threads of an OpenMP team run together.

A pass of few rows is bound by reading the model's weights from memory once. Separate library calls for products, norms
and activations take about twice that time. Here all layers are one call: threads split the columns of each product, and
a barrier separates steps of which one reads what another thread has written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lookahead_core.engines.cpu.llvm_builder import F32, I32, I64, PTR, VOID, FunctionBuilder, as_i64, constant
from lookahead_core.engines.cpu.llvm_kernels import ATTEND, KernelBuilder, LayerShape

COUNTS = ("rows", "layer_count", "tree_count", "score_width")
ADDRESSES = (
    "layers",
    "trees",
    "caches",
    "rope",
    "residual",
    "qkv",
    "attended",
    "gate_up_out",
    "gated",
    "normed",
    "scores",
)
"""The arguments of a pass after its counts. From `qkv` on, buffers: queries, keys and values; attention output; gate
and up projections; what these give, silu(gate) * up; and, for each thread, normed rows and attention scores."""
PASS = dict.fromkeys(COUNTS, I64) | dict.fromkeys(ADDRESSES, PTR)
TREE = dict.fromkeys(("first", "rows", "start", "capacity", "mask_width"), I64) | {"mask": PTR}
"""The record of each tree: its first row and row count, first free slot and capacity in slots, its mask's columns and
address."""
CACHE = {"keys": PTR, "values": PTR}
"""The record of each layer and tree: the addresses of the keys and values of all slots."""
PRODUCT = dict.fromkeys(("x", "weights", "y"), PTR) | dict.fromkeys(("rows", "depth", "width", "groups"), I64)
"""The arguments of `product`: the addresses of rows, matrix and result; row count, widths and column groups."""


def llvm_ir_of(shape: LayerShape) -> str:
    """Return the text of an LLVM IR module for layers of a shape, with the external functions `layers` and `product`.

    `layers` computes all decoder layers of a pass (arguments: PASS), `product` one matmul (arguments: PRODUCT). The
    shape must be one that `fits`.
    """
    kernels = KernelBuilder(shape)
    _write_product(kernels)
    LayersBuilder(kernels).write()
    return str(kernels.module)


def weight_shapes(shape: LayerShape) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of a layer by name, in the order in which compiled functions take addresses.

    Matrices have the shape (outputs, inputs), before they are laid out for the kernels. Weights that the shape lacks
    have the shape (0,).
    """
    return {
        "input_norm": (shape.hidden,),
        "qkv": (shape.qkv, shape.hidden),
        "bias": (shape.qkv * shape.has_bias,),
        "query_norm": (shape.head_width * shape.has_head_norms,),
        "key_norm": (shape.head_width * shape.has_head_norms,),
        "o_proj": (shape.hidden, shape.attention_width),
        "mlp_norm": (shape.hidden,),
        "gate_up": (2 * shape.intermediate, shape.hidden),
        "down": (shape.hidden, shape.intermediate),
    }


def row_widths(shape: LayerShape) -> dict[str, int]:
    """Return how many float32 numbers a row of each buffer has room for, by the buffer's name, without `scores`.

    With `bf16_rows`, rows of "attended", "gated" and "normed" are bfloat16 in the first half of this room.
    """
    return {
        "qkv": shape.qkv,
        "attended": shape.attention_width,
        "gate_up_out": 2 * shape.intermediate,
        "gated": shape.intermediate,
        "normed": shape.hidden,
        "residual": shape.hidden,
    }


class ThreadTeam:
    """Emits, into the function of `code`, how the threads of an OpenMP team that all run it divide its work.

    `thread` and `threads` are IR values (i64): the running thread's number, from 0, and the number of threads.
    """

    def __init__(self, code: FunctionBuilder) -> None:
        names = ("omp_get_thread_num", "omp_get_num_threads")
        self.code = code
        self.thread, self.threads = (code.at.zext(code.at.call(code.declare(name, I32, []), []), I64) for name in names)
        self._turn = code.variable(I64(0))

    def split(self, count: Any) -> tuple[Any, Any]:
        """Emit this thread's share of `count` items; return its first and one past its last, as IR values (i64).

        `count` is an int or an IR value (i64). A share may be empty.
        """
        at = self.code.at
        first, end = (at.mul(as_i64(count), thread) for thread in (self.thread, at.add(self.thread, I64(1))))
        return at.udiv(first, self.threads), at.udiv(end, self.threads)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Context manager: the code emitted in its body runs on one thread, the next one each time, round robin.

        All uses in a function share one sequence of turns. All threads must reach each of them equally often.
        """
        at = self.code.at
        thread = self._turn.get()
        following = at.add(thread, I64(1))
        self._turn.set(at.select(at.icmp_signed("==", following, self.threads), I64(0), following))
        with at.if_then(at.icmp_signed("==", thread, self.thread)):
            yield

    def barrier(self) -> None:
        """Emit a barrier: each thread waits there until all have arrived."""
        self.code.at.call(self.code.declare("GOMP_barrier", VOID, []), [])


def _write_product(kernels: KernelBuilder) -> None:
    """Emit the function `product` into the kernels' module: one matmul, whose column groups all threads share."""
    code = FunctionBuilder(kernels.module, "product", [PTR])
    x, weights, y, rows, depth, width, groups = code.load_record(code.arguments[0], PRODUCT).values()
    code.at.call(kernels.matmul, [x, depth, rows, weights, depth, y, width, *ThreadTeam(code).split(groups), I64(0)])
    code.end()


class LayersBuilder:
    """Adds the function `layers` to the kernels' module; `write`, to be called once, emits its body.

    Each thread of an OpenMP team runs it. Its argument is the address of a record with the fields of PASS.
    """

    def __init__(self, kernels: KernelBuilder) -> None:
        self.kernels, self.shape = kernels, kernels.shape
        self.row_widths, self.weight_shapes = row_widths(self.shape), weight_shapes(self.shape)
        code = self.code = FunctionBuilder(kernels.module, "layers", [PTR])
        self.team = ThreadTeam(code)
        self.arguments = code.load_record(code.arguments[0], PASS)
        for name, count, width in (("normed", "rows", self.shape.hidden), ("scores", "score_width", ATTEND)):
            first = code.at.mul(self.team.thread, code.at.mul(self.arguments[count], I64(width)))
            self.arguments[name] = code.address(self.arguments[name], first, F32)
        self.layer: dict[str, Any] = {}
        """Addresses of the current layer's weights, and of its part of the caches."""

    def write(self) -> None:
        """Emit all of the function `layers`: a loop over the layers, with barriers between their steps, and the end."""
        code, at, team, arguments = self.code, self.code.at, self.team, self.arguments
        with code.loop(0, arguments["layer_count"]) as layer:
            self.layer = code.load_record(arguments["layers"], dict.fromkeys(self.weight_shapes, PTR), layer)
            caches = at.mul(layer, at.mul(arguments["tree_count"], I64(len(CACHE))))
            self.layer["caches"] = code.address(arguments["caches"], caches, PTR)
            self._rms_norm("input_norm")
            self._matmul("normed", "qkv", "qkv")
            team.barrier()
            self._write_cache()
            team.barrier()
            self._attend()
            team.barrier()
            self._matmul("attended", "o_proj", "residual")
            team.barrier()
            self._rms_norm("mlp_norm")
            # A thread computes the same columns of both halves, so that the gate needs no barrier before it.
            self._matmul("normed", "gate_up", "gate_up_out", part=0, parts=2)
            self._matmul("normed", "gate_up", "gate_up_out", part=1, parts=2)
            groups = team.split(self.shape.intermediate // self.shape.group_width)
            columns = (at.mul(group, I64(self.shape.group_width)) for group in groups)
            buffers = arguments["gate_up_out"], arguments["gated"]
            at.call(self.kernels.silu_gate, [*buffers, arguments["rows"], *columns])
            team.barrier()
            self._matmul("gated", "down", "residual")
            team.barrier()
        code.end()

    def _rms_norm(self, weight: str) -> None:
        """Emit an RMSNorm with the weight of this name, from the buffer `residual` to this thread's `normed`.

        Each thread normalises all rows: cheaper than a barrier.
        """
        residual, normed, rows = (self.arguments[name] for name in ("residual", "normed", "rows"))
        self.code.at.call(self.kernels.rms_norm, [residual, self.layer[weight], normed, rows])

    def _matmul(self, rows: str, weight: str, out: str, part: int = 0, parts: int = 1) -> None:
        """Emit the product of the buffer `rows` and a weight matrix into the buffer `out`, all three by their names.

        This thread computes its share of the columns, or of number `part` of `parts` equal ranges of them. The product
        is added to the buffer `residual`; other buffers are overwritten.
        """
        at, (columns, depth) = self.code.at, self.weight_shapes[weight]
        groups = columns // self.shape.group_width // parts
        first, end = (at.add(group, I64(part * groups)) for group in self.team.split(groups))
        x, y = ([self.arguments[name], I64(self.row_widths[name])] for name in (rows, out))
        matrix, adds = [self.layer[weight], I64(depth)], I64(int(out == "residual"))
        at.call(self.kernels.layer_matmul, [*x, self.arguments["rows"], *matrix, *y, first, end, adds])

    @contextmanager
    def _trees(self) -> Iterator[dict[str, Any]]:
        """Context manager whose body emits that of a loop over a pass's trees; yields IR values by name.

        These are the fields of the tree's TREE record and of its CACHE record in the current layer.
        """
        code = self.code
        with code.loop(0, self.arguments["tree_count"]) as tree:
            cache = code.load_record(self.layer["caches"], CACHE, tree)
            yield code.load_record(self.arguments["trees"], TREE, tree) | cache

    def _write_cache(self) -> None:
        """Emit bias, norm and rotary embedding of queries and keys, and the writing of keys and values into the cache.

        Values get their bias only. Queries stay in their buffer, times the attention's scaling.
        """
        code, at, team, shape, kernels = self.code, self.code.at, self.team, self.shape, self.kernels
        scaling = constant(kernels.head_vector, shape.scaling)
        with self._trees() as tree, code.loop(0, tree["rows"]) as index:
            row, slot = at.add(tree["first"], index), at.add(tree["start"], index)
            angles = code.address(self.arguments["rope"], at.mul(row, I64(2 * shape.head_width)), F32)
            qkv = code.address(self.arguments["qkv"], at.mul(row, I64(shape.qkv)), F32)
            with code.loop(0, shape.heads) as head, team.turn():
                query = kernels.load_head(code, qkv, head, self.layer["bias"])
                query = kernels.norm_and_rotate(code, query, self.layer["query_norm"], angles)
                for column, numbers in query.items():
                    code.store_float(at.fmul(numbers, scaling), qkv, code.index(head, shape.head_width, column))
            with code.loop(0, shape.key_heads) as head, team.turn():
                heads = (at.add(head, I64(others)) for others in (shape.heads, shape.heads + shape.key_heads))
                key, value = (kernels.load_head(code, qkv, each, self.layer["bias"]) for each in heads)
                key = kernels.norm_and_rotate(code, key, self.layer["key_norm"], angles)
                cached_row = code.index(head, tree["capacity"], slot)
                for name, vectors in (("keys", key), ("values", value)):
                    for column, numbers in vectors.items():
                        cached = code.index(cached_row, shape.head_width, column)
                        code.store_float(numbers, tree[name], cached, kernels.cache_type)

    def _attend(self) -> None:
        """Emit masked attention of each head of each row over the slots of its tree, from `qkv` to `attended`."""
        code, at, team, shape, kernels = self.code, self.code.at, self.team, self.shape, self.kernels
        scores, score_width, scales = self.arguments["scores"], self.arguments["score_width"], code.alloca(F32, ATTEND)
        with self._trees() as tree, code.loop(0, shape.heads) as head:
            slots = at.add(tree["start"], tree["rows"])
            first_slot = at.mul(at.udiv(head, I64(shape.heads // shape.key_heads)), tree["capacity"])
            first_number = at.mul(first_slot, I64(shape.head_width))
            keys, values = (code.address(tree[name], first_number, kernels.cache_type) for name in CACHE)
            with code.chunks(tree["rows"], ATTEND) as (first, count), team.turn():
                row, column = at.add(tree["first"], first), at.mul(head, I64(shape.head_width))
                query = code.address(self.arguments["qkv"], code.index(row, shape.qkv, column), F32)
                width = shape.attention_width
                out = kernels.row_address(code, self.arguments["attended"], row, width, column)
                mask = code.address(tree["mask"], at.mul(first, tree["mask_width"]), kernels.cache_type)
                to_score = [query, I64(shape.qkv), keys, slots, mask, tree["mask_width"], scores, score_width]
                for rows in code.cases(count, ATTEND):
                    at.call(kernels.score[rows], to_score)
                with code.loop(0, count) as index:
                    row_scores = code.address(scores, at.mul(index, score_width), F32)
                    code.store_float(at.call(kernels.softmax, [row_scores, slots]), scales, index)
                to_weigh = [scores, score_width, values, slots, scales, out, I64(width)]
                for rows in code.cases(count, ATTEND):
                    at.call(kernels.weigh_values[rows], to_weigh)
