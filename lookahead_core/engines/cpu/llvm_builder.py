"""FunctionBuilder: emits LLVM IR with loops, chunks, vector loads and stores, and float32 math."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

VOID, PTR = ir.VoidType(), ir.PointerType()
I32, I64, F32, F64 = ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()
BF16 = ir.IntType(16)
"""The bits of a bfloat16 number."""
HIGHEST_POWER, LOWEST_POWER = 88.0, -87.0
"""Arguments of `exp` are clamped to this range: float32 overflows above it, and results below it are 0."""
LOG2_E, LN2 = 1.4426950408889634, (0.693359375, -2.12194440e-4)
"""log2(e), and ln(2) in two parts; the first part has so few digits that its multiples are exact in float32."""
FIXED_POINT = 4096.0
"""Adding and subtracting this rounds a float64 number between 0 and 1 to a multiple of 2**-40."""
TERMS = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
"""Polynomial coefficients for (exp(x) - 1 - x) / x² on [-ln 2 / 2, ln 2 / 2], accurate to the last bit of float32."""


def constant(kind: Any, value: float) -> Any:
    """Return an IR constant of a type; for a vector type, with the value in every lane."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def as_i64(number: Any) -> Any:
    """Return an i64 constant for an int, and an IR value unchanged."""
    return I64(number) if isinstance(number, int) else number


def same_lanes(kind: Any, element: Any) -> Any:
    """Return a vector type of `element` with as many lanes as `kind`; `element` itself if `kind` is no vector type."""
    return ir.VectorType(element, kind.count) if isinstance(kind, ir.VectorType) else element


@dataclass(frozen=True)
class Variable:
    """A stack variable of a function under construction; `FunctionBuilder.variable` makes it.

    The fields are the function's IRBuilder, the variable's address, and the IR type of its value.
    """

    at: ir.IRBuilder
    address: Any
    kind: Any

    def get(self) -> Any:
        """Emit a load of the variable, and return the loaded IR value."""
        return self.at.load(self.address, typ=self.kind)

    def set(self, value: Any) -> None:
        """Emit a store of an IR value into the variable."""
        self.at.store(value, self.address)


