"""ThreadTeam: emits how the threads of an OpenMP team divide the work of a compiled function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lookahead_core.engines.cpu.llvm_builder import I32, I64, VOID, FunctionBuilder, as_i64


class ThreadTeam:
    """Emits, into the function of `code`, how the threads of an OpenMP team that all run it divide its work.

    `thread` and `threads` are IR values (i64): the running thread's number, from 0, and the number of threads.
    """

    def __init__(self, code: FunctionBuilder) -> None:
        names = ("omp_get_thread_num", "omp_get_num_threads")
        self.code = code
        self.thread, self.threads = (code.at.zext(code.at.call(code.declare(name, I32, []), []), I64) for name in names)
        self._turn = code.variable(I64(0))

    def split(self, count: Any) -> tuple[Any, Any]:
        """Emit this thread's share of `count` items; return its first and one past its last, as IR values (i64).

        `count` is an int or an IR value (i64). A share may be empty.
        """
        at = self.code.at
        first, end = (at.mul(as_i64(count), thread) for thread in (self.thread, at.add(self.thread, I64(1))))
        return at.udiv(first, self.threads), at.udiv(end, self.threads)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Context manager: the code emitted in its body runs on one thread, the next one each time, round robin.

        All uses in a function share one sequence of turns. All threads must reach each of them equally often.
        """
        at = self.code.at
        thread = self._turn.get()
        following = at.add(thread, I64(1))
        self._turn.set(at.select(at.icmp_signed("==", following, self.threads), I64(0), following))
        with at.if_then(at.icmp_signed("==", thread, self.thread)):
            yield

    def barrier(self) -> None:
        """Emit a barrier: each thread waits there until all have arrived."""
        self.code.at.call(self.code.declare("GOMP_barrier", VOID, []), [])
