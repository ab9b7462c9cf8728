"""Decoder layers for a few rows, as one function that the threads of a team run together.

A pass of few rows should take as long as the model's weights take to come from memory, once. In a pass, a library's
products take twice that, being asked for one by one, and what lies between them is a call each. Here all layers are one
call. Threads share the columns of each product, and wait for each other where one needs what another made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lookahead_core.engines.cpu.llvm_builder import F32, I16, I32, I64, PTR, VOID, FunctionBuilder, real, whole
from lookahead_core.engines.cpu.llvm_kernels import ATTEND, KernelBuilder, LayerShape

PASS = (
    "rows", "residual", "layer_count", "layers", "tree_count", "trees", "caches", "rope", "qkv", "mixed", "wide",
    "own", "scores", "score_width",
)  # fmt: skip
"""The arguments of a pass, numbers and addresses. From `qkv` on they are buffers: queries, keys and values; attention's
output; gate and up projections; and for each thread normed rows and attention scores."""
NUMBERS = {"rows", "layer_count", "tree_count", "score_width"}
LAYER = ("input_norm", "qkv", "bias", "query_norm", "key_norm", "o_proj", "mlp_norm", "gate_up", "down")
"""The addresses of a layer's weights."""
TREE = ("first", "rows", "start", "capacity", "mask", "mask_width")
"""For each tree its rows, their slots, and its mask."""


def written(shape: LayerShape) -> str:
    """All functions for layers of a shape, in LLVM's words: `layers` and `product` are called from outside."""
    kernels = KernelBuilder(shape)
    _write_product(kernels)
    LayersBuilder(kernels).write()
    return str(kernels.module)


def sizes(shape: LayerShape) -> dict[str, int]:
    """How many numbers each of a layer's weights is."""
    return {
        "input_norm": shape.hidden,
        "qkv": shape.qkv * shape.hidden,
        "bias": shape.qkv * shape.biased,
        "query_norm": shape.width * shape.norms_heads,
        "key_norm": shape.width * shape.norms_heads,
        "o_proj": shape.hidden * shape.mixed,
        "mlp_norm": shape.hidden,
        "gate_up": 2 * shape.inner * shape.hidden,
        "down": shape.hidden * shape.inner,
    }


class ThreadTeam:
    """Which of so many threads runs a function, and what each of them does."""

    def __init__(self, code: FunctionBuilder) -> None:
        names = ("omp_get_thread_num", "omp_get_num_threads")
        self.code = code
        self.me, self.all = (code.at.zext(code.at.call(code.known(name, I32, []), []), I64) for name in names)
        self._turn = code.variable(I64)

    def share(self, count: Any) -> tuple[Any, Any]:
        """A part of so many, as large as everybody's: from its first to before its end."""
        at = self.code.at
        first, end = (at.mul(whole(count), who) for who in (self.me, at.add(self.me, I64(1))))
        return at.udiv(first, self.all), at.udiv(end, self.all)

    def take_turns(self) -> None:
        """From here on the first comes first."""
        self.code.at.store(I64(0), self._turn)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """What is written within is done by whose turn it is; then it is the next one's."""
        at = self.code.at
        now = at.load(self._turn, typ=I64)
        after = at.add(now, I64(1))
        at.store(at.select(at.icmp_signed("==", after, self.all), I64(0), after), self._turn)
        with at.if_then(at.icmp_signed("==", now, self.me)):
            yield

    def wait(self) -> None:
        """Until all have come so far."""
        self.code.at.call(self.code.known("GOMP_barrier", VOID, []), [])


def _write_product(kernels: KernelBuilder) -> None:
    """A product alone. Its arguments: rows, matrix, result, row count, row width, result width, column groups."""
    code = FunctionBuilder(kernels.module, "product", [PTR])
    (arguments,) = code.given
    x, weights, y = (code.read(arguments, place, PTR) for place in range(3))
    rows, depth, width, groups = (code.read(arguments, place, I64) for place in range(3, 7))
    code.at.call(kernels.multiply, [x, depth, rows, weights, depth, y, width, *ThreadTeam(code).share(groups), I64(0)])
    code.at.ret_void()


