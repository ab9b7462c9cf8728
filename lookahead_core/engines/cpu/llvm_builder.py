"""Functions for the processor, written step by step as LLVM takes them: numbers, vectors of them, loops and choices."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

VOID, PTR = ir.VoidType(), ir.PointerType()
I16, I32, I64, F32, F64 = ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()
LOWEST: float = struct.unpack("f", struct.pack("I", 0xFF7FFFFF))[0]
"""The lowest number that float32 holds."""
HIGHEST_POWER, LOWEST_POWER = 88.0, -87.0
"""What the exponential is taken of lies between these: float32 holds no more, and next to nothing below."""
LOG2_E, LN2 = 1.4426950408889634, (0.693359375, -2.12194440e-4)
"""The logarithm of two in two parts, of which the first has so few digits that its multiples are exact."""
FIXED_POINT = 4096.0
"""A float64 number between 0 and 1, plus this and minus this, is rounded to a multiple of 2**-40."""
TERMS = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
"""A polynomial for (exp(x) - 1 - x) / x² from -ln 2 / 2 to ln 2 / 2, good to float32's last place."""


def whole(number: Any) -> Any:
    """A whole number as a value."""
    return I64(number) if isinstance(number, int) else number


def real(kind: Any, value: float) -> Any:
    """A number of float32, in every lane."""
    value = struct.unpack("f", struct.pack("f", value))[0]
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def integers(like: Any) -> Any:
    """The kind of whole numbers that are as many as these."""
    return ir.VectorType(I32, like.count)


def same(kind: Any, value: int) -> Any:
    """A whole number in every lane."""
    return ir.Constant(kind, [value] * kind.count)


