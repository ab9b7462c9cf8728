"""The report of a load run: its figures as frozen data, Markdown tables, and a plot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.report import MEBIBYTE, markdown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STRONG, QUIET = "#12507b", "#c98a1b"


@dataclass(frozen=True)
class Reading:
    """Values of a server's metrics, read at one time."""

    seconds: float
    memory: float
    """Bytes of the process."""
    cache: float
    """Bytes of all KV caches."""
    sessions: float


@dataclass(frozen=True)
class Step:
    """Some people who wrote for some time."""

    people: int
    seconds: float
    first: list[float]
    """Seconds from each key or click to the first view of the text; 0 if it was prefetched."""
    settled: list[float]
    """Seconds to the complete view."""
    worst: float
    """The largest mean of `settled` of a person, by the mean of all."""
    errors: dict[str, int]
    refused: int
    rebuilt: int
    clicks: int
    known: int
    """Clicks whose view was prefetched."""
    seen: int
    """Responses that held the person's own secret."""
    passes: float
    rows: float
    """Mean rows of a pass."""
    readings: list[Reading]


@dataclass(frozen=True)
class AtOnce:
    """People who asked at the same moment, and the seconds until the last one had the complete view."""

    people: int
    seconds: list[float]


@dataclass(frozen=True)
class Service:
    """Seconds of a complete view through the service and by the library, on equal texts."""

    service: list[float]
    library: list[float]


@dataclass(frozen=True)
class Load:
    """All figures of a run."""

    steps: list[Step]
    idle_errors: dict[str, int]
    """Errors of the documents that were idle meanwhile."""
    at_once: list[AtOnce]
    service: Service
    in_one_batch: dict[int, list[float]]
    """Seconds of one `lookahead_batch` by the library for as many documents as people at once, by their number."""


def report(load: Load) -> str:
    """Return all tables as one Markdown text."""
    found = [(f"{step.people} people", step.errors) for step in load.steps] + [("idle documents", load.idle_errors)]
    errors = [f"{who}: {number} × {kind}" for who, some in found for kind, number in some.items()]
    checked = sum(step.seen for step in load.steps)
    sentence = f"No error, no character lost or mixed; {checked:,} responses held their person's own secret."
    parts = [people_table(load.steps), "\n".join(["Errors:", *errors]) if errors else sentence]
    return "\n\n".join([*parts, at_once_table(load.at_once, load.in_one_batch), service_sentence(load.service)]) + "\n"


def people_table(steps: Sequence[Step]) -> str:
    """Return a table with a row for each number of people; seconds are median and 95th percentile."""
    header = ["people", "seconds", "views", "first rows, s", "95 %", "complete, s", "95 %", "worst mean / mean"]
    header += ["clicks prefetched", "rows a pass", "refused", "rebuilt", "memory, MiB"]
    return markdown(header, [_row(step) for step in steps])


def _row(step: Step) -> list[str]:
    times = [f"{value_at(some, share):.2f}" for some in (step.first, step.settled) for share in (0.5, 0.95)]
    memory = [reading.memory / MEBIBYTE for reading in step.readings] or [0.0]
    known = f"{step.known / step.clicks:.0%}" if step.clicks else "–"
    counts = [known, f"{step.rows:.1f}", f"{step.refused:,}", f"{step.rebuilt:,}"]
    views = [str(step.people), f"{step.seconds:g}", f"{len(step.settled):,}"]
    return [*views, *times, f"{step.worst:.2f}", *counts, f"{memory[0]:,.0f} to {memory[-1]:,.0f}"]


