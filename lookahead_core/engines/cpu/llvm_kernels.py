"""KernelBuilder: LLVM IR of the kernels of a decoder layer for few rows: matmul, RMSNorm, SiLU gate, attention, RoPE.

Sums are float32 throughout. Weight matrices are bfloat16; keys, values and masks are bfloat16 or float32, like the
model. Rows are float32. For a bfloat16 model on a processor with AVX512-BF16, rows are rounded to bfloat16 before a
layer's matrix multiplies them: one instruction multiplies two numbers in each lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from lookahead_core.engines.cpu.llvm_builder import (
    BF16,
    F32,
    F64,
    I32,
    I64,
    PTR,
    FunctionBuilder,
    as_i64,
    constant,
    same_lanes,
)

ATTEND = 6
"""Rows of one attention kernel call."""
LONGEST_SUM = 640
"""The most products summed in a register before the sum is added to the result: longer sums round more."""
AHEAD = 64
"""Prefetch distance, in registers of a column group's weights: measured in docs/performance-notes.md."""
LOWEST = -(2 - 2**-23) * 2.0**127
"""The lowest finite float32 number."""


@dataclass(frozen=True)
class LayerShape:
    """The dimensions of a decoder layer, and of the vector registers for which it is compiled; `shape_of` makes it."""

    lanes: int
    """float32 numbers in a vector register."""
    blockings: tuple[tuple[int, int], ...]
    """(most rows, column groups) of a block of the matmul kernel whose sums fill the registers."""
    bf16_cache: bool
    """Whether keys, values and masks are bfloat16; float32 otherwise."""
    bf16_rows: bool
    """Whether rows are rounded to bfloat16 before a layer's matrix multiplies them: `dot_pairs` must be available."""
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
        """Outputs in a column group, the unit in which kernels divide a matrix: two for each lane of a register."""
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
        """Whether the kernels can compute this shape.

        `hidden`, `intermediate` and `qkv` must be multiples of `group_width`, `head_width` one of `lanes`, and `heads`
        one of `key_heads`. Half of `head_width` must be a multiple of `lanes` or smaller than `lanes`.
        """
        return (
            all(width % self.group_width == 0 for width in (self.hidden, self.intermediate, self.qkv))
            and self.head_width % self.lanes == self.head_width // 2 % min(self.lanes, self.head_width // 2) == 0
            and self.heads % self.key_heads == 0
        )


def _numbers_in_step(row_type: Any) -> int:
    """Return how many numbers of a row one step of the matmul kernel multiplies: 1 float32, or 2 bfloat16."""
    return 2 if row_type is BF16 else 1


def _step_type(row_type: Any) -> Any:
    """Return the IR type as which a step's numbers of a row are loaded: F32, or I32 for the bits of two bfloat16."""
    return I32 if row_type is BF16 else F32


