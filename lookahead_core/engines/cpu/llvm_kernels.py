"""What decoder layers are made of, for a few rows, as functions that LLVM compiles for the processor at hand.

Rows stay float32 from the first norm to the last sum. Matrices are read in sixteen bits, as are keys and values where
the model has them so: those bits are the upper half of float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from lookahead_core.engines.cpu.llvm_builder import (
    F32,
    F64,
    I32,
    I64,
    LOWEST,
    PTR,
    FunctionBuilder,
    integers,
    real,
    same,
)

ATTEND = 6
"""Rows that attend at a time."""
LONGEST_SUM = 640
"""Products that are added up in a row before the partial sums are added: longer sums round more."""
AHEAD = 64
"""Weights are asked for so many steps before they are needed: measured in docs/performance-notes.md."""


@dataclass(frozen=True)
class LayerShape:
    """Layers of one kind, and the registers of the processor that they are for."""

    lanes: int
    """How many numbers a register holds."""
    tall: tuple[tuple[int, int], ...]
    """How many groups of columns are summed up at a time for at most how many rows: their sums fill the registers."""
    narrow: bool
    """Whether keys, values and masks have sixteen bits."""
    hidden: int
    inner: int
    heads: int
    key_heads: int
    width: int
    """How wide a head is."""
    epsilon: float
    scaling: float
    biased: bool
    """Whether something is added to queries, keys and values."""
    norms_heads: bool
    """Whether queries and keys have norms of their own."""

    @property
    def columns(self) -> int:
        """How many columns of a matrix lie together: two in the halves of each number of a register."""
        return 2 * self.lanes

    @property
    def qkv(self) -> int:
        """How many numbers queries, keys and values of a row are."""
        return (self.heads + 2 * self.key_heads) * self.width

    @property
    def mixed(self) -> int:
        return self.heads * self.width

    @property
    def fits(self) -> bool:
        """Whether all widths are whole numbers of what is done at a time."""
        return (
            all(width % self.columns == 0 for width in (self.hidden, self.inner, self.qkv))
            and self.width % self.lanes == self.width // 2 % min(self.lanes, self.width // 2) == 0
            and self.heads % self.key_heads == 0
        )


class KernelBuilder:
    """The functions, from the innermost outwards."""

    def __init__(self, shape: LayerShape) -> None:
        self.shape = shape
        self.module = ir.Module("lookahead")
        self.vector = ir.VectorType(F32, shape.lanes)
        self.part = ir.VectorType(F32, min(shape.lanes, shape.width // 2))
        """Of a head so many numbers are turned at a time."""
        self.tallest = max(rows for rows, _ in shape.tall)
        self.block = {(rows, groups): self._block(rows, groups) for rows, groups in self._blocks()}
        self.multiply = self._multiply()
        self.norm = self._norm()
        self.gate = self._gate()
        self.compare = {rows: self._compare(rows) for rows in range(1, ATTEND + 1)}
        self.odds = self._odds()
        self.mix = {rows: self._mix(rows) for rows in range(1, ATTEND + 1)}
        for function in self.module.functions:
            if function.blocks:
                function.linkage = "internal"
                function.attributes.add("noinline")

    # Products

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """For each number of rows, how many groups of columns are multiplied at a time at most, and fewer."""
        for rows in range(1, self.tallest + 1):
            yield from ((rows, groups) for groups in range(1, self._groups(rows) + 1))

    def _groups(self, rows: int) -> int:
        return next(groups for tall, groups in sorted(self.shape.tall) if rows <= tall)

    def _block(self, rows: int, groups: int) -> Any:
        """A few rows times a few groups of columns: the sums stay in registers."""
        lanes, vector = self.shape.lanes, self.vector
        code = FunctionBuilder(self.module, f"block_{rows}_{groups}", [PTR, I64, PTR, I64, I64, PTR, I64, I64])
        at, (x, x_width, weights, stride, depth, y, y_width, adds) = code.at, code.given
        places = [(row, part) for row in range(rows) for part in range(2 * groups)]
        goals = {(row, part): at.add(at.mul(y_width, I64(row)), I64(part * lanes)) for row, part in places}
        sums = {place: code.variable(vector) for place in places}
        for place in places:
            at.store(real(vector, 0.0), sums[place])
        with code.loop(0, depth) as step:
            columns = []
            for group in range(groups):
                pairs = code.element(weights, at.add(at.mul(stride, I64(group)), at.mul(step, I64(lanes))), I32)
                code.ask_for(code.element(pairs, AHEAD * lanes, I32))
                both = at.load(pairs, typ=integers(vector), align=4 * lanes)
                lower, upper = at.shl(both, same(both.type, 16)), at.and_(both, same(both.type, -65536))
                columns += [at.bitcast(lower, vector), at.bitcast(upper, vector)]
            for row in range(rows):
                number = code.read(x, at.add(at.mul(x_width, I64(row)), step), F32)
                number = code.everywhere(number, vector)
                for part, column in enumerate(columns):
                    before = at.load(sums[row, part], typ=vector)
                    at.store(code.fused(number, column, before), sums[row, part])
        adds = at.icmp_signed("!=", adds, I64(0))
        for place in places:
            # What is there comes last: it may be much more than what is added, which would be rounded like it.
            before = at.select(adds, code.vector(y, goals[place], vector), real(vector, 0.0))
            code.keep(at.fadd(at.load(sums[place], typ=vector), before), y, goals[place])
        at.ret_void()
        return code.function

    def _groups_of_any(self, groups: int) -> Any:
        """So many groups of columns times as many rows as there are, some groups at a time where registers need it."""
        code = FunctionBuilder(self.module, f"groups_{groups}", [I64, PTR, I64, PTR, I64, I64, PTR, I64, I64])
        at, (count, x, x_width, weights, stride, depth, y, y_width, adds) = code.at, code.given

        def write(rows: int) -> None:
            at_once = min(groups, self._groups(rows))
            for group in range(0, groups, at_once):
                matrix = code.element(weights, at.mul(stride, I64(group)), I32)
                sums = code.element(y, group * self.shape.columns, F32)
                block = self.block[rows, min(at_once, groups - group)]
                at.call(block, [x, x_width, matrix, stride, depth, sums, y_width, adds])

        code.by_count(count, self.tallest, write)
        at.ret_void()
        return code.function

    def _multiply(self) -> Any:
        """All rows times the groups of columns from the first to before the end."""
        lanes, columns = self.shape.lanes, self.shape.columns
        code = FunctionBuilder(self.module, "multiply", [PTR, I64, I64, PTR, I64, PTR, I64, I64, I64, I64])
        at, (x, x_width, rows, weights, depth, y, y_width, first, end, adds) = code.at, code.given
        stride = at.mul(depth, I64(lanes))
        for groups in range(self._groups(1), 0, -1):
            multiply = self._groups_of_any(groups)
            last = at.sub(end, at.srem(at.sub(end, first), I64(groups)))
            with code.loop(first, last, groups) as group:
                own = code.element(weights, at.mul(group, stride), I32)
                out = code.element(y, at.mul(group, I64(columns)), F32)
                # The same weights for all rows, before the next ones come from memory.
                with code.parts(depth, LONGEST_SUM) as (above, deep), code.parts(rows, self.tallest) as (row, some):
                    numbers = code.element(x, at.add(at.mul(row, x_width), above), F32)
                    matrix = code.element(own, at.mul(above, I64(lanes)), I32)
                    sums = code.element(out, at.mul(row, y_width), F32)
                    goes_on = at.or_(adds, at.zext(at.icmp_signed(">", above, I64(0)), I64))
                    at.call(multiply, [some, numbers, x_width, matrix, stride, deep, sums, y_width, goes_on])
            first = last
        at.ret_void()
        return code.function

    # What lies between them

    def _norm(self) -> Any:
        """Rows divided by their root mean square, and weighted."""
        shape, vector = self.shape, self.vector
        code = FunctionBuilder(self.module, "norm", [PTR, PTR, PTR, I64])
        at, (rows, weight, out, count) = code.at, code.given
        squares = code.variable(vector)
        with code.loop(0, count) as row:
            base = at.mul(row, I64(shape.hidden))
            at.store(real(vector, 0.0), squares)
            with code.loop(0, shape.hidden, shape.lanes) as place:
                value = code.vector(rows, at.add(base, place), vector)
                at.store(code.fused(value, value, at.load(squares, typ=vector)), squares)
            share = self._share_of(code, at.load(squares, typ=vector), shape.hidden, vector)
            with code.loop(0, shape.hidden, shape.lanes) as place:
                value = at.fmul(code.vector(rows, at.add(base, place), vector), share)
                code.keep(at.fmul(value, code.vector(weight, place, vector)), out, at.add(base, place))
        at.ret_void()
        return code.function

    def _share_of(self, code: FunctionBuilder, squares: Any, count: int, kind: Any) -> Any:
        """One by the root of the mean of so many squares, which are summed up by lanes."""
        at = code.at
        mean = at.fdiv(code.total(squares), real(F32, count))
        return code.everywhere(at.fdiv(real(F32, 1.0), code.root(at.fadd(mean, real(F32, self.shape.epsilon)))), kind)

    def _gate(self) -> Any:
        """Columns of the gate through a sigmoid-weighted gate, times those that it is for; kept in the gate's place."""
        shape, vector = self.shape, self.vector
        code = FunctionBuilder(self.module, "gate", [PTR, I64, I64, I64])
        at, (wide, rows, first, end) = code.at, code.given
        with code.loop(0, rows) as row, code.loop(first, end, shape.lanes) as column:
            place = at.add(at.mul(row, I64(2 * shape.inner)), column)
            gate, up = (code.vector(wide, at.add(place, I64(half)), vector) for half in (0, shape.inner))
            shut = at.fadd(code.power(at.fsub(real(vector, 0.0), gate)), real(vector, 1.0))
            code.keep(at.fmul(at.fdiv(gate, shut), up), wide, place)
        at.ret_void()
        return code.function

    # Attention

    def _cached(self, code: FunctionBuilder, base: Any, place: Any) -> Any:
        """Numbers of the cache that lie together."""
        read = code.upper_halves if self.shape.narrow else code.vector
        return read(base, place, self.vector)

    def _compare(self, rows: int) -> Any:
        """How a head of a few rows agrees with each slot's key; what a row may not see it agrees with least."""
        shape = self.shape
        code = FunctionBuilder(self.module, f"compare_{rows}", [PTR, I64, PTR, I64, PTR, I64, PTR, I64])
        at, (query, query_width, keys, slots, mask, mask_width, scores, score_width) = code.at, code.given
        places = range(0, shape.width, shape.lanes)
        asked = [
            [code.vector(query, at.add(at.mul(query_width, I64(row)), I64(place)), self.vector) for place in places]
            for row in range(rows)
        ]
        with code.loop(0, slots) as slot:
            key = [self._cached(code, keys, at.add(at.mul(slot, I64(shape.width)), I64(place))) for place in places]
            for row in range(rows):
                agreed = at.fmul(asked[row][0], key[0])
                for one, other in zip(asked[row][1:], key[1:], strict=True):
                    agreed = code.fused(one, other, agreed)
                seen = at.add(at.mul(mask_width, I64(row)), slot)
                barred = code.upper_half(mask, seen) if shape.narrow else code.read(mask, seen, F32)
                goal = code.element(scores, at.add(at.mul(score_width, I64(row)), slot), F32)
                at.store(at.fadd(code.total(agreed), barred), goal)
        at.ret_void()
        return code.function

    def _odds(self) -> Any:
        """Exponentials of a row's scores less their maximum, in place; returns one by their sum.

        The scores are padded to whole vectors. The sum is exact, so it does not depend on which lanes the slots are in:
        other branches' slots between a row's ancestors change no bit.
        """
        vector, lanes = self.vector, self.shape.lanes
        code = FunctionBuilder(self.module, "odds", [PTR, I64], F32)
        at, (scores, slots) = code.at, code.given
        width = at.and_(at.add(slots, I64(lanes - 1)), I64(-lanes))
        with code.loop(slots, width) as slot:
            at.store(real(F32, LOWEST), code.element(scores, slot, F32))
        wide = ir.VectorType(F64, lanes)
        most, total = code.variable(vector), code.variable(wide)
        at.store(real(vector, LOWEST), most)
        at.store(ir.Constant(wide, [0.0] * lanes), total)
        with code.loop(0, width, lanes) as slot:
            at.store(code.larger(at.load(most, typ=vector), code.vector(scores, slot, vector)), most)
        highest = code.everywhere(code.largest(at.load(most, typ=vector)), vector)
        with code.loop(0, width, lanes) as slot:
            power = code.power(at.fsub(code.vector(scores, slot, vector), highest))
            code.keep(power, scores, slot)
            at.store(at.fadd(at.load(total, typ=wide), code.fixed_point(power)), total)
        at.ret(at.fdiv(real(F32, 1.0), code.exact_total(at.load(total, typ=wide))))
        return code.function

    def _mix(self, rows: int) -> Any:
        """What a few rows take from the values of all slots, by their shares."""
        shape, vector = self.shape, self.vector
        code = FunctionBuilder(self.module, f"mix_{rows}", [PTR, I64, PTR, I64, PTR, PTR, I64])
        at, (scores, score_width, values, slots, scales, out, out_width) = code.at, code.given
        places = range(0, shape.width, shape.lanes)
        at_once = 2 * self._groups(rows)
        sums = [[code.variable(vector) for _ in range(at_once)] for _ in range(rows)]
        for some in (places[first : first + at_once] for first in range(0, len(places), at_once)):
            for row in range(rows):
                for total, _ in zip(sums[row], some, strict=False):
                    at.store(real(vector, 0.0), total)
            with code.loop(0, slots) as slot:
                value = [
                    self._cached(code, values, at.add(at.mul(slot, I64(shape.width)), I64(place))) for place in some
                ]
                for row in range(rows):
                    share = code.read(scores, at.add(at.mul(score_width, I64(row)), slot), F32)
                    share = code.everywhere(share, vector)
                    for total, part in zip(sums[row], value, strict=False):
                        at.store(code.fused(share, part, at.load(total, typ=vector)), total)
            for row in range(rows):
                scale = code.everywhere(code.read(scales, row, F32), vector)
                for total, place in zip(sums[row], some, strict=False):
                    goal = at.add(at.mul(out_width, I64(row)), I64(place))
                    code.keep(at.fmul(at.load(total, typ=vector), scale), out, goal)
        at.ret_void()
        return code.function

    # Written where they are needed

    def head(self, code: FunctionBuilder, base: Any, begin: Any, bias: Any) -> dict[int, Any]:
        """A head's numbers by their places, with what is added to them."""
        found = {}
        for place in range(0, self.shape.width, self.part.count):
            where = code.at.add(begin, I64(place))
            found[place] = code.vector(base, where, self.part)
            if self.shape.biased:
                found[place] = code.at.fadd(found[place], code.vector(bias, where, self.part))
        return found

    def normed(self, code: FunctionBuilder, head: dict[int, Any], weight: Any) -> dict[int, Any]:
        """A head under its norm, where there is one."""
        if not self.shape.norms_heads:
            return head
        squares = real(self.part, 0.0)
        for part in head.values():
            squares = code.fused(part, part, squares)
        share = self._share_of(code, squares, self.shape.width, self.part)
        times: Callable[[Any, Any], Any] = code.at.fmul
        return {place: times(times(part, share), code.vector(weight, place, self.part)) for place, part in head.items()}

    def turned(self, code: FunctionBuilder, head: dict[int, Any], angles: Any) -> dict[int, Any]:
        """A head turned by where it stands: cosines come first, then sines, half of them with a minus."""
        half, found = self.shape.width // 2, {}
        for place, part in head.items():
            cosine, sine = (code.vector(angles, where, self.part) for where in (place, self.shape.width + place))
            other = head[place - half if place >= half else place + half]
            found[place] = code.fused(part, cosine, code.at.fmul(other, sine))
        return found
