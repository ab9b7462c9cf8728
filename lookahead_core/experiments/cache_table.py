"""The cache experiment as a table: one row for each depth, for CSV files and for the page."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from dataclasses import astuple, fields
from typing import Any

from lookahead_core.experiments.cache_experiment import CacheExperiment, Work

COMPARED = ("depth", "rows", "equal", "difference", "relative_difference", "bound", "other_tokens")
"""The columns that are attributes of `CacheStep`."""
COSTS = tuple(f"{side}_{field.name}" for side in ("cached", "uncached") for field in fields(Work))
"""The columns of the costs: for each side the fields of `Work`, summed from the prompt to the depth of the row."""
COLUMNS = (*COMPARED, *COSTS, "cache_bytes")
"""The names of all columns, in order."""


def cache_table(experiment: CacheExperiment) -> Iterator[dict[str, Any]]:
    """Yield a row for each step of the experiment: a dict with the keys COLUMNS."""
    cached = itertools.accumulate(step.cached for step in experiment.steps)
    uncached = itertools.accumulate(step.uncached for step in experiment.steps)
    for step, *sides in zip(experiment.steps, cached, uncached, strict=True):
        row = {name: getattr(step, name) for name in (*COMPARED, "cache_bytes")}
        row |= zip(COSTS, itertools.chain(*map(astuple, sides)), strict=True)
        yield {name: row[name] for name in COLUMNS}


def cache_csv(experiment: CacheExperiment) -> str:
    """Return the table as CSV, with a line of column names."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(cache_table(experiment))
    return file.getvalue()
