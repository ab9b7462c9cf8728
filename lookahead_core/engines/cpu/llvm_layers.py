"""LLVM IR of all decoder layers as one function, which the threads of an OpenMP team run together.

A pass of few rows is bound by reading the model's weights from memory once. Separate library calls for products, norms
and activations take about twice that time. Here all layers are one call: threads split the columns of each product, and
a barrier separates steps of which one reads what another thread has written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lookahead_core.engines.cpu.llvm_builder import F32, I16, I32, I64, PTR, VOID, FunctionBuilder, as_i64, f32_constant
from lookahead_core.engines.cpu.llvm_kernels import ATTEND, KernelBuilder, LayerShape

PASS = (
    "rows", "residual", "layer_count", "layers", "tree_count", "trees", "caches", "rope", "qkv", "attended",
    "gate_up_out", "normed", "scores", "score_width",
)  # fmt: skip
"""The arguments of a pass: counts and addresses. From `qkv` on, buffers: queries, keys and values; attention
output; gate and up projections; and, for each thread, normed rows and attention scores."""
NUMBERS = {"rows", "layer_count", "tree_count", "score_width"}
LAYER = ("input_norm", "qkv", "bias", "query_norm", "key_norm", "o_proj", "mlp_norm", "gate_up", "down")
"""The weights of a layer, in the order in which their addresses are passed."""
TREE = ("first", "rows", "start", "capacity", "mask", "mask_width")
"""Per tree: its first row and row count, its first free slot and capacity, and its mask."""


def llvm_ir_of(shape: LayerShape) -> str:
    """The LLVM IR of a module for layers of a shape, with the external functions `layers` and `product`."""
    kernels = KernelBuilder(shape)
    _write_product(kernels)
    LayersBuilder(kernels).write()
    return str(kernels.module)


def weight_sizes(shape: LayerShape) -> dict[str, int]:
    """The number of elements of each weight of a layer."""
    return {
        "input_norm": shape.hidden,
        "qkv": shape.qkv * shape.hidden,
        "bias": shape.qkv * shape.has_bias,
        "query_norm": shape.head_width * shape.has_head_norms,
        "key_norm": shape.head_width * shape.has_head_norms,
        "o_proj": shape.hidden * shape.attention_width,
        "mlp_norm": shape.hidden,
        "gate_up": 2 * shape.intermediate * shape.hidden,
        "down": shape.hidden * shape.intermediate,
    }


class ThreadTeam:
    """The thread that runs a function, and how work is divided among the threads of its OpenMP team."""

    def __init__(self, code: FunctionBuilder) -> None:
        names = ("omp_get_thread_num", "omp_get_num_threads")
        self.code = code
        self.thread, self.threads = (code.at.zext(code.at.call(code.declare(name, I32, []), []), I64) for name in names)
        self._turn = code.alloca(I64)

    def split(self, count: Any) -> tuple[Any, Any]:
        """This thread's share of `count` items: its first and one past its last."""
        at = self.code.at
        first, end = (at.mul(as_i64(count), who) for who in (self.thread, at.add(self.thread, I64(1))))
        return at.udiv(first, self.threads), at.udiv(end, self.threads)

    def start_turns(self) -> None:
        """Reset the round robin of `turn` to the first thread."""
        self.code.at.store(I64(0), self._turn)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A context manager: its body runs on one thread, the next one each time, round robin."""
        at = self.code.at
        now = at.load(self._turn, typ=I64)
        after = at.add(now, I64(1))
        at.store(at.select(at.icmp_signed("==", after, self.threads), I64(0), after), self._turn)
        with at.if_then(at.icmp_signed("==", now, self.thread)):
            yield

    def barrier(self) -> None:
        """Wait until all threads have arrived."""
        self.code.at.call(self.code.declare("GOMP_barrier", VOID, []), [])


def _write_product(kernels: KernelBuilder) -> None:
    """The function `product`: a matmul of rows, matrix and result, with row count, widths and column groups."""
    code = FunctionBuilder(kernels.module, "product", [PTR])
    (arguments,) = code.arguments
    x, weights, y = (code.load(arguments, place, PTR) for place in range(3))
    rows, depth, width, groups = (code.load(arguments, place, I64) for place in range(3, 7))
    code.at.call(kernels.matmul, [x, depth, rows, weights, depth, y, width, *ThreadTeam(code).split(groups), I64(0)])
    code.at.ret_void()


class LayersBuilder:
    """Builds the function `layers`."""

    def __init__(self, kernels: KernelBuilder) -> None:
        self.kernels, self.shape = kernels, kernels.shape
        code = self.code = FunctionBuilder(kernels.module, "layers", [PTR])
        team = self.team = ThreadTeam(code)
        self.arguments = {
            name: code.load(code.arguments[0], place, I64 if name in NUMBERS else PTR)
            for place, name in enumerate(PASS)
        }
        for name, each in (
            ("normed", code.at.mul(self.arguments["rows"], I64(self.shape.hidden))),
            ("scores", code.at.mul(self.arguments["score_width"], I64(ATTEND))),
        ):
            self.arguments[name] = code.address(self.arguments[name], code.at.mul(team.thread, each), F32)
        self.layer: dict[str, Any] = {}
        """Addresses of the current layer's weights, and of its part of the caches."""

    def write(self) -> None:
        """Emit the loop over all layers."""
        code, at, team, shape, arguments = self.code, self.code.at, self.team, self.shape, self.arguments
        with code.loop(0, arguments["layer_count"]) as index:
            base = at.mul(index, I64(len(LAYER)))
            places = {name: at.add(base, I64(place)) for place, name in enumerate(LAYER)}
            self.layer = {name: code.load(arguments["layers"], place, PTR) for name, place in places.items()}
            self.layer["cache"] = code.address(
                arguments["caches"], at.mul(index, at.mul(arguments["tree_count"], I64(2))), PTR
            )
            self._rms_norm("input_norm")
            self._matmul("normed", shape.hidden, "qkv", "qkv", shape.qkv, shape.qkv)
            team.barrier()
            self._write_cache()
            team.barrier()
            self._attend()
            team.barrier()
            self._matmul("attended", shape.attention_width, "o_proj", "residual", shape.hidden, shape.hidden, adds=1)
            team.barrier()
            self._rms_norm("mlp_norm")
            for half in (0, shape.intermediate):
                self._matmul(
                    "normed",
                    shape.hidden,
                    "gate_up",
                    "gate_up_out",
                    2 * shape.intermediate,
                    shape.intermediate,
                    first_column=half,
                )
            first, end = (
                at.mul(one, I64(shape.group_width)) for one in team.split(shape.intermediate // shape.group_width)
            )
            at.call(self.kernels.silu_gate, [arguments["gate_up_out"], arguments["rows"], first, end])
            team.barrier()
            self._matmul(
                "gate_up_out",
                shape.intermediate,
                "down",
                "residual",
                shape.hidden,
                shape.hidden,
                2 * shape.intermediate,
                adds=1,
            )
            team.barrier()
        at.ret_void()

    def _rms_norm(self, weight: str) -> None:
        """RMSNorm. Each thread normalises all rows: cheaper than a barrier."""
        arguments = self.arguments
        self.code.at.call(
            self.kernels.rms_norm, [arguments["residual"], self.layer[weight], arguments["normed"], arguments["rows"]]
        )

    def _matmul(
        self, rows: str, depth: int, matrix: str, out: str, out_width: int, columns: int, row_width: int = 0, *,
        first_column: int = 0, adds: int = 0,
    ) -> None:  # fmt: skip
        """Emit a call of the matmul kernel for this thread's share of `columns` columns of a weight matrix.

        Columns are counted from `first_column`. `rows` and `out` name buffers; a row has `row_width` numbers (default
        `depth`), of which `depth` are multiplied. `adds=1` adds to `out` instead of overwriting it.
        """
        at, before = self.code.at, I64(first_column // self.shape.group_width)
        own = [at.add(one, before) for one in self.team.split(columns // self.shape.group_width)]
        given = [self.arguments[rows], I64(row_width or depth), self.arguments["rows"], self.layer[matrix], I64(depth)]
        at.call(self.kernels.matmul, [*given, self.arguments[out], I64(out_width), *own, I64(adds)])

    @contextmanager
    def _trees(self) -> Iterator[dict[str, Any]]:
        """A context manager: its body loops over trees, with their arguments and this layer's keys and values."""
        code, at = self.code, self.code.at
        with code.loop(0, self.arguments["tree_count"]) as index:
            base = at.mul(index, I64(len(TREE)))
            tree = {
                name: code.load(self.arguments["trees"], at.add(base, I64(place)), PTR if name == "mask" else I64)
                for place, name in enumerate(TREE)
            }
            for part, name in enumerate(("keys", "values")):
                tree[name] = code.load(self.layer["cache"], at.add(at.mul(index, I64(2)), I64(part)), PTR)
            yield tree

    def _write_cache(self) -> None:
        """Rotary embedding of queries and keys; keys and values are written into their slots."""
        code, at, team, shape, kernels = self.code, self.code.at, self.team, self.shape, self.kernels
        keep = code.store_bf16_vector if shape.bf16_cache else code.store_vector
        team.start_turns()
        with self._trees() as tree, code.loop(0, tree["rows"]) as index:
            row, slot = at.add(tree["first"], index), at.add(tree["start"], index)
            angles = code.address(self.arguments["rope"], at.mul(row, I64(2 * shape.head_width)), F32)
            qkv = code.address(self.arguments["qkv"], at.mul(row, I64(shape.qkv)), F32)
            with code.loop(0, shape.heads) as head, team.turn():
                begin = at.mul(head, I64(shape.head_width))
                query = kernels.load_head(code, qkv, begin, self.layer["bias"])
                query = kernels.rotate_head(code, kernels.norm_head(code, query, self.layer["query_norm"]), angles)
                for place, part in query.items():
                    code.store_vector(
                        at.fmul(part, f32_constant(part.type, shape.scaling)), qkv, at.add(begin, I64(place))
                    )
            with code.loop(0, shape.key_heads) as head, team.turn():
                begins = [
                    at.mul(at.add(head, I64(others)), I64(shape.head_width))
                    for others in (shape.heads, shape.heads + shape.key_heads)
                ]
                key, value = (kernels.load_head(code, qkv, begin, self.layer["bias"]) for begin in begins)
                key = kernels.rotate_head(code, kernels.norm_head(code, key, self.layer["key_norm"]), angles)
                goal = at.mul(at.add(at.mul(head, tree["capacity"]), slot), I64(shape.head_width))
                for name, numbers in (("keys", key), ("values", value)):
                    for place, part in numbers.items():
                        keep(part, tree[name], at.add(goal, I64(place)))

    def _attend(self) -> None:
        """Masked attention of each head of each row over the slots of its tree."""
        code, at, team, shape, arguments = self.code, self.code.at, self.team, self.shape, self.arguments
        item = I16 if shape.bf16_cache else F32
        scores, score_width, scales = arguments["scores"], arguments["score_width"], code.alloca(F32, ATTEND)
        compare, mix = self.kernels.score, self.kernels.weigh_values
        team.start_turns()
        with self._trees() as tree, code.loop(0, shape.heads) as head:
            slots = at.add(tree["start"], tree["rows"])
            shared = at.mul(at.udiv(head, I64(shape.heads // shape.key_heads)), tree["capacity"])
            keys, values = (
                code.address(tree[name], at.mul(shared, I64(shape.head_width)), item) for name in ("keys", "values")
            )
            with code.chunks(tree["rows"], ATTEND) as (first, some), team.turn():
                row, column = at.add(tree["first"], first), at.mul(head, I64(shape.head_width))
                query, out = (
                    code.address(arguments[name], at.add(at.mul(row, I64(width)), column), F32)
                    for name, width in (("qkv", shape.qkv), ("attended", shape.attention_width))
                )
                mask = code.address(tree["mask"], at.mul(first, tree["mask_width"]), item)
                asked = [query, I64(shape.qkv), keys, slots, mask, tree["mask_width"], scores, score_width]
                code.switch_on_count(some, ATTEND, lambda count: at.call(compare[count], asked))
                with code.loop(0, some) as one:
                    own = code.address(scores, at.mul(one, score_width), F32)
                    at.store(at.call(self.kernels.softmax, [own, slots]), code.address(scales, one, F32))
                shares = [scores, score_width, values, slots, scales, out, I64(shape.attention_width)]
                code.switch_on_count(some, ATTEND, lambda count: at.call(mix[count], shares))
