"""The cache experiment as a table: one row for each depth, for CSV files and for the page."""

from __future__ import annotations

import csv
import io
import itertools
import statistics
from collections.abc import Iterator
from dataclasses import astuple, fields
from typing import Any

from lookahead_core.experiments.cache_experiment import CacheExperiment, Work

COMPARED = ("depth", "rows", "equal", "difference", "relative_difference", "compared", "bound", "other_tokens")
"""The columns that are attributes of `CacheStep`."""
COSTS = tuple(f"{side}_{field.name}" for side in ("cached", "uncached") for field in fields(Work))
"""The columns of the costs: for each side the fields of `Work`, summed from the prompt to the depth of the row."""
SPREAD = tuple(f"{side}_seconds_{end}" for side in ("cached", "uncached") for end in ("least", "most"))
"""The columns of the shortest and the longest time of all runs; `cached_seconds` and `uncached_seconds` are medians."""
COLUMNS = (*COMPARED, *COSTS, "cache_bytes", *SPREAD, "runs")
"""The names of all columns, in order."""


def cache_table(experiment: CacheExperiment) -> Iterator[dict[str, Any]]:
    """Yield a row for each step of the experiment: a dict with the keys COLUMNS.

    Seconds are those of the runs that have computed all these depths, so that they never fall from row to row. `runs`
    is the number of these runs. The other costs are those of the first run.
    """
    cached = itertools.accumulate(step.cached for step in experiment.steps)
    uncached = itertools.accumulate(step.uncached for step in experiment.steps)
    runs = [run for run in experiment.runs if len(run.cached) >= len(experiment.steps)]
    for index, (step, *sides) in enumerate(zip(experiment.steps, cached, uncached, strict=True)):
        row = {name: getattr(step, name) for name in (*COMPARED, "cache_bytes")}
        row |= zip(COSTS, itertools.chain(*map(astuple, sides)), strict=True)
        for side in ("cached", "uncached"):
            seconds = [getattr(run, side)[index] for run in runs]
            row |= {
                f"{side}_seconds": statistics.median(seconds),
                f"{side}_seconds_least": min(seconds),
                f"{side}_seconds_most": max(seconds),
            }
        row["runs"] = len(runs)
        yield {name: row[name] for name in COLUMNS}


def cache_csv(experiment: CacheExperiment) -> str:
    """Return the table as CSV, with a line of column names."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(cache_table(experiment))
    return file.getvalue()