class KernelBuilder:
    """Builds `module`, an LLVM module with the kernels for a shape that `fits`, as soon as it is created.

    Attributes hold the kernels' IR functions: `matmul`, `layer_matmul`, `rms_norm`, `silu_gate` and `softmax`, and in
    dicts by number of rows (1 to ATTEND) `score` and `weigh_values`. Only functions of the same module can call them.
    `matmul` multiplies rows of float32, for the output matrix, and `layer_matmul` rows of `row_type`.
    """

    def __init__(self, shape: LayerShape) -> None:
        self.shape = shape
        self.module = ir.Module("lookahead")
        self.vector = ir.VectorType(F32, shape.lanes)
        self.zero = constant(self.vector, 0.0)
        self.head_vector = ir.VectorType(F32, min(shape.lanes, shape.head_width // 2))
        """The vector type in which a head is loaded: at most half a head."""
        self.cache_type = BF16 if shape.bf16_cache else F32
        self.most_rows = max(rows for rows, _ in shape.blockings)
        self.row_type = BF16 if shape.bf16_rows else F32
        """The type of the numbers in a row that a layer's matrix multiplies."""
        self.matmul = self._matmul(F32)
        self.layer_matmul = self._matmul(BF16) if shape.bf16_rows else self.matmul
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

    def _most_groups(self, rows: int) -> int:
        """Return the most column groups of a block of this many rows whose sums fit into the registers.

        `rows` must be at most `most_rows` (StopIteration). A column group is `group_width` outputs of a weight matrix.
        """
        return next(groups for most_rows, groups in sorted(self.shape.blockings) if rows <= most_rows)

    def _block(self, rows: int, groups: int, row_type: Any) -> Any:
        """Return a new IR function that multiplies `rows` rows by `groups` column groups, with the sums in registers.

        A column group is `group_width` outputs of a matrix in the layout for rows of this type, see `paired_outputs`
        and `paired_inputs`. A step is one number of a row of float32, or two of a row of bfloat16. The function
        overwrites `y`, or adds to it if its last argument is not 0.
        """
        lanes, kind = self.shape.lanes, _step_type(row_type)
        code = FunctionBuilder(self.module, f"block_{rows}_{groups}_{kind}", [PTR, I64, PTR, I64, I64, PTR, I64, I64])
        at, (x, x_width, weights, stride, steps, y, y_width, adds) = code.at, code.arguments
        multiply_add = code.dot_pairs if row_type is BF16 else code.fma
        sums = {(row, part): code.variable(self.zero) for row in range(rows) for part in range(2 * groups)}
        with code.loop(0, steps) as step:
            columns = []
            for group in range(groups):
                first = code.index(group, stride, at.mul(step, I64(_numbers_in_step(row_type) * lanes)))
                columns += self._load_columns(code, code.address(weights, first, I32), row_type)
            for row in range(rows):
                numbers = code.splat(code.load(x, code.index(row, x_width, step), kind), columns[0].type)
                for part, column in enumerate(columns):
                    sums[row, part].set(multiply_add(numbers, column, sums[row, part].get()))
        adds = at.icmp_signed("!=", adds, I64(0))
        for (row, part), total in sums.items():
            # The old value is added last: it may be much larger than the products, and would absorb them.
            index = code.index(row, y_width, part * lanes)
            old = at.select(adds, code.load_float(y, index, self.vector), self.zero)
            code.store_float(at.fadd(total.get(), old), y, index)
        return code.end()

    def _load_columns(self, code: FunctionBuilder, weights: Any, row_type: Any) -> list[Any]:
        """Emit loads of a column group's weights for one step, and return two vectors: each lane is one output's.

        `weights` is their address. For rows of float32 a lane has one weight as float32; for rows of bfloat16 it has
        two as the bits of an i32.
        """
        at, lanes, vectors = code.at, self.shape.lanes, []
        for register in range(_numbers_in_step(row_type)):
            address = code.address(weights, register * lanes, I32)
            code.prefetch(code.address(address, AHEAD * lanes, I32))
            vectors.append(at.load(address, typ=same_lanes(self.vector, I32), align=4 * lanes))
        if row_type is BF16:
            return vectors
        (pairs,) = vectors
        lower, upper = at.shl(pairs, constant(pairs.type, 16)), at.and_(pairs, constant(pairs.type, -65536))
        return [at.bitcast(lower, self.vector), at.bitcast(upper, self.vector)]

    def _matmul(self, row_type: Any) -> Any:
        """Return a new IR function: all rows of `x` times column groups `first` to `end - 1` of a matrix.

        A column group is `group_width` outputs of a matrix in the layout for rows of this type. The function overwrites
        these columns of `y`, or adds to them if `adds` is not 0. `x_width` counts numbers of 32 bits.
        """
        lanes, in_step = self.shape.lanes, _numbers_in_step(row_type)
        blocks = {
            (rows, groups): self._block(rows, groups, row_type)
            for rows in range(1, self.most_rows + 1)
            for groups in range(1, self._most_groups(rows) + 1)
        }
        name = f"matmul_{_step_type(row_type)}"
        code = FunctionBuilder(self.module, name, [PTR, I64, I64, PTR, I64, PTR, I64, I64, I64, I64])
        at, (x, x_width, rows, weights, depth, y, y_width, first, end, adds) = code.at, code.arguments
        stride, all_steps = at.mul(depth, I64(lanes)), at.udiv(depth, I64(in_step))
        for groups in range(self._most_groups(1), 0, -1):
            last = at.sub(end, at.srem(at.sub(end, first), I64(groups)))
            with code.loop(first, last, groups) as group:
                out = code.address(y, at.mul(group, I64(self.shape.group_width)), F32)
                # All rows use a block of weights before the next block is loaded.
                chunks = code.chunks(all_steps, LONGEST_SUM // in_step), code.chunks(rows, self.most_rows)
                with chunks[0] as (step, steps), chunks[1] as (row, count):
                    numbers = code.address(x, code.index(row, x_width, step), I32)
                    first_weight = code.index(group, stride, at.mul(step, I64(in_step * lanes)))
                    matrix = code.address(weights, first_weight, I32)
                    sums = code.address(out, at.mul(row, y_width), F32)
                    adds_here = at.or_(adds, at.zext(at.icmp_signed(">", step, I64(0)), I64))
                    for known_count in code.cases(count, self.most_rows):
                        at_once = min(groups, self._most_groups(known_count))
                        for start in range(0, groups, at_once):
                            block = blocks[known_count, min(at_once, groups - start)]
                            part = code.address(matrix, at.mul(stride, I64(start)), I32)
                            part_sums = code.address(sums, start * self.shape.group_width, F32)
                            at.call(block, [numbers, x_width, part, stride, steps, part_sums, y_width, adds_here])
            first = last
        return code.end()

    # Element-wise kernels

    def _rms_norm(self) -> Any:
        """Return the new IR function `rms_norm`: RMSNorm of each row, times the norm's weight.

        The result is written to `out`, see `row_address`.
        """
        hidden, lanes, vector = self.shape.hidden, self.shape.lanes, self.vector
        code = FunctionBuilder(self.module, "rms_norm", [PTR, PTR, PTR, I64])
        at, (rows, weight, out, count) = code.at, code.arguments
        with code.loop(0, count) as row:
            squares = code.variable(self.zero)
            with code.loop(0, hidden, lanes) as column:
                value = code.load_float(rows, code.index(row, hidden, column), vector)
                squares.set(code.fma(value, value, squares.get()))
            scale = self._inverse_rms(code, squares.get(), hidden)
            with code.loop(0, hidden, lanes) as column:
                value = at.fmul(code.load_float(rows, code.index(row, hidden, column), vector), scale)
                value = at.fmul(value, code.load_float(weight, column, vector))
                code.store_float(value, self.row_address(code, out, row, hidden, column), 0, self.row_type)
        return code.end()

    def _inverse_rms(self, code: FunctionBuilder, squares: Any, count: int) -> Any:
        """Emit 1 / sqrt(mean + epsilon), and return a vector with it in every lane.

        The mean is that of `count` squares; each lane of the vector `squares` holds the sum of a part of them.
        """
        at = code.at
        mean = at.fdiv(code.reduce("fadd", squares), F32(count))
        root = code.intrinsic("sqrt", at.fadd(mean, F32(self.shape.epsilon)))
        return code.splat(at.fdiv(F32(1.0), root), squares.type)

    def _silu_gate(self) -> Any:
        """Return the new IR function `silu_gate`: silu(gate) * up for all rows, written to `gated`, see `row_address`.

        A row of `gate_up` holds the gate projection, then the up projection. Only columns `first` to `end - 1` of the
        gate are computed; both must be multiples of `lanes`.
        """
        width = self.shape.intermediate
        code = FunctionBuilder(self.module, "silu_gate", [PTR, PTR, I64, I64, I64])
        at, (gate_up, gated, rows, first, end) = code.at, code.arguments
        with code.loop(0, rows) as row, code.loop(first, end, self.shape.lanes) as column:
            index = code.index(row, 2 * width, column)
            gate, up = (code.load_float(gate_up, at.add(index, I64(half)), self.vector) for half in (0, width))
            divisor = at.fadd(code.exp(at.fsub(self.zero, gate)), constant(self.vector, 1.0))
            value = at.fmul(at.fdiv(gate, divisor), up)
            code.store_float(value, self.row_address(code, gated, row, width, column), 0, self.row_type)
        return code.end()

    # Attention

    def _load_slot(self, code: FunctionBuilder, states: Any, slot: Any, columns: range) -> list[Any]:
        """Emit loads of a slot's key or value in one head, and return float32 vectors, one from each of `columns` on.

        `states` is the address of the keys, or the values, of all slots of the head.
        """
        indices = (code.index(slot, self.shape.head_width, column) for column in columns)
        return [code.load_float(states, index, self.vector, self.cache_type) for index in indices]

    def _score(self, rows: int) -> Any:
        """Return a new IR function that writes the attention scores of one head for `rows` rows and all slots.

        A score is the dot product of the row's query and the slot's key, plus the mask's number. Queries must be scaled
        before. Masks are read and scores written in whole vectors: up to `lanes` - 1 numbers after the last slot's are
        read and overwritten.
        """
        lanes = self.shape.lanes
        code = FunctionBuilder(self.module, f"score_{rows}", [PTR, I64, PTR, I64, PTR, I64, PTR, I64])
        at, (query, query_width, keys, slots, mask, mask_width, scores, score_width) = code.at, code.arguments
        columns = range(0, self.shape.head_width, lanes)
        queries = [
            [code.load_float(query, code.index(row, query_width, column), self.vector) for column in columns]
            for row in range(rows)
        ]
        with code.loop(0, slots, lanes) as first:
            products_of: list[list[Any]] = [[] for _ in range(rows)]
            for lane in range(lanes):
                slot = at.add(first, I64(lane))
                # Lanes after the last slot read its key again: there may be no memory after it.
                slot = at.select(at.icmp_signed("<", slot, slots), slot, at.sub(slots, I64(1)))
                key = self._load_slot(code, keys, slot, columns)
                for row in range(rows):
                    products = at.fmul(queries[row][0], key[0])
                    for query_part, key_part in zip(queries[row][1:], key[1:], strict=True):
                        products = code.fma(query_part, key_part, products)
                    products_of[row].append(products)
            for row in range(rows):
                sums = code.sums_of_lanes(products_of[row])
                masked = code.load_float(mask, code.index(row, mask_width, first), self.vector, self.cache_type)
                code.store_float(at.fadd(sums, masked), scores, code.index(row, score_width, first))
        return code.end()

    def _softmax(self) -> Any:
        """Return the new IR function `softmax` for one row: replaces scores by exp(score - maximum), returns 1 / sum.

        It pads the row to whole vectors, for which there must be room. Summands are rounded so that sums up to 8,192
        are exact, and do not depend on the lanes in which slots are: slots of other branches between a row's ancestors
        change no bit.
        """
        vector, lanes = self.vector, self.shape.lanes
        code = FunctionBuilder(self.module, "softmax", [PTR, I64], F32)
        at, (scores, slots) = code.at, code.arguments
        width = at.and_(at.add(slots, I64(lanes - 1)), I64(-lanes))
        with code.loop(slots, width) as slot:
            code.store_float(F32(LOWEST), scores, slot)
        maximum = code.variable(constant(vector, LOWEST))
        with code.loop(0, width, lanes) as slot:
            maximum.set(code.intrinsic("maxnum", maximum.get(), code.load_float(scores, slot, vector)))
        highest = code.splat(code.reduce("fmax", maximum.get()), vector)
        total = code.variable(constant(same_lanes(vector, F64), 0.0))
        with code.loop(0, width, lanes) as slot:
            power = code.exp(at.fsub(code.load_float(scores, slot, vector), highest))
            code.store_float(power, scores, slot)
            total.set(at.fadd(total.get(), code.to_fixed_point(power)))
        at.ret(at.fdiv(F32(1.0), at.fptrunc(code.reduce("fadd", total.get()), F32)))
        return code.function

    def _weigh_values(self, rows: int) -> Any:
        """Return a new IR function for one head of `rows` rows: writes each row's weighted sum of all slots' values.

        Weights are the numbers with which `softmax` has replaced the scores. A row's sum is multiplied by its scale,
        which is what `softmax` has returned, and written to `out`, see `row_address`.
        """
        shape, vector = self.shape, self.vector
        code = FunctionBuilder(self.module, f"weigh_values_{rows}", [PTR, I64, PTR, I64, PTR, PTR, I64])
        at, (scores, score_width, values, slots, scales, out, out_width) = code.at, code.arguments
        step = 2 * self._most_groups(rows) * shape.lanes
        for first in range(0, shape.head_width, step):
            columns = range(first, min(first + step, shape.head_width), shape.lanes)
            sums = {(row, part): code.variable(self.zero) for row in range(rows) for part in range(len(columns))}
            with code.loop(0, slots) as slot:
                value = self._load_slot(code, values, slot, columns)
                for row in range(rows):
                    score = code.splat(code.load(scores, code.index(row, score_width, slot), F32), vector)
                    for part, numbers in enumerate(value):
                        sums[row, part].set(code.fma(score, numbers, sums[row, part].get()))
            for row in range(rows):
                scale = code.splat(code.load(scales, row, F32), vector)
                for part, column in enumerate(columns):
                    place = self.row_address(code, out, row, out_width, column)
                    code.store_float(at.fmul(sums[row, part].get(), scale), place, 0, self.row_type)
        return code.end()

    # Emitted inline

    def row_address(self, code: FunctionBuilder, rows: Any, row: Any, width: Any, column: Any) -> Any:
        """Emit and return the address of a number in a row that a layer's matrix multiplies.

        `rows` is the address of rows that have room for `width` float32 numbers each. A row of bfloat16 fills the first
        half of its room, so that rows are 2 * `width` bfloat16 numbers apart.
        """
        if self.row_type is BF16:
            width = code.at.mul(as_i64(width), I64(2))
        return code.address(rows, code.index(row, width, column), self.row_type)

    def load_head(self, code: FunctionBuilder, qkv: Any, head: Any, bias: Any) -> dict[int, Any]:
        """Emit loads of one head from a row of queries, keys and values, with the bias added if the shape has one.

        `qkv` and `bias` are addresses. `head` counts the heads of queries, then of keys, then of values. Returns the
        head's vectors by their first column in the head.
        """
        vectors = {}
        for column in range(0, self.shape.head_width, self.head_vector.count):
            index = code.index(head, self.shape.head_width, column)
            vectors[column] = code.load_float(qkv, index, self.head_vector)
            if self.shape.has_bias:
                vectors[column] = code.at.fadd(vectors[column], code.load_float(bias, index, self.head_vector))
        return vectors

    def norm_and_rotate(self, code: FunctionBuilder, head: dict[int, Any], weight: Any, angles: Any) -> dict[int, Any]:
        """Emit a head's RMSNorm, if the shape has one, and rotary embedding; return its vectors by their first column.

        `head` is as `load_head` returns it, and the norm changes it. `weight`, which only the norm reads, and `angles`
        are addresses. At `angles` are the row's cosines, then the sines, with their first half negated.
        """
        at, vector, width = code.at, self.head_vector, self.shape.head_width
        if self.shape.has_head_norms:
            squares = constant(vector, 0.0)
            for part in head.values():
                squares = code.fma(part, part, squares)
            scale = self._inverse_rms(code, squares, width)
            for column, part in head.items():
                head[column] = at.fmul(at.fmul(part, scale), code.load_float(weight, column, vector))
        rotated = {}
        for column, part in head.items():
            cosine, sine = (code.load_float(angles, first + column, vector) for first in (0, width))
            rotated[column] = code.fma(part, cosine, at.fmul(head[(column + width // 2) % width], sine))
        return rotated
