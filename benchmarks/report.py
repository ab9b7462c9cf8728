"""The report of a branching run: Markdown tables, ratios first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.contestants import ACCEPTED, COLD, FLOOR, METHODS, SAME_BRANCHES, SEED_CACHED, TYPED
from benchmarks.results import Case, Results, Run, median_of

MEBIBYTE = 1024 * 1024
NOTHING = "–"
SHORT = {"float32": "fp32", "bfloat16": "bf16"}
Setting = tuple[Case, str]


@dataclass(frozen=True)
class Table:
    """A table of the report, with a row for each case and dtype."""

    title: str
    note: str
    """How to read the table."""
    columns: dict[str, Callable[[Results, Case, str], str]]
    """By header: a function that returns the cell for the results, a case and a dtype."""


def report(results: Results) -> str:
    """Return the environment and every table of TABLES as one Markdown text."""
    where = "; ".join(f"{name} {value}" for name, value in results.environment.items())
    return "\n\n".join([where, *(_render(table, results) for table in TABLES)]) + "\n"


def _render(table: Table, results: Results) -> str:
    header = ["prompt", "k", "depth", "type", *table.columns]
    rows = [_cells(table, results, case, dtype) for case, dtype in results.settings()]
    return f"## {table.title}\n\n{table.note}\n\n{markdown(header, rows)}"


def _cells(table: Table, results: Results, case: Case, dtype: str) -> list[str]:
    setting = [f"{case.prompt:,}", str(case.k), str(case.depth), SHORT.get(dtype, dtype)]
    return setting + [column(results, case, dtype) for column in table.columns.values()]


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, right-aligned, whose columns also line up in a terminal."""
    widths = [max(2, *map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * (width - 1) + ":" for width in widths]
    lines = [[cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in (header, rule, *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _seconds(method: str) -> Callable[[Results, Case, str], str]:
    """Return a column: the median seconds of a method, NOTHING if it was not run."""

    def cell(results: Results, case: Case, dtype: str) -> str:
        seconds = results.seconds(case, dtype, method)
        return NOTHING if seconds is None else f"{seconds:.3f}"

    return cell


def _ratio(method: str, to: str = COLD) -> Callable[[Results, Case, str], str]:
    """Return a column: a method's median seconds divided by those of the method `to`.

    A star marks a method that ran once and the other more often. The cell of a method that was left out says so.
    """

    def cell(results: Results, case: Case, dtype: str) -> str:
        if (tokens := results.missing(case, dtype, method)) is not None:
            return f"left out ({tokens:,} tokens)"
        own, other = results.seconds(case, dtype, method), results.seconds(case, dtype, to)
        if own is None or other is None:
            return NOTHING
        once = len(results.of(case, dtype, method)) == 1 < len(results.of(case, dtype, to))
        return f"{own / other:.2f}{'*' if once else ''}"

    return cell


def _seconds_and_tokens(method: str) -> Callable[[Results, Case, str], str]:
    def cell(results: Results, case: Case, dtype: str) -> str:
        tokens = _median(results.of(case, dtype, method), lambda run: run.measure.tokens)
        return f"{_seconds(method)(results, case, dtype)} ({tokens})"

    return cell


def _slots(method: str) -> Callable[[Results, Case, str], str]:
    return lambda results, case, dtype: _median(results.of(case, dtype, method), lambda run: run.measure.slots)


def _mebibytes(method: str) -> Callable[[Results, Case, str], str]:
    def cell(results: Results, case: Case, dtype: str) -> str:
        return _median(results.of(case, dtype, method), lambda run: run.measure.cache_bytes / MEBIBYTE, places=1)

    return cell


def _median(runs: Sequence[Run], value: Callable[[Run], float], places: int = 0) -> str:
    middle = median_of([value(run) for run in runs])
    return NOTHING if middle is None else f"{middle:,.{places}f}"


def _same(method: str) -> Callable[[Results, Case, str], str]:
    """Return a column: how many branches of a method equal ours, over all repeats."""

    def cell(results: Results, case: Case, dtype: str) -> str:
        runs = results.of(case, dtype, method)
        return f"{sum(run.same or 0 for run in runs)} of {case.k * len(runs)}" if runs else NOTHING

    return cell


def _ended(results: Results, case: Case, dtype: str) -> str:
    """Return a cell: how many branches of our cold runs ended at an end token, over all repeats."""
    runs = results.of(case, dtype, COLD)
    return f"{sum(run.measure.ended for run in runs)} of {case.k * len(runs)}"


TABLES = (
    Table(
        "Time, ours cold = 1.00",
        "Medians, everybody in turns. Above 1 is slower than ours. * ran in the last repeat only.",
        {f"{COLD}, s": _seconds(COLD)} | {method: _ratio(method) for method in METHODS if method not in (COLD, FLOOR)},
    ),
    Table(
        "Ours and the floor",
        "Seconds, and in brackets the tokens evaluated. The floor is the bare products of the same shapes.",
        {
            COLD: _seconds_and_tokens(COLD),
            FLOOR: _seconds(FLOOR),
            "cold / floor": _ratio(COLD, to=FLOOR),
            ACCEPTED: _seconds_and_tokens(ACCEPTED),
            TYPED: _seconds_and_tokens(TYPED),
        },
    ),
    Table(
        "Cache",
        "Slots in use after a cold start, one for each token kept: prompt + k (depth - 1), where rows take "
        "k (prompt + depth - 1). MiB are those allocated.",
        {
            "ours, slots": _slots(COLD),
            "seed, slots": _slots(SEED_CACHED),
            "ours, MiB": _mebibytes(COLD),
            "seed, MiB": _mebibytes(SEED_CACHED),
        },
    ),
    Table(
        "The same branches",
        "Branches that are ours token for token. In fp32 any other is an error unless it is a tie in a plain forward.",
        {method: _same(method) for method in SAME_BRANCHES} | {"ours that met an end token": _ended},
    ),
)