class LayersBuilder:
    """The function while it is written."""

    def __init__(self, kernels: KernelBuilder) -> None:
        self.kernels, self.shape = kernels, kernels.shape
        code = self.code = FunctionBuilder(kernels.module, "layers", [PTR])
        team = self.team = ThreadTeam(code)
        self.arguments = {
            name: code.read(code.given[0], place, I64 if name in NUMBERS else PTR) for place, name in enumerate(PASS)
        }
        for name, each in (
            ("own", code.at.mul(self.arguments["rows"], I64(self.shape.hidden))),
            ("scores", code.at.mul(self.arguments["score_width"], I64(ATTEND))),
        ):
            self.arguments[name] = code.element(self.arguments[name], code.at.mul(team.me, each), F32)
        self.layer: dict[str, Any] = {}
        """Where the weights, and the caches, of the layer are that is being written."""

    def write(self) -> None:
        """All layers, one after the other."""
        code, at, team, shape, arguments = self.code, self.code.at, self.team, self.shape, self.arguments
        with code.loop(0, arguments["layer_count"]) as index:
            base = at.mul(index, I64(len(LAYER)))
            places = {name: at.add(base, I64(place)) for place, name in enumerate(LAYER)}
            self.layer = {name: code.read(arguments["layers"], place, PTR) for name, place in places.items()}
            self.layer["cache"] = code.element(
                arguments["caches"], at.mul(index, at.mul(arguments["tree_count"], I64(2))), PTR
            )
            self._norm("input_norm")
            self._times("own", shape.hidden, "qkv", "qkv", shape.qkv, shape.qkv)
            team.wait()
            self._place()
            team.wait()
            self._attend()
            team.wait()
            self._times("mixed", shape.mixed, "o_proj", "residual", shape.hidden, shape.hidden, adds=1)
            team.wait()
            self._norm("mlp_norm")
            for half in (0, shape.inner):
                self._times("own", shape.hidden, "gate_up", "wide", 2 * shape.inner, shape.inner, first_column=half)
            first, end = (at.mul(one, I64(shape.columns)) for one in team.share(shape.inner // shape.columns))
            at.call(self.kernels.gate, [arguments["wide"], arguments["rows"], first, end])
            team.wait()
            self._times("wide", shape.inner, "down", "residual", shape.hidden, shape.hidden, 2 * shape.inner, adds=1)
            team.wait()
        at.ret_void()

    def _norm(self, weight: str) -> None:
        """Each thread normalises all rows for itself: cheaper than a barrier."""
        arguments = self.arguments
        self.code.at.call(
            self.kernels.norm, [arguments["residual"], self.layer[weight], arguments["own"], arguments["rows"]]
        )

    def _times(
        self, rows: str, depth: int, matrix: str, out: str, out_width: int, columns: int, row_width: int = 0, *,
        first_column: int = 0, adds: int = 0,
    ) -> None:  # fmt: skip
        """A thread's share of some columns of a product."""
        at, before = self.code.at, I64(first_column // self.shape.columns)
        own = [at.add(one, before) for one in self.team.share(columns // self.shape.columns)]
        given = [self.arguments[rows], I64(row_width or depth), self.arguments["rows"], self.layer[matrix], I64(depth)]
        at.call(self.kernels.multiply, [*given, self.arguments[out], I64(out_width), *own, I64(adds)])

    @contextmanager
    def _trees(self) -> Iterator[dict[str, Any]]:
        """Each tree's arguments, and the addresses of this layer's keys and values."""
        code, at = self.code, self.code.at
        with code.loop(0, self.arguments["tree_count"]) as index:
            base = at.mul(index, I64(len(TREE)))
            tree = {
                name: code.read(self.arguments["trees"], at.add(base, I64(place)), PTR if name == "mask" else I64)
                for place, name in enumerate(TREE)
            }
            for part, name in enumerate(("keys", "values")):
                tree[name] = code.read(self.layer["cache"], at.add(at.mul(index, I64(2)), I64(part)), PTR)
            yield tree

    def _place(self) -> None:
        """Queries and keys are turned by where their rows stand, and keys and values put into their slots."""
        code, at, team, shape, kernels = self.code, self.code.at, self.team, self.shape, self.kernels
        keep = code.keep_upper_halves if shape.narrow else code.keep
        team.take_turns()
        with self._trees() as tree, code.loop(0, tree["rows"]) as index:
            row, slot = at.add(tree["first"], index), at.add(tree["start"], index)
            angles = code.element(self.arguments["rope"], at.mul(row, I64(2 * shape.width)), F32)
            qkv = code.element(self.arguments["qkv"], at.mul(row, I64(shape.qkv)), F32)
            with code.loop(0, shape.heads) as head, team.turn():
                begin = at.mul(head, I64(shape.width))
                query = kernels.head(code, qkv, begin, self.layer["bias"])
                query = kernels.turned(code, kernels.normed(code, query, self.layer["query_norm"]), angles)
                for place, part in query.items():
                    code.keep(at.fmul(part, real(part.type, shape.scaling)), qkv, at.add(begin, I64(place)))
            with code.loop(0, shape.key_heads) as head, team.turn():
                begins = [
                    at.mul(at.add(head, I64(others)), I64(shape.width))
                    for others in (shape.heads, shape.heads + shape.key_heads)
                ]
                key, value = (kernels.head(code, qkv, begin, self.layer["bias"]) for begin in begins)
                key = kernels.turned(code, kernels.normed(code, key, self.layer["key_norm"]), angles)
                goal = at.mul(at.add(at.mul(head, tree["capacity"]), slot), I64(shape.width))
                for name, numbers in (("keys", key), ("values", value)):
                    for place, part in numbers.items():
                        keep(part, tree[name], at.add(goal, I64(place)))

    def _attend(self) -> None:
        """Each head of each row takes from the slots of its tree that the row sees."""
        code, at, team, shape, arguments = self.code, self.code.at, self.team, self.shape, self.arguments
        item = I16 if shape.narrow else F32
        scores, score_width, scales = arguments["scores"], arguments["score_width"], code.variable(F32, ATTEND)
        compare, mix = self.kernels.compare, self.kernels.mix
        team.take_turns()
        with self._trees() as tree, code.loop(0, shape.heads) as head:
            slots = at.add(tree["start"], tree["rows"])
            shared = at.mul(at.udiv(head, I64(shape.heads // shape.key_heads)), tree["capacity"])
            keys, values = (
                code.element(tree[name], at.mul(shared, I64(shape.width)), item) for name in ("keys", "values")
            )
            with code.parts(tree["rows"], ATTEND) as (first, some), team.turn():
                row, column = at.add(tree["first"], first), at.mul(head, I64(shape.width))
                query, out = (
                    code.element(arguments[name], at.add(at.mul(row, I64(width)), column), F32)
                    for name, width in (("qkv", shape.qkv), ("mixed", shape.mixed))
                )
                mask = code.element(tree["mask"], at.mul(first, tree["mask_width"]), item)
                asked = [query, I64(shape.qkv), keys, slots, mask, tree["mask_width"], scores, score_width]
                code.by_count(some, ATTEND, lambda count: at.call(compare[count], asked))
                with code.loop(0, some) as one:
                    own = code.element(scores, at.mul(one, score_width), F32)
                    at.store(at.call(self.kernels.odds, [own, slots]), code.element(scales, one, F32))
                shares = [scores, score_width, values, slots, scales, out, I64(shape.mixed)]
                code.by_count(some, ATTEND, lambda count: at.call(mix[count], shares))
