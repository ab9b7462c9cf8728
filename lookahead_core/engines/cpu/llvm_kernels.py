"""KernelBuilder: LLVM IR of the kernels of a decoder layer for few rows: matmul, RMSNorm, SiLU gate, attention, RoPE.

Rows and sums are float32 throughout. Weight matrices are bfloat16; keys, values and masks are bfloat16 or float32, like
the model.
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
    f32_constant,
    i32_splat,
    i32_vector,
)

ATTEND = 6
"""Rows of one attention kernel call."""
LONGEST_SUM = 640
"""Products summed in a register before the partial sum is added to the result: longer sums round more."""
AHEAD = 64
"""Prefetch distance of weights, in steps of the inner loop: measured in docs/performance-notes.md."""


@dataclass(frozen=True)
class LayerShape:
    """The dimensions of decoder layers, and of the vector registers that they are compiled for."""

    lanes: int
    """float32 numbers in a vector register."""
    blockings: tuple[tuple[int, int], ...]
    """(most rows, column groups) of a block of the matmul kernel whose sums fill the registers."""
    bf16_cache: bool
    """Whether keys, values and masks are bfloat16; float32 otherwise."""
    hidden: int
    intermediate: int
    heads: int
    key_heads: int
    head_width: int
    epsilon: float
    scaling: float
    has_bias: bool
    """Whether the query, key and value projections have a bias."""
    has_head_norms: bool
    """Whether queries and keys have an RMSNorm for each head."""

    @property
    def group_width(self) -> int:
        """Columns in a group of the weight layout: two bfloat16 in each 32-bit lane of a register."""
        return 2 * self.lanes

    @property
    def qkv(self) -> int:
        """Numbers in a row of queries, keys and values together."""
        return (self.heads + 2 * self.key_heads) * self.head_width

    @property
    def attention_width(self) -> int:
        """Numbers in a row of queries, and of attention output."""
        return self.heads * self.head_width

    @property
    def fits(self) -> bool:
        """Whether all widths are multiples of the groups and registers that the kernels use."""
        return (
            all(width % self.group_width == 0 for width in (self.hidden, self.intermediate, self.qkv))
            and self.head_width % self.lanes == self.head_width // 2 % min(self.lanes, self.head_width // 2) == 0
            and self.heads % self.key_heads == 0
        )


class KernelBuilder:
    """Builds a module with the kernels for a shape; attributes hold the functions, in dicts by number of rows."""

    def __init__(self, shape: LayerShape) -> None:
        self.shape = shape
        self.module = ir.Module("lookahead")
        self.vector = ir.VectorType(F32, shape.lanes)
        self.head_vector = ir.VectorType(F32, min(shape.lanes, shape.head_width // 2))
        """The vector type in which a head is loaded: at most half a head."""
        self.most_rows = max(rows for rows, _ in shape.blockings)
        self.blocks = {(rows, groups): self._block_function(rows, groups) for rows, groups in self._block_sizes()}
        self.matmul = self._matmul()
        self.rms_norm = self._rms_norm()
        self.silu_gate = self._silu_gate()
        self.score = {rows: self._score(rows) for rows in range(1, ATTEND + 1)}
        self.softmax = self._softmax()
        self.weigh_values = {rows: self._weigh_values(rows) for rows in range(1, ATTEND + 1)}
        for function in self.module.functions:
            if function.blocks:
                function.linkage = "internal"
                function.attributes.add("noinline")

    # Matrix products

    def _block_sizes(self) -> Iterator[tuple[int, int]]:
        """(rows, column groups) of each block function."""
        for rows in range(1, self.most_rows + 1):
            yield from ((rows, groups) for groups in range(1, self._groups_at_once(rows) + 1))

    def _groups_at_once(self, rows: int) -> int:
        return next(groups for tall, groups in sorted(self.shape.blockings) if rows <= tall)

    def _block_function(self, rows: int, groups: int) -> Any:
        """A function that multiplies `rows` rows by `groups` column groups and keeps the sums in registers."""
        lanes, vector = self.shape.lanes, self.vector
        code = FunctionBuilder(self.module, f"block_{rows}_{groups}", [PTR, I64, PTR, I64, I64, PTR, I64, I64])
        at, (x, x_width, weights, stride, depth, y, y_width, adds) = code.at, code.arguments
        places = [(row, part) for row in range(rows) for part in range(2 * groups)]
        goals = {(row, part): at.add(at.mul(y_width, I64(row)), I64(part * lanes)) for row, part in places}
        sums = {place: code.alloca(vector) for place in places}
        for place in places:
            at.store(f32_constant(vector, 0.0), sums[place])
        with code.loop(0, depth) as step:
            columns = []
            for group in range(groups):
                pairs = code.address(weights, at.add(at.mul(stride, I64(group)), at.mul(step, I64(lanes))), I32)
                code.prefetch(code.address(pairs, AHEAD * lanes, I32))
                both = at.load(pairs, typ=i32_vector(vector), align=4 * lanes)
                lower, upper = at.shl(both, i32_splat(both.type, 16)), at.and_(both, i32_splat(both.type, -65536))
                columns += [at.bitcast(lower, vector), at.bitcast(upper, vector)]
            for row in range(rows):
                number = code.load(x, at.add(at.mul(x_width, I64(row)), step), F32)
                number = code.splat(number, vector)
                for part, column in enumerate(columns):
                    before = at.load(sums[row, part], typ=vector)
                    at.store(code.fma(number, column, before), sums[row, part])
        adds = at.icmp_signed("!=", adds, I64(0))
        for place in places:
            # The old value is added last: it may be much larger than the products, and would absorb them.
            before = at.select(adds, code.load_vector(y, goals[place], vector), f32_constant(vector, 0.0))
            code.store_vector(at.fadd(at.load(sums[place], typ=vector), before), y, goals[place])
        at.ret_void()
        return code.function

    def _matmul_groups(self, groups: int) -> Any:
        """A function that multiplies up to `most_rows` rows by `groups` column groups."""
        code = FunctionBuilder(self.module, f"groups_{groups}", [I64, PTR, I64, PTR, I64, I64, PTR, I64, I64])
        at, (count, x, x_width, weights, stride, depth, y, y_width, adds) = code.at, code.arguments

        def write(rows: int) -> None:
            at_once = min(groups, self._groups_at_once(rows))
            for group in range(0, groups, at_once):
                matrix = code.address(weights, at.mul(stride, I64(group)), I32)
                sums = code.address(y, group * self.shape.group_width, F32)
                block = self.blocks[rows, min(at_once, groups - group)]
                at.call(block, [x, x_width, matrix, stride, depth, sums, y_width, adds])

        code.switch_on_count(count, self.most_rows, write)
        at.ret_void()
        return code.function

    def _matmul(self) -> Any:
        """The function `matmul`: all rows times column groups `first` to `end - 1`; adds to `y` if `adds` is set."""
        lanes, columns = self.shape.lanes, self.shape.group_width
        code = FunctionBuilder(self.module, "multiply", [PTR, I64, I64, PTR, I64, PTR, I64, I64, I64, I64])
        at, (x, x_width, rows, weights, depth, y, y_width, first, end, adds) = code.at, code.arguments
        stride = at.mul(depth, I64(lanes))
        for groups in range(self._groups_at_once(1), 0, -1):
            multiply = self._matmul_groups(groups)
            last = at.sub(end, at.srem(at.sub(end, first), I64(groups)))
            with code.loop(first, last, groups) as group:
                own = code.address(weights, at.mul(group, stride), I32)
                out = code.address(y, at.mul(group, I64(columns)), F32)
                # All rows use a block of weights before the next block is loaded.
                with code.chunks(depth, LONGEST_SUM) as (above, deep), code.chunks(rows, self.most_rows) as (row, some):
                    numbers = code.address(x, at.add(at.mul(row, x_width), above), F32)
                    matrix = code.address(own, at.mul(above, I64(lanes)), I32)
                    sums = code.address(out, at.mul(row, y_width), F32)
                    goes_on = at.or_(adds, at.zext(at.icmp_signed(">", above, I64(0)), I64))
                    at.call(multiply, [some, numbers, x_width, matrix, stride, deep, sums, y_width, goes_on])
            first = last
        at.ret_void()
        return code.function

    # Element-wise kernels

    def _rms_norm(self) -> Any:
        """The function `rms_norm`: RMSNorm of each row, written to `out`."""
        shape, vector = self.shape, self.vector
        code = FunctionBuilder(self.module, "norm", [PTR, PTR, PTR, I64])
        at, (rows, weight, out, count) = code.at, code.arguments
        squares = code.alloca(vector)
        with code.loop(0, count) as row:
            base = at.mul(row, I64(shape.hidden))
            at.store(f32_constant(vector, 0.0), squares)
            with code.loop(0, shape.hidden, shape.lanes) as place:
                value = code.load_vector(rows, at.add(base, place), vector)
                at.store(code.fma(value, value, at.load(squares, typ=vector)), squares)
            share = self._inverse_rms(code, at.load(squares, typ=vector), shape.hidden, vector)
            with code.loop(0, shape.hidden, shape.lanes) as place:
                value = at.fmul(code.load_vector(rows, at.add(base, place), vector), share)
                code.store_vector(at.fmul(value, code.load_vector(weight, place, vector)), out, at.add(base, place))
        at.ret_void()
        return code.function

    def _inverse_rms(self, code: FunctionBuilder, squares: Any, count: int, kind: Any) -> Any:
        """1 / sqrt(mean + epsilon) in every lane, from the sums of `count` squares by lane."""
        at = code.at
        mean = at.fdiv(code.reduce_add(squares), f32_constant(F32, count))
        return code.splat(
            at.fdiv(f32_constant(F32, 1.0), code.sqrt(at.fadd(mean, f32_constant(F32, self.shape.epsilon)))), kind
        )

    def _silu_gate(self) -> Any:
        """The function `silu_gate`: silu(gate) * up for a range of columns, written over the gate."""
        shape, vector = self.shape, self.vector
        code = FunctionBuilder(self.module, "gate", [PTR, I64, I64, I64])
        at, (wide, rows, first, end) = code.at, code.arguments
        with code.loop(0, rows) as row, code.loop(first, end, shape.lanes) as column:
            place = at.add(at.mul(row, I64(2 * shape.intermediate)), column)
            gate, up = (code.load_vector(wide, at.add(place, I64(half)), vector) for half in (0, shape.intermediate))
            shut = at.fadd(code.exp(at.fsub(f32_constant(vector, 0.0), gate)), f32_constant(vector, 1.0))
            code.store_vector(at.fmul(at.fdiv(gate, shut), up), wide, place)
        at.ret_void()
        return code.function

    # Attention

    def _load_cached(self, code: FunctionBuilder, base: Any, place: Any) -> Any:
        """A vector of keys or values of the cache, as float32."""
        read = code.load_bf16_vector if self.shape.bf16_cache else code.load_vector
        return read(base, place, self.vector)

    def _score(self, rows: int) -> Any:
        """A function that writes the attention scores of one head: query times key plus mask, for each row and slot."""
        shape = self.shape
        code = FunctionBuilder(self.module, f"compare_{rows}", [PTR, I64, PTR, I64, PTR, I64, PTR, I64])
        at, (query, query_width, keys, slots, mask, mask_width, scores, score_width) = code.at, code.arguments
        places = range(0, shape.head_width, shape.lanes)
        asked = [
            [
                code.load_vector(query, at.add(at.mul(query_width, I64(row)), I64(place)), self.vector)
                for place in places
            ]
            for row in range(rows)
        ]
        with code.loop(0, slots) as slot:
            key = [
                self._load_cached(code, keys, at.add(at.mul(slot, I64(shape.head_width)), I64(place)))
                for place in places
            ]
            for row in range(rows):
                agreed = at.fmul(asked[row][0], key[0])
                for one, other in zip(asked[row][1:], key[1:], strict=True):
                    agreed = code.fma(one, other, agreed)
                seen = at.add(at.mul(mask_width, I64(row)), slot)
                barred = code.load_bf16(mask, seen) if shape.bf16_cache else code.load(mask, seen, F32)
                goal = code.address(scores, at.add(at.mul(score_width, I64(row)), slot), F32)
                at.store(at.fadd(code.reduce_add(agreed), barred), goal)
        at.ret_void()
        return code.function

    def _softmax(self) -> Any:
        """The function `softmax`: exp(score - maximum) in place for one row; returns 1 / sum.

        Scores are padded to whole vectors. The sum is exact, so it does not depend on the lanes in which slots are:
        slots of other branches between a row's ancestors change no bit.
        """
        vector, lanes = self.vector, self.shape.lanes
        code = FunctionBuilder(self.module, "odds", [PTR, I64], F32)
        at, (scores, slots) = code.at, code.arguments
        width = at.and_(at.add(slots, I64(lanes - 1)), I64(-lanes))
        with code.loop(slots, width) as slot:
            at.store(f32_constant(F32, LOWEST), code.address(scores, slot, F32))
        wide = ir.VectorType(F64, lanes)
        most, total = code.alloca(vector), code.alloca(wide)
        at.store(f32_constant(vector, LOWEST), most)
        at.store(ir.Constant(wide, [0.0] * lanes), total)
        with code.loop(0, width, lanes) as slot:
            at.store(code.maximum(at.load(most, typ=vector), code.load_vector(scores, slot, vector)), most)
        highest = code.splat(code.reduce_max(at.load(most, typ=vector)), vector)
        with code.loop(0, width, lanes) as slot:
            power = code.exp(at.fsub(code.load_vector(scores, slot, vector), highest))
            code.store_vector(power, scores, slot)
            at.store(at.fadd(at.load(total, typ=wide), code.to_fixed_point(power)), total)
        at.ret(at.fdiv(f32_constant(F32, 1.0), code.reduce_add_exact(at.load(total, typ=wide))))
        return code.function

    def _weigh_values(self, rows: int) -> Any:
        """A function that writes the attention output of one head: the values of all slots, weighted and scaled."""
        shape, vector = self.shape, self.vector
        code = FunctionBuilder(self.module, f"mix_{rows}", [PTR, I64, PTR, I64, PTR, PTR, I64])
        at, (scores, score_width, values, slots, scales, out, out_width) = code.at, code.arguments
        places = range(0, shape.head_width, shape.lanes)
        at_once = 2 * self._groups_at_once(rows)
        sums = [[code.alloca(vector) for _ in range(at_once)] for _ in range(rows)]
        for some in (places[first : first + at_once] for first in range(0, len(places), at_once)):
            for row in range(rows):
                for total, _ in zip(sums[row], some, strict=False):
                    at.store(f32_constant(vector, 0.0), total)
            with code.loop(0, slots) as slot:
                value = [
                    self._load_cached(code, values, at.add(at.mul(slot, I64(shape.head_width)), I64(place)))
                    for place in some
                ]
                for row in range(rows):
                    share = code.load(scores, at.add(at.mul(score_width, I64(row)), slot), F32)
                    share = code.splat(share, vector)
                    for total, part in zip(sums[row], value, strict=False):
                        at.store(code.fma(share, part, at.load(total, typ=vector)), total)
            for row in range(rows):
                scale = code.splat(code.load(scales, row, F32), vector)
                for total, place in zip(sums[row], some, strict=False):
                    goal = at.add(at.mul(out_width, I64(row)), I64(place))
                    code.store_vector(at.fmul(at.load(total, typ=vector), scale), out, goal)
        at.ret_void()
        return code.function

    # Emitted inline

    def load_head(self, code: FunctionBuilder, base: Any, begin: Any, bias: Any) -> dict[int, Any]:
        """The vectors of one head by their first column, with the bias added."""
        found = {}
        for place in range(0, self.shape.head_width, self.head_vector.count):
            where = code.at.add(begin, I64(place))
            found[place] = code.load_vector(base, where, self.head_vector)
            if self.shape.has_bias:
                found[place] = code.at.fadd(found[place], code.load_vector(bias, where, self.head_vector))
        return found

    def norm_head(self, code: FunctionBuilder, head: dict[int, Any], weight: Any) -> dict[int, Any]:
        """A head after its RMSNorm; unchanged in models without one."""
        if not self.shape.has_head_norms:
            return head
        squares = f32_constant(self.head_vector, 0.0)
        for part in head.values():
            squares = code.fma(part, part, squares)
        share = self._inverse_rms(code, squares, self.shape.head_width, self.head_vector)
        times: Callable[[Any, Any], Any] = code.at.fmul
        return {
            place: times(times(part, share), code.load_vector(weight, place, self.head_vector))
            for place, part in head.items()
        }

    def rotate_head(self, code: FunctionBuilder, head: dict[int, Any], angles: Any) -> dict[int, Any]:
        """A head after rotary embedding; `angles` holds cosines, then sines with the first half negated."""
        half, found = self.shape.head_width // 2, {}
        for place, part in head.items():
            cosine, sine = (
                code.load_vector(angles, where, self.head_vector) for where in (place, self.shape.head_width + place)
            )
            other = head[place - half if place >= half else place + half]
            found[place] = code.fma(part, cosine, code.at.fmul(other, sine))
        return found
