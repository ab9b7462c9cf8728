"""Decoder layers for a few rows, as one function that the threads of a team run together.

A pass of few rows should take as long as the model's weights take to come from memory, once. In a pass, a library's
products take twice that, being asked for one by one, and what lies between them is a call each. Here all layers are one
call. Threads share the columns of each product, and wait for each other where one needs what another made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lookahead_core.engines.kernels import ATTEND, Kernels, Shape
from lookahead_core.engines.llvm import F32, I16, I32, I64, PTR, VOID, Code, real, whole

PASS = (
    "rows", "residual", "layer_count", "layers", "tree_count", "trees", "caches", "turning", "taken", "mixed", "wide",
    "own", "scores", "score_width",
)  # fmt: skip
"""What a pass is told, numbers and addresses. From `taken` on there is room for what is made on the way: queries, keys
and values; what attention mixes; gates and what they are for; and for each thread rows and scores of its own."""
NUMBERS = {"rows", "layer_count", "tree_count", "score_width"}
LAYER = ("before_attention", "taken", "bias", "of_queries", "of_keys", "given", "before_mlp", "gate_up", "down")
"""What it is told of each layer: where its weights are."""
TREE = ("first", "rows", "start", "capacity", "mask", "mask_width")
"""And of each tree: its rows, the slots that they get, and what they may see."""


def written(shape: Shape) -> str:
    """All functions for layers of a shape, in LLVM's words: `layers` and `product` are called from outside."""
    kernels = Kernels(shape)
    _write_product(kernels)
    Layers(kernels).write()
    return str(kernels.module)


def sizes(shape: Shape) -> dict[str, int]:
    """How many numbers each of a layer's weights is."""
    return {
        "before_attention": shape.hidden,
        "taken": shape.taken * shape.hidden,
        "bias": shape.taken * shape.biased,
        "of_queries": shape.width * shape.norms_heads,
        "of_keys": shape.width * shape.norms_heads,
        "given": shape.hidden * shape.mixed,
        "before_mlp": shape.hidden,
        "gate_up": 2 * shape.inner * shape.hidden,
        "down": shape.hidden * shape.inner,
    }


class Team:
    """Which of so many threads runs a function, and what each of them does."""

    def __init__(self, code: Code) -> None:
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


def _write_product(kernels: Kernels) -> None:
    """One product alone, told of rows, matrix, result, how many rows, their width, the result's, and its groups."""
    code = Code(kernels.module, "product", [PTR])
    (told,) = code.given
    x, weights, y = (code.read(told, place, PTR) for place in range(3))
    rows, depth, width, groups = (code.read(told, place, I64) for place in range(3, 7))
    code.at.call(kernels.multiply, [x, depth, rows, weights, depth, y, width, *Team(code).share(groups), I64(0)])
    code.at.ret_void()


