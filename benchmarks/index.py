"""The cost of the n-gram index of the suffix drafter: adding tokens, memory, and finding a path's continuation."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.report import markdown
from lookahead_core.speculation.ngram_index import NgramIndex

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "index"
HELP = "Measure the index that drafts are found in: adding, memory and finding, by its size."
MOST = 1_000_000
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 2_000_000)
QUICK = (1_000, 10_000, 100_000)
VOCABULARY = 49_152
PHRASES = 20
"""Tokens of a phrase; some phrases repeat an earlier one."""
PATH = 64
"""Tokens of a path that is looked up."""
SINGLE = 5_000
"""Tokens that are added one by one."""
STRONG, QUIET = "#12507b", "#c98a1b"


@dataclass(frozen=True)
class Size:
    """The figures of an index after `tokens` tokens."""

    tokens: int
    remembered: int
    """Tokens that the index still holds: at most MOST."""
    bulk: float
    """Tokens per second, added in one call."""
    single: float
    """Tokens per second, added one by one."""
    bytes_a_token: float
    """Bytes of memory for each remembered token."""
    known: float
    """Median seconds to find a path that is in the index."""
    known_slow: float
    """The 99th percentile of these seconds."""
    unknown: float
    """Median seconds to find a path of which only the last one or two tokens are likely to be in the index."""
    unknown_slow: float
    """The 99th percentile of these seconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
    parser.add_argument("--quick", action="store_true", help="up to a hundred thousand tokens only")
    parser.add_argument("--paths", type=int, default=2_000, help="how many paths are asked for at each size")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save every figure")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="save a plot")


def main(arguments: argparse.Namespace) -> int:
    """Measure, print the table, save figures and plot as the arguments say; return 0."""
    sizes = measure(QUICK if arguments.quick else SIZES, arguments.paths)
    print(f"{platform.machine()}; python {platform.python_version()}; room for {MOST:,} tokens", end="\n\n")
    print(table(sizes))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps([asdict(size) for size in sizes], indent=1))
    if arguments.plot:
        print(save_plot(sizes, arguments.plot))
    return 0


def measure(counts: Sequence[int], paths: int) -> list[Size]:
    """Measure a new index with each of these numbers of tokens of a random text, by `paths` look-ups of each kind."""
    generator = np.random.default_rng(0)
    text = zipf(generator, max(counts) + SINGLE)
    return [measure_size(text, count, paths, generator) for count in counts]


def zipf(generator: np.random.Generator, count: int) -> list[int]:
    """Return `count` token ids with the frequencies of words (Zipf's law), in phrases of which 30 % repeat others."""
    fresh = (generator.zipf(1.2, count) - 1) % VOCABULARY
    repeats = generator.random(count // PHRASES) < 0.3
    for phrase in np.flatnonzero(repeats)[1:]:
        earlier = generator.integers(0, phrase * PHRASES - PHRASES)
        fresh[phrase * PHRASES : (phrase + 1) * PHRASES] = fresh[earlier : earlier + PHRASES]
    return fresh.tolist()


def measure_size(text: list[int], count: int, paths: int, generator: np.random.Generator) -> Size:
    """Time adding `count` tokens of `text` to a new index, `paths` look-ups of each kind, and SINGLE more tokens."""
    index = NgramIndex(MOST)
    start = perf_counter()
    index.add(text[:count])
    bulk = count / (perf_counter() - start)
    remembered, used = index.size, index.bytes / index.size
    oldest = max(0, count - MOST)
    known = [text[end - PATH : end] for end in generator.integers(oldest + PATH, count, paths).tolist()]
    unknown = generator.permuted(np.array(known), axis=1).tolist()
    (middle, slow), (other, other_slow) = seconds_to_find(index, known), seconds_to_find(index, unknown)
    single = SINGLE / seconds_to_add(index, text[count : count + SINGLE])
    return Size(count, remembered, bulk, single, used, middle, slow, other, other_slow)


def seconds_to_add(index: NgramIndex, tokens: list[int]) -> float:
    """Return the seconds to add all these tokens to the index, one by one."""
    start = perf_counter()
    for token_id in tokens:
        index.add([token_id])
    return perf_counter() - start


def seconds_to_find(index: NgramIndex, paths: list[list[int]]) -> tuple[float, float]:
    """Return the median and the 99th percentile of the seconds that finding a path takes."""
    times = []
    for path in paths:
        start = perf_counter()
        index.find(path)
        times.append(perf_counter() - start)
    return median(times), sorted(times)[len(times) * 99 // 100]


def table(sizes: Sequence[Size]) -> str:
    """Return a Markdown table with a row for each size."""
    header = ["tokens", "remembered", "at once, tokens/s", "one by one", "bytes a token"]
    header += ["find known, µs", "99 %", "find unknown, µs", "99 %"]
    return markdown(header, [_row(size) for size in sizes])


def _row(size: Size) -> list[str]:
    times = (size.known, size.known_slow, size.unknown, size.unknown_slow)
    counts = [f"{size.tokens:,}", f"{size.remembered:,}", f"{size.bulk:,.0f}", f"{size.single:,.0f}"]
    return [*counts, f"{size.bytes_a_token:.0f}", *(f"{seconds * 1e6:.0f}" for seconds in times)]


def save_plot(sizes: Sequence[Size], path: Path) -> str:
    """Save the plot, if matplotlib is installed; return a sentence that says where it is, or why there is none."""
    try:
        import matplotlib
    except ImportError:
        return "No plot: matplotlib is not installed (`pip install matplotlib`)."
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (find, add, memory) = pyplot.subplots(1, 3, figsize=(11.8, 3.6), layout="constrained")
    _lines(find, sizes, {"path that is known": "known", "path that is not": "unknown"}, 1e6)
    _lines(add, sizes, {"many at once": "bulk", "one by one": "single"}, 1)
    _lines(memory, sizes, {"bytes": "bytes_a_token"}, 1)
    for axes, title in ((find, "find, microseconds"), (add, "add, tokens a second"), (memory, "bytes a token kept")):
        axes.set_title(title, fontsize=10)
    add.set_yscale("log")
    add.set_ylim(1e4, 1e7)
    for axes in (find, memory):
        axes.set_ylim(bottom=0)
    figure.suptitle(f"The index by tokens added; it keeps the last {MOST:,}", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, facecolor="white")
    return f"Plot saved as {path}."


def _lines(axes: Axes, sizes: Sequence[Size], names: dict[str, str], scale: float) -> None:
    """Draw one line for each entry of `names` over the tokens added: label, and field of `Size` times `scale`."""
    counts = [size.tokens for size in sizes]
    for (label, field), color, marker in zip(names.items(), (STRONG, QUIET), "os", strict=False):
        values = [getattr(size, field) * scale for size in sizes]
        axes.plot(counts, values, label=label, color=color, marker=marker, markersize=5, linewidth=1.8)
    axes.set_xscale("log")
    axes.set_xlabel("tokens")
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    if len(names) > 1:
        axes.legend(frameon=False, fontsize=9)