class FunctionBuilder:
    """One function while it is written; `at` is where the next step comes."""

    def __init__(self, module: ir.Module, name: str, kinds: Sequence[Any], result: Any = VOID) -> None:
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(result, kinds), name)
        self.at = ir.IRBuilder(self.function.append_basic_block())
        self.given = self.function.args

    # Loops and choices

    @contextmanager
    def loop(self, first: Any, end: Any, step: Any = 1) -> Iterator[Any]:
        """What is written within is done for each number from the first to before the end."""
        at, counter = self.at, self.variable(I64)
        at.store(whole(first), counter)
        head, body, done = (self.function.append_basic_block() for _ in range(3))
        at.branch(head)
        at.position_at_end(head)
        index = at.load(counter, typ=I64)
        at.cbranch(at.icmp_signed("<", index, whole(end)), body, done)
        at.position_at_end(body)
        yield index
        at.store(at.add(index, whole(step)), counter)
        at.branch(head)
        at.position_at_end(done)

    @contextmanager
    def parts(self, count: Any, most: int) -> Iterator[tuple[Any, Any]]:
        """So many of something in parts as equal as can be, none larger than `most`: each one's first, and its size."""
        at = self.at
        # Of nothing there are no parts, and nothing is divided by how many there are.
        others = at.sdiv(at.sub(count, I64(1)), I64(most))
        size = at.sdiv(at.add(count, others), at.add(others, I64(1)))
        with self.loop(0, count, size) as first:
            left = at.sub(count, first)
            yield first, at.select(at.icmp_signed("<", left, size), left, size)

    def by_count(self, count: Any, most: int, write: Callable[[int], None]) -> None:
        """For each number that something may be, what `write` writes for it."""
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

    def variable(self, kind: Any, count: int = 1) -> Any:
        """Room for something that changes, or for several."""
        with self.at.goto_entry_block():
            return self.at.bitcast(self.at.alloca(kind, count), PTR)

    def element(self, base: Any, place: Any, kind: Any) -> Any:
        """Where something stands in a row of its kind."""
        return self.at.gep(base, [whole(place)], source_etype=kind)

    def read(self, base: Any, place: Any, kind: Any) -> Any:
        """What stands there; an address, where that is its kind."""
        return self.at.load(self.element(base, place, kind), typ=kind)

    def vector(self, base: Any, place: Any, kind: Any) -> Any:
        """Numbers that lie together."""
        return self.at.load(self.element(base, place, F32), typ=kind, align=4)

    def keep(self, value: Any, base: Any, place: Any) -> None:
        """Put numbers where they shall lie together."""
        self.at.store(value, self.element(base, place, F32), align=4)

    def upper_halves(self, base: Any, place: Any, kind: Any) -> Any:
        """Numbers of sixteen bits that lie together, as float32: they are its upper halves."""
        lanes = ir.VectorType(I16, kind.count)
        halves = self.at.load(self.element(base, place, I16), typ=lanes, align=2)
        wide = self.at.zext(halves, integers(kind))
        return self.at.bitcast(self.at.shl(wide, same(wide.type, 16)), kind)

    def upper_half(self, base: Any, place: Any) -> Any:
        """One number of sixteen bits."""
        half = self.at.zext(self.read(base, place, I16), I32)
        return self.at.bitcast(self.at.shl(half, I32(16)), F32)

    def keep_upper_halves(self, value: Any, base: Any, place: Any) -> None:
        """Put numbers away in sixteen bits, each as the nearest; of two as near as the even one."""
        at, kind = self.at, integers(value.type)
        bits = at.bitcast(value, kind)
        odd = at.and_(at.lshr(bits, same(kind, 16)), same(kind, 1))
        rounded = at.lshr(at.add(at.add(bits, same(kind, 0x7FFF)), odd), same(kind, 16))
        at.store(at.trunc(rounded, ir.VectorType(I16, kind.count)), self.element(base, place, I16), align=2)

    def ask_for(self, place: Any) -> None:
        """Have a line of memory come that is needed soon."""
        function = self.known("llvm.prefetch.p0", VOID, [PTR, I32, I32, I32])
        self.at.call(function, [place, I32(0), I32(3), I32(1)])

    # Arithmetic

    def fused(self, left: Any, right: Any, others: Any) -> Any:
        """left · right + others, rounded once."""
        return self._step("fma", [left, right, others])

    def root(self, value: Any) -> Any:
        return self._step("sqrt", [value])

    def larger(self, one: Any, other: Any) -> Any:
        return self._step("maxnum", [one, other])

    def everywhere(self, value: Any, kind: Any) -> Any:
        """A number in every lane."""
        nothing = ir.Constant(kind, ir.Undefined)
        first = self.at.insert_element(nothing, value, I32(0))
        return self.at.shuffle_vector(first, nothing, same(integers(kind), 0))

    def total(self, vector: Any) -> Any:
        """The sum of all lanes."""
        function = self.known(f"llvm.vector.reduce.fadd.v{vector.type.count}f32", F32, [F32, vector.type])
        return self.at.call(function, [real(F32, -0.0), vector], fastmath=("reassoc",))

    def fixed_point(self, value: Any) -> Any:
        """Numbers between 0 and 1 in float64, rounded to multiples of 2**-40: up to 8,192 of them are added exactly."""
        kind = ir.VectorType(F64, value.type.count)
        far = ir.Constant(kind, [FIXED_POINT] * kind.count)
        return self.at.fsub(self.at.fadd(self.at.fpext(value, kind), far), far)

    def exact_total(self, vector: Any) -> Any:
        """The sum of all lanes of fixed-point numbers, as float32."""
        function = self.known(f"llvm.vector.reduce.fadd.v{vector.type.count}f64", F64, [F64, vector.type])
        return self.at.fptrunc(self.at.call(function, [ir.Constant(F64, -0.0), vector], fastmath=("reassoc",)), F32)

    def largest(self, vector: Any) -> Any:
        """The largest of all lanes."""
        return self.at.call(
            self.known(f"llvm.vector.reduce.fmax.v{vector.type.count}f32", F32, [vector.type]), [vector]
        )

    def power(self, value: Any) -> Any:
        """The exponential: a power of two, times a polynomial of what is left."""
        at, kind = self.at, value.type
        bounded = self.larger(self._step("minnum", [value, real(kind, HIGHEST_POWER)]), real(kind, LOWEST_POWER))
        twos = self._step("rint", [at.fmul(bounded, real(kind, LOG2_E))])
        rest = bounded
        for part in LN2:
            rest = self.fused(twos, real(kind, -part), rest)
        sum_ = real(kind, TERMS[0])
        for term in TERMS[1:]:
            sum_ = self.fused(sum_, rest, real(kind, term))
        sum_ = self.fused(at.fmul(rest, rest), sum_, at.fadd(rest, real(kind, 1.0)))
        exponents = at.add(at.fptosi(twos, integers(kind)), same(integers(kind), 127))
        power = at.fmul(sum_, at.bitcast(at.shl(exponents, same(integers(kind), 23)), kind))
        power = at.select(at.fcmp_ordered("<", value, real(kind, LOWEST_POWER)), real(kind, 0.0), power)
        # What is no number stays none.
        return at.select(at.fcmp_unordered("uno", value, value), value, power)

    def _step(self, name: str, given: list[Any]) -> Any:
        """A step that LLVM has a name for, on numbers or vectors of them."""
        kind = given[0].type
        suffix = f"v{kind.count}f32" if isinstance(kind, ir.VectorType) else "f32"
        return self.at.call(self.known(f"llvm.{name}.{suffix}", kind, [kind] * len(given)), given)

    def known(self, name: str, result: Any, kinds: Sequence[Any]) -> Any:
        """A function that is written elsewhere."""
        return self.module.globals.get(name) or ir.Function(self.module, ir.FunctionType(result, kinds), name)
