"""The results of a branching run as frozen data, for tables, plots and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median


@dataclass(frozen=True, order=True)
class Case:
    """A size to measure: k branches of `depth` tokens after a prompt of `prompt` tokens."""

    prompt: int
    k: int
    depth: int

    @property
    def tree_tokens(self) -> int:
        """Tokens to evaluate in one tree: the prompt once, and each branch without its last token."""
        return self.prompt + self.k * (self.depth - 1)

    @property
    def row_tokens(self) -> int:
        """Tokens to evaluate if each branch is a row with the whole prompt; its last token is not evaluated."""
        return self.k * (self.prompt + self.depth - 1)

    def __str__(self) -> str:
        return f"{self.prompt:,} tokens, k {self.k}, depth {self.depth}"


@dataclass(frozen=True)
class Measure:
    """One run of a method: seconds, evaluated tokens, cache, and the branches that it found."""

    method: str
    seconds: float
    tokens: int
    """Evaluated tokens."""
    slots: int
    """Tokens that the cache holds at the end, rows times columns for peers."""
    cache_bytes: int
    """Allocated bytes of the cache."""
    branches: tuple[tuple[int, ...], ...] = ()
    """The token ids of each branch, without the prompt."""
    ended: int = 0
    """How many branches stopped at an end token; a peer never stops early."""


@dataclass(frozen=True)
class Run:
    """A measure with its case, dtype and repeat."""

    case: Case
    dtype: str
    repeat: int
    """The number of the repeat, from 0."""
    measure: Measure
    same: int | None = None
    """How many branches equal ours, token for token; None for methods that look for other branches."""


@dataclass(frozen=True)
class LeftOut:
    """A method that was not run in a case, and the tokens that it would have evaluated."""

    case: Case
    dtype: str
    method: str
    tokens: int


@dataclass(frozen=True)
class Results:
    """All results of one invocation."""

    environment: dict[str, str]
    """Machine, model and versions, see `environment.describe`."""
    runs: tuple[Run, ...]
    left_out: tuple[LeftOut, ...]

    def settings(self) -> list[tuple[Case, str]]:
        """Return the pairs (case, dtype) that were run, in the order of their first run."""
        return list(dict.fromkeys((run.case, run.dtype) for run in self.runs))

    def of(self, case: Case, dtype: str, method: str) -> list[Run]:
        """Return all runs of one method in one case and dtype; empty if there are none."""
        wanted = (case, dtype, method)
        return [run for run in self.runs if (run.case, run.dtype, run.measure.method) == wanted]

    def seconds(self, case: Case, dtype: str, method: str) -> float | None:
        """Return the method's median seconds in this case and dtype; None if it was not run."""
        return median_of([run.measure.seconds for run in self.of(case, dtype, method)])

    def missing(self, case: Case, dtype: str, method: str) -> int | None:
        """Return the tokens that a left-out method would have evaluated in this case; None if it was not left out."""
        wanted = (case, dtype, method)
        return next((out.tokens for out in self.left_out if (out.case, out.dtype, out.method) == wanted), None)

    def as_json(self) -> dict[str, object]:
        """Return all fields as nested dictionaries and lists, for `--json`."""
        return asdict(self)


def median_of(values: Sequence[float]) -> float | None:
    """Return the median; None for an empty sequence."""
    return median(values) if values else None