def value_at(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of the values is; 0 without values."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def at_once_table(at_once: Sequence[AtOnce], in_one_batch: Mapping[int, Sequence[float]]) -> str:
    """Return a table: the median seconds until the last of several people has a complete view, and by the first row.

    Beside them are the seconds of one `lookahead_batch` for as many documents, and by the first row.
    """
    first = at_once[0].people
    together = {one.people: median(one.seconds) for one in at_once}
    single = {people: median(seconds) for people, seconds in in_one_batch.items()}
    rows = []
    for people, seconds in together.items():
        other = single[people]
        factors = f"{seconds / together[first]:.2f}", f"{other / single[first]:.2f}"
        rows.append([str(people), f"{seconds:.3f}", factors[0], f"{other:.3f}", factors[1]])
    header = ["people at once", "all done, s", f"by {first}", "lookahead_batch, s", f"by {first}"]
    return markdown(header, rows)


def service_sentence(service: Service) -> str:
    """Return a sentence with the median seconds of both sides, and the median of their ratios."""
    ratio = median(one / other for one, other in zip(service.service, service.library, strict=True))
    through, by = median(service.service), median(service.library)
    return (
        f"A complete view: {through:.3f} s through the service, {by:.3f} s by the library, {ratio:.2f} times as long."
    )


def save_plot(load: Load, path: Path) -> str:
    """Save the plot, if matplotlib is installed; return a sentence that says where it is, or why there is none."""
    panels = (
        lambda axes: _waits(axes, load.steps),
        lambda axes: _at_once(axes, load.at_once),
        lambda axes: _memory(axes, load.steps),
    )
    return save_panels(panels, path)


def save_panels(panels: Sequence[Callable[[Axes], None]], path: Path) -> str:
    """Save a plot of these panels, side by side; return a sentence that says where it is, or why there is none.

    Each panel is a function that draws into its axes.
    """
    try:
        import matplotlib
    except ImportError:
        return "No plot: matplotlib is not installed (`pip install matplotlib`)."
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, row = pyplot.subplots(
        1, len(panels), figsize=(4.13 * len(panels), 3.8), layout="constrained", squeeze=False
    )
    for axes, draw in zip(row[0], panels, strict=True):
        draw(axes)
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylim(bottom=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, facecolor="white")
    pyplot.close(figure)
    return f"Plot saved as {path}."


def _waits(axes: Axes, steps: Sequence[Step]) -> None:
    people = [step.people for step in steps]
    styles: list[tuple[str, dict[str, Any]]] = [("first", {"color": QUIET}), ("settled", {"color": STRONG})]
    for name, style in styles:
        label = {"first": "first rows", "settled": "complete"}[name]
        for share, line in ((0.5, "-"), (0.95, (0, (4, 2)))):
            values = [value_at(getattr(step, name), share) for step in steps]
            axes.plot(people, values, marker="o", markersize=4, linestyle=line, label=f"{label}, {share:.0%}", **style)
    axes.set_title("people who click and type: seconds to a view", fontsize=10)
    axes.set_xlabel("people")
    axes.legend(frameon=False, fontsize=8)


def _at_once(axes: Axes, at_once: Sequence[AtOnce]) -> None:
    alone = median(at_once[0].seconds)
    people = [one.people for one in at_once]
    axes.plot(people, people, color="#8a8a8a", linestyle=(0, (1, 2)), label="one after the other")
    ratios = [median(one.seconds) / alone for one in at_once]
    axes.plot(people, ratios, color=STRONG, marker="o", markersize=4, label="measured")
    axes.set_title("asking at once: time until all are done, by one alone", fontsize=10)
    axes.set_xlabel("people")
    axes.legend(frameon=False, fontsize=8)


def _memory(axes: Axes, steps: Sequence[Step]) -> None:
    last = steps[-1]
    minutes = [reading.seconds / 60 for reading in last.readings]
    axes.plot(minutes, [one.memory / MEBIBYTE for one in last.readings], color=STRONG, label="process")
    axes.plot(minutes, [one.cache / MEBIBYTE for one in last.readings], color=QUIET, label="KV caches")
    axes.set_title(f"memory with {last.people} people, MiB", fontsize=10)
    axes.set_xlabel("minutes")
    axes.legend(frameon=False, fontsize=8)
