"""The cache experiment as a table: one row for each depth, for CSV files and for the page."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Sequence

from lookahead_core.experiments.cache_experiment import CacheExperiment, CacheStep, Work

SIDES = ("cached", "uncached")
FIGURES = ("seconds", "cpu_seconds", "passes", "tokens", "joules")
COLUMNS = (
    "depth",
    "rows",
    "equal",
    "difference",
    "relative_difference",
    "bound",
    "other_tokens",
    *(f"{side}_{figure}" for side in SIDES for figure in FIGURES),
    "cache_bytes",
)
"""The names of the columns. Figures of work are sums from the prompt to this depth: an experiment of this depth."""


def cache_table(experiment: CacheExperiment) -> Iterator[dict[str, object]]:
    """Yield a row for each step of the experiment: a dict with the keys COLUMNS."""
    cached = itertools.accumulate(step.cached for step in experiment.steps)
    uncached = itertools.accumulate(step.uncached for step in experiment.steps)
    for step, *sides in zip(experiment.steps, cached, uncached, strict=True):
        yield dict(zip(COLUMNS, _row(step, sides), strict=True))


def cache_csv(experiment: CacheExperiment) -> str:
    """Return the table as CSV, with a line of column names."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(cache_table(experiment))
    return file.getvalue()


def _row(step: CacheStep, sides: Sequence[Work]) -> Iterator[object]:
    yield from (step.depth, step.rows, step.equal, step.difference, step.relative_difference, step.bound)
    yield step.other_tokens
    for work in sides:
        yield from (work.seconds, work.cpu_seconds, work.passes, work.tokens, work.joules)
    yield step.cache_bytes