class Layers:
    """The function while it is written."""

    def __init__(self, kernels: Kernels) -> None:
        self.kernels, self.shape = kernels, kernels.shape
        code = self.code = Code(kernels.module, "layers", [PTR])
        team = self.team = Team(code)
        self.told = {
            name: code.read(code.given[0], place, I64 if name in NUMBERS else PTR) for place, name in enumerate(PASS)
        }
        for name, each in (
            ("own", code.at.mul(self.told["rows"], I64(self.shape.hidden))),
            ("scores", code.at.mul(self.told["score_width"], I64(ATTEND))),
        ):
            self.told[name] = code.element(self.told[name], code.at.mul(team.me, each), F32)
        self.layer: dict[str, Any] = {}
        """Where the weights, and the caches, of the layer are that is being written."""

    def write(self) -> None:
        """All layers, one after the other."""
        code, at, team, shape, told = self.code, self.code.at, self.team, self.shape, self.told
        with code.loop(0, told["layer_count"]) as index:
            base = at.mul(index, I64(len(LAYER)))
            places = {name: at.add(base, I64(place)) for place, name in enumerate(LAYER)}
            self.layer = {name: code.read(told["layers"], place, PTR) for name, place in places.items()}
            self.layer["cache"] = code.element(told["caches"], at.mul(index, at.mul(told["tree_count"], I64(2))), PTR)
            self._norm("before_attention")
            self._times("own", shape.hidden, "taken", "taken", shape.taken, shape.taken)
            team.wait()
            self._place()
            team.wait()
            self._attend()
            team.wait()
            self._times("mixed", shape.mixed, "given", "residual", shape.hidden, shape.hidden, adds=1)
            team.wait()
            self._norm("before_mlp")
            for half in (0, shape.inner):
                self._times("own", shape.hidden, "gate_up", "wide", 2 * shape.inner, shape.inner, first_column=half)
            first, end = (at.mul(one, I64(shape.columns)) for one in team.share(shape.inner // shape.columns))
            at.call(self.kernels.gate, [told["wide"], told["rows"], first, end])
            team.wait()
            self._times("wide", shape.inner, "down", "residual", shape.hidden, shape.hidden, 2 * shape.inner, adds=1)
            team.wait()
        at.ret_void()

    def _norm(self, weight: str) -> None:
        """Every thread has all rows under their norm to itself: that is sooner done than waited for."""
        told = self.told
        self.code.at.call(self.kernels.norm, [told["residual"], self.layer[weight], told["own"], told["rows"]])

    def _times(
        self, rows: str, depth: int, matrix: str, out: str, out_width: int, columns: int, row_width: int = 0, *,
        first_column: int = 0, adds: int = 0,
    ) -> None:  # fmt: skip
        """A thread's share of some columns of a product."""
        at, before = self.code.at, I64(first_column // self.shape.columns)
        own = [at.add(one, before) for one in self.team.share(columns // self.shape.columns)]
        given = [self.told[rows], I64(row_width or depth), self.told["rows"], self.layer[matrix], I64(depth)]
        at.call(self.kernels.multiply, [*given, self.told[out], I64(out_width), *own, I64(adds)])

    @contextmanager
    def _trees(self) -> Iterator[dict[str, Any]]:
        """Each tree: what a pass is told of it, and where this layer's keys and values of it are."""
        code, at = self.code, self.code.at
        with code.loop(0, self.told["tree_count"]) as index:
            base = at.mul(index, I64(len(TREE)))
            tree = {
                name: code.read(self.told["trees"], at.add(base, I64(place)), PTR if name == "mask" else I64)
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
            angles = code.element(self.told["turning"], at.mul(row, I64(2 * shape.width)), F32)
            taken = code.element(self.told["taken"], at.mul(row, I64(shape.taken)), F32)
            with code.loop(0, shape.heads) as head, team.turn():
                begin = at.mul(head, I64(shape.width))
                query = kernels.head(code, taken, begin, self.layer["bias"])
                query = kernels.turned(code, kernels.normed(code, query, self.layer["of_queries"]), angles)
                for place, part in query.items():
                    code.keep(at.fmul(part, real(part.type, shape.scaling)), taken, at.add(begin, I64(place)))
            with code.loop(0, shape.key_heads) as head, team.turn():
                begins = [
                    at.mul(at.add(head, I64(others)), I64(shape.width))
                    for others in (shape.heads, shape.heads + shape.key_heads)
                ]
                key, value = (kernels.head(code, taken, begin, self.layer["bias"]) for begin in begins)
                key = kernels.turned(code, kernels.normed(code, key, self.layer["of_keys"]), angles)
                goal = at.mul(at.add(at.mul(head, tree["capacity"]), slot), I64(shape.width))
                for name, numbers in (("keys", key), ("values", value)):
                    for place, part in numbers.items():
                        keep(part, tree[name], at.add(goal, I64(place)))

    def _attend(self) -> None:
        """Each head of each row takes from the slots of its tree that the row sees."""
        code, at, team, shape, told = self.code, self.code.at, self.team, self.shape, self.told
        item = I16 if shape.narrow else F32
        scores, score_width, scales = told["scores"], told["score_width"], code.variable(F32, ATTEND)
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
                    code.element(told[name], at.add(at.mul(row, I64(width)), column), F32)
                    for name, width in (("taken", shape.taken), ("mixed", shape.mixed))
                )
                mask = code.element(tree["mask"], at.mul(first, tree["mask_width"]), item)
                asked = [query, I64(shape.taken), keys, slots, mask, tree["mask_width"], scores, score_width]
                code.by_count(some, ATTEND, lambda count: at.call(compare[count], asked))
                with code.loop(0, some) as one:
                    own = code.element(scores, at.mul(one, score_width), F32)
                    at.store(at.call(self.kernels.odds, [own, slots]), code.element(scales, one, F32))
                shares = [scores, score_width, values, slots, scales, out, I64(shape.mixed)]
                code.by_count(some, ATTEND, lambda count: at.call(mix[count], shares))
