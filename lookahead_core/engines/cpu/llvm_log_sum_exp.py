"""LLVM IR of `log_sum_exp`: the output matrix and a softmax's normalizers in one sweep, without a row of logits.

A row of logits is as wide as the vocabulary. For a text of 512 tokens they take 100 MB and more, and writing them takes
longer than computing them. Here each thread multiplies all rows with a few columns at a time, into a buffer that stays
in the processor's cache, and keeps of each row the largest logit, the sum of exp(logit - largest), and one logit.
"""

from __future__ import annotations

from typing import Any

from lookahead_core.engines.cpu.llvm_builder import F32, I32, I64, PTR, FunctionBuilder, constant
from lookahead_core.engines.cpu.llvm_kernels import LOWEST, KernelBuilder
from lookahead_core.engines.cpu.llvm_threads import ThreadTeam

BUFFER_ROWS = 64
"""The most rows whose logits are in a thread's buffer at once."""
BUFFER_GROUPS = 8
"""The most column groups whose logits are in it at once."""
LOG_SUM_EXP = dict.fromkeys(("x", "weights", "columns", "buffers", "chosen", "maxima", "sums"), PTR) | dict.fromkeys(
    ("rows", "depth", "groups"), I64
)
"""The arguments of `log_sum_exp`: the addresses of rows and matrix; of the column chosen in each row, as int64; of a
buffer for each thread, `buffer_size` float32 numbers; of the results; then the row count, the rows' width, and column
groups. The results are each row's logit in its chosen column, and for each thread, of each row's logits in the thread's
columns, the largest logit and the sum of exp(logit - largest). Maxima must be set to LOWEST before, and sums to 0."""


def buffer_size(group_width: int) -> int:
    """Return how many float32 numbers a thread's buffer has, for column groups of this width."""
    return BUFFER_ROWS * BUFFER_GROUPS * group_width


def write_log_sum_exp(kernels: KernelBuilder) -> None:
    """Emit the function `log_sum_exp` into the kernels' module. All threads share the column groups of the matrix.

    The bits of a row's results do not depend on the other rows.
    """
    shape, code = kernels.shape, FunctionBuilder(kernels.module, "log_sum_exp", [PTR])
    at, fields, team = code.at, code.load_record(code.arguments[0], LOG_SUM_EXP), ThreadTeam(code)
    buffer = code.address(fields["buffers"], at.mul(team.thread, I64(buffer_size(shape.group_width))), F32)
    for name in ("maxima", "sums"):
        fields[name] = code.address(fields[name], at.mul(team.thread, fields["rows"]), F32)
    depth, (first, end) = fields["depth"], team.split(fields["groups"])
    # All rows use a block of weights before the next block is loaded.
    with code.chunks(at.sub(end, first), BUFFER_GROUPS) as (start, groups):
        group = at.add(first, start)
        matrix = code.address(fields["weights"], at.mul(group, at.mul(depth, I64(shape.lanes))), I32)
        column, width = (at.mul(number, I64(shape.group_width)) for number in (group, groups))
        with code.chunks(fields["rows"], BUFFER_ROWS) as (row, count):
            rows = code.address(fields["x"], at.mul(row, depth), F32)
            product = [rows, depth, count, matrix, depth, buffer, width, I64(0), groups, I64(0)]
            at.call(kernels.matmul, product)
            with code.loop(0, count) as index:
                logits = code.address(buffer, at.mul(index, width), F32)
                _add_logits(kernels, code, fields, at.add(row, index), logits, column, width)
    code.end()


def _add_logits(
    kernels: KernelBuilder,
    code: FunctionBuilder,
    fields: dict[str, Any],
    row: Any,
    logits: Any,
    column: Any,
    width: Any,
) -> None:
    """Emit code that adds `width` logits of a row, from the column `column` on, to the results of this thread.

    `logits` is their address, and `fields` the arguments, with this thread's maxima and sums.
    """
    at, vector, lanes = code.at, kernels.vector, kernels.shape.lanes
    chosen = at.sub(code.load(fields["columns"], row, I64), column)
    with at.if_then(at.icmp_unsigned("<", chosen, width)):
        code.store_float(code.load(logits, chosen, F32), fields["chosen"], row)
    highest = code.variable(constant(vector, LOWEST))
    with code.loop(0, width, lanes) as first:
        highest.set(code.intrinsic("maxnum", highest.get(), code.load_float(logits, first, vector)))
    earlier = code.load(fields["maxima"], row, F32)
    maximum = code.intrinsic("maxnum", earlier, code.reduce("fmax", highest.get()))
    total, subtracted = code.variable(kernels.zero), code.splat(maximum, vector)
    with code.loop(0, width, lanes) as first:
        power = code.exp(at.fsub(code.load_float(logits, first, vector), subtracted))
        total.set(at.fadd(total.get(), power))
    known = at.fmul(code.load(fields["sums"], row, F32), code.exp(at.fsub(earlier, maximum)))
    code.store_float(at.fadd(known, code.reduce("fadd", total.get())), fields["sums"], row)
    code.store_float(maximum, fields["maxima"], row)
