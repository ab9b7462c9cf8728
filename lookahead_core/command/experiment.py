"""The subcommand `experiment`: branches with the KV cache and without it, compared at each depth."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lookahead_core.command import json_output, model_loading, terminal
from lookahead_core.command.standard_input import read_standard_input
from lookahead_core.serving.json_values import json_safe

NAME = "experiment"
DESCRIPTION = """\
Grow branches after a prompt twice, with the KV cache and by reading every path again from its beginning. Are the logits
equal at each depth, and what does the cache save? An experiment of depth 100 has the figures of every depth below.
"""
EPILOG = """\
examples:
  python -m lookahead_core experiment "After careful"
  python -m lookahead_core experiment "After careful" --depth 100 --csv depths.csv
  python -m lookahead_core experiment "After careful" --levels 2    # branches split at the first and second token
"""
OPTIONS = ("k", "depth", "levels", "precisions", "runs")
SHOWN_DEPTHS = 10
"""Lines of the table on the screen, at even distances."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the prompt and options of `experiment` to its parser; the caller adds the model's options.

    The parsed arguments have the keys of options only if they are on the command line.
    """
    parser.add_argument("prompt", help='the text before the branches; "-" reads it, without its last line break')
    group = parser.add_argument_group("experiment")
    absent: dict[str, Any] = {"default": argparse.SUPPRESS}
    group.add_argument("--k", type=int, metavar="N", help="branches, and children of each split (5)", **absent)
    group.add_argument("--depth", type=int, metavar="N", help="tokens of each branch, up to 100 (10)", **absent)
    group.add_argument("--levels", type=int, metavar="N", help="first tokens at which branches split (1)", **absent)
    precisions = "also read the branches in float32 and in bfloat16, and say where they part"
    group.add_argument("--precisions", action="store_true", help=precisions, **absent)
    runs = "compute everything so often; times are medians of all runs (1)"
    group.add_argument("--runs", type=int, metavar="N", help=runs, **absent)
    group.add_argument("--csv", metavar="FILE", help="write a table with one line for each depth", **absent)
    group.add_argument("--json", action="store_true", help="write one JSON document and nothing else", **absent)


def run(arguments: dict[str, Any], screen: terminal.Screen) -> None:
    """Run the experiment and write its result to `screen`; with `--csv` also a file, with `--json` a JSON document.

    Raises ValueError for wrong options, OSError for a file that cannot be written, and LookaheadError if the model
    cannot be loaded or the experiment is not possible with it.
    """
    terminal.report("Starting")
    from lookahead_core.experiments.cache_experiment import CacheExperimentOptions, cache_experiment_steps
    from lookahead_core.experiments.cache_table import cache_csv, cache_table

    prompt = read_standard_input() if arguments["prompt"] == "-" else arguments["prompt"]
    options = {name: arguments[name] for name in OPTIONS if name in arguments}
    checked = CacheExperimentOptions(**options)  # before the model is loaded, which takes longer
    if "csv" in arguments:
        Path(arguments["csv"]).open("a", encoding="utf-8").close()  # an error now, and not after the experiment
    model = model_loading.load(arguments)
    for found in cache_experiment_steps(model, prompt, **options):
        terminal.report("Comparing", sum(len(run.cached) for run in found.runs) / (checked.depth * checked.runs))
    terminal.report("")
    if "csv" in arguments:
        Path(arguments["csv"]).write_text(cache_csv(found), encoding="utf-8")
    if "json" not in arguments:
        for line in _lines(found, checked.depth):
            screen.line(line)
        return
    result = {
        "method": NAME,
        "equal": found.equal,
        "prompt_tokens": found.prompt_tokens,
        "steps": list(cache_table(found)),
        "branches": [{"text": text, "token_ids": ids} for text, ids in zip(found.texts, found.token_ids, strict=True)],
        "precisions": [asdict(step) for step in found.precisions],
        "energy_source": found.energy_source,
        "model": json_output.model_as_json(model),
        "options": {name: getattr(checked, name) for name in OPTIONS},
    }
    screen.line(json.dumps(json_safe(result), allow_nan=False))


def _lines(found: Any, depth: int) -> list[str]:
    """Return the lines that show a `CacheExperiment`: a table of some depths, the verdict, and the work."""
    from lookahead_core.experiments.cache_table import cache_table

    lines = ["depth  equal  largest difference  seconds with cache  without  ratio"]
    shown = {*range(0, depth, max(1, depth // SHOWN_DEPTHS)), depth - 1}
    for index, row in enumerate(cache_table(found)):
        if index in shown:
            with_cache, without = row["cached_seconds"], row["uncached_seconds"]
            lines.append(
                f"{row['depth']:>5}  {row['equal']!s:>5}  {row['difference']:>18.2e}  {with_cache:>18.3f}  "
                f"{without:>7.3f}  {without / with_cache:>5.1f}"
            )
    cached, uncached = found.cached, found.uncached
    spread = [
        f"Seconds are medians of {len(found.runs)} runs: with the cache {row['cached_seconds_least']:.2f} to "
        f"{row['cached_seconds_most']:.2f} s, without it {row['uncached_seconds_least']:.2f} to "
        f"{row['uncached_seconds_most']:.2f} s. What follows is of the first run.",
    ]
    return [
        *lines,
        "",
        f"{found.equal}: the logits with and without the cache are {'equal' if found.equal else 'not equal'}.",
        *(spread if len(found.runs) > 1 else []),
        f"With the cache: {_work(cached)}; {found.steps[-1].cache_bytes:,} bytes of cache.",
        f"Without it: {_work(uncached)}.",
        f"Joules are {found.energy_source}.",
        *([_precisions(found.precisions)] if found.precisions else []),
    ]


def _precisions(steps: Any) -> str:
    """Return a sentence on where the most likely tokens in float32 and in bfloat16 part."""
    depths = [step.depth for step in steps if step.other_tokens]
    largest = max(step.relative_difference for step in steps)
    parted = f"differ at {len(depths)} of {len(steps)} depths, first at {depths[0]}" if depths else "are the same"
    return (
        f"In float32 and bfloat16 the most likely tokens {parted}; the logits differ by up to {largest:.1%} of a row's "
        "largest."
    )


def _work(work: Any) -> str:
    """Return the figures of a `Work` in words."""
    return (
        f"{work.passes:,} pass{'es' * (work.passes != 1)}, {work.tokens:,} tokens, {work.seconds:.2f} s, "
        f"{work.cpu_seconds:.2f} s of processor time, {work.joules:.1f} J"
    )
