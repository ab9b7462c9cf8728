"""What a run measures, as frozen facts that tables, plots and JSON all read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median


@dataclass(frozen=True, order=True)
class Case:
    """One question: this many branches of this many tokens below a prompt of this length."""

    prompt: int
    k: int
    depth: int

    @property
    def tree_tokens(self) -> int:
        """What must be evaluated when nothing is done twice; the last token of a branch needs no pass."""
        return self.prompt + self.k * (self.depth - 1)

    @property
    def row_tokens(self) -> int:
        """The same when each branch has a row of its own with the whole prompt in it."""
        return self.k * (self.prompt + self.depth - 1)

    def __str__(self) -> str:
        return f"{self.prompt:,} tokens, k {self.k}, depth {self.depth}"


@dataclass(frozen=True)
class Measure:
    """One method's one attempt: how long, how much was evaluated and kept, and what came out."""

    method: str
    seconds: float
    tokens: int
    slots: int
    cache_bytes: int
    branches: tuple[tuple[int, ...], ...] = ()
    ended: int = 0
    """How many branches stopped at an end token; a peer never stops early."""


@dataclass(frozen=True)
class Run:
    """A measure with its place in the whole."""

    case: Case
    dtype: str
    repeat: int
    measure: Measure
    same: int | None = None
    """How many branches are ours, token for token; None where that is not the question."""


@dataclass(frozen=True)
class LeftOut:
    """A method that was not run, and the number of tokens it would have had to evaluate."""

    case: Case
    dtype: str
    method: str
    tokens: int


@dataclass(frozen=True)
class Results:
    """Everything that one invocation found."""

    environment: dict[str, str]
    runs: tuple[Run, ...]
    left_out: tuple[LeftOut, ...]

    def settings(self) -> list[tuple[Case, str]]:
        """The pairs (case, dtype) in the order in which they were run."""
        return list(dict.fromkeys((run.case, run.dtype) for run in self.runs))

    def of(self, case: Case, dtype: str, method: str) -> list[Run]:
        """All repeats of one method in one case."""
        wanted = (case, dtype, method)
        return [run for run in self.runs if (run.case, run.dtype, run.measure.method) == wanted]

    def seconds(self, case: Case, dtype: str, method: str) -> float | None:
        """The median time, or None where the method was not run."""
        return median_of([run.measure.seconds for run in self.of(case, dtype, method)])

    def missing(self, case: Case, dtype: str, method: str) -> int | None:
        """The tokens that kept a method out of this case, or None where they did not."""
        wanted = (case, dtype, method)
        return next((out.tokens for out in self.left_out if (out.case, out.dtype, out.method) == wanted), None)

    def as_json(self) -> dict[str, object]:
        """Every raw figure, for `--json`."""
        return asdict(self)


def median_of(values: Sequence[float]) -> float | None:
    """The median, or None of nothing."""
    return median(values) if values else None