class FunctionBuilder:
    """Adds a function to an LLVM module; its methods append instructions to it, where the IRBuilder `at` is positioned.

    `kinds` are the IR types of the function's arguments, and `result` that of its return value. Numbers and addresses
    of the function under construction are IR values (of llvmlite); methods return those that their instructions
    compute.
    """

    def __init__(self, module: ir.Module, name: str, kinds: Sequence[Any], result: Any = VOID) -> None:
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(result, kinds), name)
        self.at = ir.IRBuilder(self.function.append_basic_block())
        self.arguments = self.function.args

    def end(self) -> Any:
        """Emit `ret void`, which ends a function without result, and return the IR function."""
        self.at.ret_void()
        return self.function

    # Control flow

    @contextmanager
    def loop(self, first: Any, end: Any, step: Any = 1) -> Iterator[Any]:
        """Emit a for loop from `first` to before `end`: a context manager that yields the index (i64).

        Instructions emitted inside the `with` block are the loop's body. All three arguments are ints or IR values
        (i64); `step` must be above 0.
        """
        at, counter = self.at, self.variable(as_i64(first))
        head, body, done = (self.function.append_basic_block() for _ in range(3))
        at.branch(head)
        at.position_at_end(head)
        index = counter.get()
        at.cbranch(at.icmp_signed("<", index, as_i64(end)), body, done)
        at.position_at_end(body)
        yield index
        counter.set(at.add(index, as_i64(step)))
        at.branch(head)
        at.position_at_end(done)

    @contextmanager
    def chunks(self, count: Any, most: int) -> Iterator[tuple[Any, Any]]:
        """Context manager whose body emits that of a loop over chunks of `count` items; yields a chunk's (start, size).

        There are as few chunks of at most `most` items as possible. They are equal, but the last may be smaller; a
        count of 0 gives none. `most` is an int above 1; `count` and the yielded numbers are IR values (i64).
        """
        at = self.at
        # A count of 0 gives no chunks, and no division by 0.
        others = at.sdiv(at.sub(count, I64(1)), I64(most))
        size = at.sdiv(at.add(count, others), at.add(others, I64(1)))
        with self.loop(0, count, size) as first:
            left = at.sub(count, first)
            yield first, at.select(at.icmp_signed("<", left, size), left, size)

    def cases(self, count: Any, most: int) -> Iterator[int]:
        """Emit a switch: yield the numbers 1 to `most`; the code emitted after each runs if `count` is that number.

        `count`, an IR value (i64), must be one of these numbers when the code runs: nothing checks it. The generator
        must be exhausted.
        """
        done, nowhere = (self.function.append_basic_block() for _ in range(2))
        choice = self.at.switch(count, nowhere)
        for known in range(1, most + 1):
            block = self.function.append_basic_block()
            choice.add_case(I64(known), block)
            self.at.position_at_end(block)
            yield known
            self.at.branch(done)
        self.at.position_at_end(nowhere)
        self.at.unreachable()
        self.at.position_at_end(done)

    # Memory

    def alloca(self, kind: Any, count: int = 1) -> Any:
        """Return the address of `count` adjacent, uninitialised stack variables of the IR type `kind`.

        They are allocated once, where the function begins, even if this is called in a loop's body.
        """
        with self.at.goto_entry_block():
            return self.at.bitcast(self.at.alloca(kind, count), PTR)

    def variable(self, initial: Any) -> Variable:
        """Return a stack variable that is set to `initial`, an IR value, each time that the code emitted here runs."""
        variable = Variable(self.at, self.alloca(initial.type), initial.type)
        variable.set(initial)
        return variable

    def index(self, row: Any, width: Any, column: Any = 0) -> Any:
        """Emit and return the index (i64) of an element of a row-major matrix with rows of `width` elements.

        All three arguments are ints or IR values (i64).
        """
        return self.at.add(self.at.mul(as_i64(width), as_i64(row)), as_i64(column))

    def address(self, base: Any, index: Any, kind: Any) -> Any:
        """Emit and return the address of element number `index` in an array at `base` with elements of type `kind`."""
        return self.at.gep(base, [as_i64(index)], source_etype=kind)

    def load(self, base: Any, index: Any, kind: Any) -> Any:
        """Emit and return a load of element number `index` in an array at `base` with elements of type `kind`."""
        return self.at.load(self.address(base, index, kind), typ=kind)

    def load_record(self, base: Any, fields: Mapping[str, Any], record: Any = 0) -> dict[str, Any]:
        """Emit loads of the fields of record number `record` in an array at address `base`; return IR values by name.

        `fields` holds the IR types of a record's fields by name, in their order in memory; each has 64 bits.
        """
        indices = {name: self.index(record, len(fields), position) for position, name in enumerate(fields)}
        return {name: self.load(base, indices[name], kind) for name, kind in fields.items()}

    def load_float(self, base: Any, index: Any, kind: Any, element: Any = F32) -> Any:
        """Emit and return a load of float32 numbers from an array at address `base`, from element number `index` on.

        `kind` is F32 for one number, or a vector type of F32 for adjacent ones. `element` is the type of the array's
        elements: F32, or BF16, which are converted.
        """
        address = self.address(base, index, element)
        if element is F32:
            return self.at.load(address, typ=kind, align=4)
        # The bits of a bfloat16 number are the upper half of the same number's bits in float32.
        bits = self.at.zext(self.at.load(address, typ=same_lanes(kind, BF16), align=2), same_lanes(kind, I32))
        return self.at.bitcast(self.at.shl(bits, constant(bits.type, 16)), kind)

    def store_float(self, value: Any, base: Any, index: Any, element: Any = F32) -> None:
        """Emit a store of a float32 number, or of a vector's numbers side by side, from element number `index` on.

        `base` is the address of the array, and `element` the type of its elements: F32, or BF16, for which numbers are
        rounded to nearest, ties to even.
        """
        at, kind, address = self.at, same_lanes(value.type, I32), self.address(base, index, element)
        if element is F32:
            at.store(value, address, align=4)
        else:
            bits = at.bitcast(value, kind)
            odd = at.and_(at.lshr(bits, constant(kind, 16)), constant(kind, 1))
            rounded = at.lshr(at.add(at.add(bits, constant(kind, 0x7FFF)), odd), constant(kind, 16))
            at.store(at.trunc(rounded, same_lanes(kind, BF16)), address, align=2)

    def prefetch(self, place: Any) -> None:
        """Emit a prefetch, for reading, of the cache line at the address `place`."""
        function = self.declare("llvm.prefetch.p0", VOID, [PTR, I32, I32, I32])
        self.at.call(function, [place, I32(0), I32(3), I32(1)])

    # Arithmetic

    def fma(self, left: Any, right: Any, others: Any) -> Any:
        """Emit and return `left * right + others`, rounded once, of float32 numbers or of vectors of one type."""
        return self.intrinsic("fma", left, right, others)

    def dot_pairs(self, left: Any, right: Any, others: Any) -> Any:
        """Emit and return, in each lane, `others` + left's lower * right's lower + left's upper * right's upper number.

        `left` and `right` are vectors of I32, whose bits are two bfloat16 numbers; `others` is a vector of float32.
        Denormal numbers count as 0. It is an instruction of processors with AVX512-BF16.
        """
        # Assembly, since llvmlite has no bfloat type for LLVM's intrinsic. Its operands are in AT&T order, and the
        # constraint "0" puts `others` into the register of the result.
        kind = ir.FunctionType(others.type, [others.type, left.type, right.type])
        return self.at.call(ir.InlineAsm(kind, "vdpbf16ps $3, $2, $0", "=v,0,v,v"), [others, left, right])

    def splat(self, value: Any, kind: Any) -> Any:
        """Emit and return a vector of type `kind` with the number `value` in every lane."""
        nothing = ir.Constant(kind, ir.Undefined)
        first = self.at.insert_element(nothing, value, I32(0))
        return self.at.shuffle_vector(first, nothing, constant(same_lanes(kind, I32), 0))

    def reduce(self, operation: str, vector: Any) -> Any:
        """Emit and return the sum ("fadd") or maximum ("fmax") of all lanes of a vector, computed in any order."""
        element = vector.type.element
        arguments = [constant(element, -0.0), vector] if operation == "fadd" else [vector]
        name = f"llvm.vector.reduce.{operation}.v{vector.type.count}{element.intrinsic_name}"
        function = self.declare(name, element, [argument.type for argument in arguments])
        return self.at.call(function, arguments, fastmath=("reassoc",))

    def sums_of_lanes(self, vectors: Sequence[Any]) -> Any:
        """Emit and return a vector whose lane i is the sum of all lanes of `vectors[i]`.

        There must be as many vectors as a vector has lanes. Each sum adds neighbouring lanes, then neighbouring sums of
        these, and so on.
        """
        even, odd = range(0, 2 * len(vectors), 2), range(1, 2 * len(vectors), 2)
        while len(vectors) > 1:
            pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
            vectors = [self.at.fadd(self._pick(*pair, even), self._pick(*pair, odd)) for pair in pairs]
        return vectors[0]

    def _pick(self, left: Any, right: Any, lanes: Sequence[int]) -> Any:
        """Emit and return a vector of these lanes of two vectors; the lanes of `right` are numbered after `left`'s."""
        return self.at.shuffle_vector(left, right, ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes)))

    def to_fixed_point(self, value: Any) -> Any:
        """Emit and return the conversion of float32 numbers from 0 to 1 to float64, rounded to multiples of 2**-40.

        `value` is one number or a vector. Sums of the results are exact as long as they are at most 8,192.
        """
        kind = same_lanes(value.type, F64)
        large = constant(kind, FIXED_POINT)
        return self.at.fsub(self.at.fadd(self.at.fpext(value, kind), large), large)

    def exp(self, value: Any) -> Any:
        """Emit and return exp of a float32 number or of each lane: a power of two times a polynomial. NaN stays NaN.

        Numbers above HIGHEST_POWER count as HIGHEST_POWER; below LOWEST_POWER the result is 0.
        """
        at, kind, bits = self.at, value.type, same_lanes(value.type, I32)
        lowest, highest = constant(kind, LOWEST_POWER), constant(kind, HIGHEST_POWER)
        bounded = self.intrinsic("maxnum", self.intrinsic("minnum", value, highest), lowest)
        twos = self.intrinsic("rint", at.fmul(bounded, constant(kind, LOG2_E)))
        rest = bounded
        for part in LN2:
            rest = self.fma(twos, constant(kind, -part), rest)
        sum_ = constant(kind, TERMS[0])
        for term in TERMS[1:]:
            sum_ = self.fma(sum_, rest, constant(kind, term))
        sum_ = self.fma(at.fmul(rest, rest), sum_, at.fadd(rest, constant(kind, 1.0)))
        exponents = at.shl(at.add(at.fptosi(twos, bits), constant(bits, 127)), constant(bits, 23))
        power = at.fmul(sum_, at.bitcast(exponents, kind))
        power = at.select(at.fcmp_ordered("<", value, lowest), constant(kind, 0.0), power)
        return at.select(at.fcmp_unordered("uno", value, value), value, power)

    def intrinsic(self, name: str, *arguments: Any) -> Any:
        """Emit a call of the LLVM intrinsic `name`, such as "sqrt", on float32 numbers or vectors; return its result.

        All arguments and the result have one type.
        """
        kind = arguments[0].type
        suffix = f"v{kind.count}f32" if isinstance(kind, ir.VectorType) else "f32"
        return self.at.call(self.declare(f"llvm.{name}.{suffix}", kind, [kind] * len(arguments)), arguments)

    def declare(self, name: str, result: Any, kinds: Sequence[Any]) -> Any:
        """Return the module's function of this name; if there is none, declare it as external first.

        `result` and `kinds` are the IR types of its result and its arguments. Those of an existing function are not
        compared.
        """
        return self.module.globals.get(name) or ir.Function(self.module, ir.FunctionType(result, kinds), name)
