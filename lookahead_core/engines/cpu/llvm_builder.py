"""FunctionBuilder: emits LLVM IR with loops, chunks, vector loads and stores, and float32 math."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

VOID, PTR = ir.VoidType(), ir.PointerType()
I16, I32, I64, F32, F64 = ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()
LOWEST: float = struct.unpack("f", struct.pack("I", 0xFF7FFFFF))[0]
"""The lowest finite float32 number."""
HIGHEST_POWER, LOWEST_POWER = 88.0, -87.0
"""Arguments of `exp` are clamped to this range: float32 overflows above it, and results below it are 0."""
LOG2_E, LN2 = 1.4426950408889634, (0.693359375, -2.12194440e-4)
"""log2(e), and ln(2) in two parts; the first part has so few digits that its multiples are exact in float32."""
FIXED_POINT = 4096.0
"""Adding and subtracting this rounds a float64 number between 0 and 1 to a multiple of 2**-40."""
TERMS = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
"""Polynomial coefficients for (exp(x) - 1 - x) / x² on [-ln 2 / 2, ln 2 / 2], accurate to the last bit of float32."""


def as_i64(number: Any) -> Any:
    """An i64 constant for an int; an IR value unchanged."""
    return I64(number) if isinstance(number, int) else number


def f32_constant(kind: Any, value: float) -> Any:
    """A float32 constant, or a vector constant with it in every lane."""
    value = struct.unpack("f", struct.pack("f", value))[0]
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def i32_vector(like: Any) -> Any:
    """The i32 vector type with as many lanes as a vector type."""
    return ir.VectorType(I32, like.count)


def i32_splat(kind: Any, value: int) -> Any:
    """A vector constant with an integer in every lane."""
    return ir.Constant(kind, [value] * kind.count)


class FunctionBuilder:
    """Builds one LLVM function. `at` is the IRBuilder, positioned where the next instruction goes."""

    def __init__(self, module: ir.Module, name: str, kinds: Sequence[Any], result: Any = VOID) -> None:
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(result, kinds), name)
        self.at = ir.IRBuilder(self.function.append_basic_block())
        self.arguments = self.function.args

    # Control flow

    @contextmanager
    def loop(self, first: Any, end: Any, step: Any = 1) -> Iterator[Any]:
        """A context manager: its body is the body of a for loop from `first` to before `end`, and gets the index."""
        at, counter = self.at, self.alloca(I64)
        at.store(as_i64(first), counter)
        head, body, done = (self.function.append_basic_block() for _ in range(3))
        at.branch(head)
        at.position_at_end(head)
        index = at.load(counter, typ=I64)
        at.cbranch(at.icmp_signed("<", index, as_i64(end)), body, done)
        at.position_at_end(body)
        yield index
        at.store(at.add(index, as_i64(step)), counter)
        at.branch(head)
        at.position_at_end(done)

    @contextmanager
    def chunks(self, count: Any, most: int) -> Iterator[tuple[Any, Any]]:
        """Like `loop`, over equal chunks of `count` items, at most `most` items each; gets start and size."""
        at = self.at
        # A count of 0 gives no chunks, and no division by 0.
        others = at.sdiv(at.sub(count, I64(1)), I64(most))
        size = at.sdiv(at.add(count, others), at.add(others, I64(1)))
        with self.loop(0, count, size) as first:
            left = at.sub(count, first)
            yield first, at.select(at.icmp_signed("<", left, size), left, size)

    def switch_on_count(self, count: Any, most: int, write: Callable[[int], None]) -> None:
        """A switch over `count` from 1 to `most`; `write` emits the case of each number."""
        done, nowhere = (self.function.append_basic_block() for _ in range(2))
        choice = self.at.switch(count, nowhere)
        for known in range(1, most + 1):
            block = self.function.append_basic_block()
            choice.add_case(I64(known), block)
            self.at.position_at_end(block)
            write(known)
            self.at.branch(done)
        self.at.position_at_end(nowhere)
        self.at.unreachable()
        self.at.position_at_end(done)

    # Memory

    def alloca(self, kind: Any, count: int = 1) -> Any:
        """The address of `count` uninitialised stack variables."""
        with self.at.goto_entry_block():
            return self.at.bitcast(self.at.alloca(kind, count), PTR)

    def address(self, base: Any, place: Any, kind: Any) -> Any:
        """The address of element `place` of an array."""
        return self.at.gep(base, [as_i64(place)], source_etype=kind)

    def load(self, base: Any, place: Any, kind: Any) -> Any:
        """Element `place` of an array."""
        return self.at.load(self.address(base, place, kind), typ=kind)

    def load_vector(self, base: Any, place: Any, kind: Any) -> Any:
        """A vector of adjacent float32 elements that begins at element `place`."""
        return self.at.load(self.address(base, place, F32), typ=kind, align=4)

    def store_vector(self, value: Any, base: Any, place: Any) -> None:
        """Store a vector in adjacent float32 elements that begin at element `place`."""
        self.at.store(value, self.address(base, place, F32), align=4)

    def load_bf16_vector(self, base: Any, place: Any, kind: Any) -> Any:
        """A vector of adjacent bfloat16 elements, converted to float32: their bits are its upper halves."""
        lanes = ir.VectorType(I16, kind.count)
        halves = self.at.load(self.address(base, place, I16), typ=lanes, align=2)
        wide = self.at.zext(halves, i32_vector(kind))
        return self.at.bitcast(self.at.shl(wide, i32_splat(wide.type, 16)), kind)

    def load_bf16(self, base: Any, place: Any) -> Any:
        """One bfloat16 element, converted to float32."""
        half = self.at.zext(self.load(base, place, I16), I32)
        return self.at.bitcast(self.at.shl(half, I32(16)), F32)

    def store_bf16_vector(self, value: Any, base: Any, place: Any) -> None:
        """Store a float32 vector in adjacent bfloat16 elements, rounded to nearest, ties to even."""
        at, kind = self.at, i32_vector(value.type)
        bits = at.bitcast(value, kind)
        odd = at.and_(at.lshr(bits, i32_splat(kind, 16)), i32_splat(kind, 1))
        rounded = at.lshr(at.add(at.add(bits, i32_splat(kind, 0x7FFF)), odd), i32_splat(kind, 16))
        at.store(at.trunc(rounded, ir.VectorType(I16, kind.count)), self.address(base, place, I16), align=2)

    def prefetch(self, place: Any) -> None:
        """Prefetch the cache line at an address."""
        function = self.declare("llvm.prefetch.p0", VOID, [PTR, I32, I32, I32])
        self.at.call(function, [place, I32(0), I32(3), I32(1)])

    # Arithmetic

    def fma(self, left: Any, right: Any, others: Any) -> Any:
        """left * right + others, rounded once."""
        return self._intrinsic("fma", [left, right, others])

    def sqrt(self, value: Any) -> Any:
        """The square root of each lane."""
        return self._intrinsic("sqrt", [value])

    def maximum(self, one: Any, other: Any) -> Any:
        """The larger value in each lane."""
        return self._intrinsic("maxnum", [one, other])

    def splat(self, value: Any, kind: Any) -> Any:
        """A vector with a scalar in every lane."""
        nothing = ir.Constant(kind, ir.Undefined)
        first = self.at.insert_element(nothing, value, I32(0))
        return self.at.shuffle_vector(first, nothing, i32_splat(i32_vector(kind), 0))

    def reduce_add(self, vector: Any) -> Any:
        """The sum of all lanes, in any order."""
        function = self.declare(f"llvm.vector.reduce.fadd.v{vector.type.count}f32", F32, [F32, vector.type])
        return self.at.call(function, [f32_constant(F32, -0.0), vector], fastmath=("reassoc",))

    def to_fixed_point(self, value: Any) -> Any:
        """Numbers between 0 and 1 as float64, rounded to multiples of 2**-40: sums of up to 8,192 are exact."""
        kind = ir.VectorType(F64, value.type.count)
        far = ir.Constant(kind, [FIXED_POINT] * kind.count)
        return self.at.fsub(self.at.fadd(self.at.fpext(value, kind), far), far)

    def reduce_add_exact(self, vector: Any) -> Any:
        """The exact sum of all lanes of fixed-point numbers, as float32."""
        function = self.declare(f"llvm.vector.reduce.fadd.v{vector.type.count}f64", F64, [F64, vector.type])
        return self.at.fptrunc(self.at.call(function, [ir.Constant(F64, -0.0), vector], fastmath=("reassoc",)), F32)

    def reduce_max(self, vector: Any) -> Any:
        """The maximum of all lanes."""
        return self.at.call(
            self.declare(f"llvm.vector.reduce.fmax.v{vector.type.count}f32", F32, [vector.type]), [vector]
        )

    def exp(self, value: Any) -> Any:
        """exp of each lane: a power of two times a polynomial of the remainder. NaN stays NaN."""
        at, kind = self.at, value.type
        bounded = self.maximum(
            self._intrinsic("minnum", [value, f32_constant(kind, HIGHEST_POWER)]), f32_constant(kind, LOWEST_POWER)
        )
        twos = self._intrinsic("rint", [at.fmul(bounded, f32_constant(kind, LOG2_E))])
        rest = bounded
        for part in LN2:
            rest = self.fma(twos, f32_constant(kind, -part), rest)
        sum_ = f32_constant(kind, TERMS[0])
        for term in TERMS[1:]:
            sum_ = self.fma(sum_, rest, f32_constant(kind, term))
        sum_ = self.fma(at.fmul(rest, rest), sum_, at.fadd(rest, f32_constant(kind, 1.0)))
        exponents = at.add(at.fptosi(twos, i32_vector(kind)), i32_splat(i32_vector(kind), 127))
        power = at.fmul(sum_, at.bitcast(at.shl(exponents, i32_splat(i32_vector(kind), 23)), kind))
        power = at.select(at.fcmp_ordered("<", value, f32_constant(kind, LOWEST_POWER)), f32_constant(kind, 0.0), power)
        return at.select(at.fcmp_unordered("uno", value, value), value, power)

    def _intrinsic(self, name: str, given: list[Any]) -> Any:
        """The result of an LLVM intrinsic on scalars or vectors of one type."""
        kind = given[0].type
        suffix = f"v{kind.count}f32" if isinstance(kind, ir.VectorType) else "f32"
        return self.at.call(self.declare(f"llvm.{name}.{suffix}", kind, [kind] * len(given)), given)

    def declare(self, name: str, result: Any, kinds: Sequence[Any]) -> Any:
        """The declaration of an external function, added to the module once."""
        return self.module.globals.get(name) or ir.Function(self.module, ir.FunctionType(result, kinds), name)
