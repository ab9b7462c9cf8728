"""The report of a load run on two engines: its figures as frozen data, a table, a sentence, and a plot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.load_report import QUIET, STRONG, Step, save_panels, value_at
from benchmarks.report import markdown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"local": QUIET, "remote": STRONG}
"""The engines, and their colours in the plot."""


@dataclass(frozen=True)
class Trial:
    """One step of people on one engine."""

    engine: str
    """A key of COLOURS."""
    repeat: int
    """Trials of the same number of people and the same repeat came one after the other."""
    step: Step


@dataclass(frozen=True)
class Comparison:
    """All trials of a run."""

    trials: list[Trial]

    @property
    def people(self) -> list[int]:
        """The numbers of people, in order."""
        return sorted({trial.step.people for trial in self.trials})

    @property
    def errors(self) -> dict[str, int]:
        """How often people saw each kind of error, by engine and kind."""
        found: dict[str, int] = {}
        for trial in self.trials:
            for kind, number in trial.step.errors.items():
                name = f"{trial.step.people} people, {trial.engine}: {kind}"
                found[name] = found.get(name, 0) + number
        return found

    def settled(self, engine: str, people: int) -> list[float]:
        """Return the seconds to a complete view on an engine, with so many people, of all repeats."""
        trials = [trial for trial in self.trials if (trial.engine, trial.step.people) == (engine, people)]
        return [seconds for trial in trials for seconds in trial.step.settled]

    def ratios(self, people: int, share: float = 0.5) -> list[float]:
        """Return for each repeat the remote engine's seconds by the local one's, below which this share of views is.

        A repeat in which one of them had no complete view is left out.
        """
        found: dict[int, dict[str, float]] = {}
        for trial in self.trials:
            if trial.step.people == people and trial.step.settled:
                found.setdefault(trial.repeat, {})[trial.engine] = value_at(trial.step.settled, share)
        return [both["remote"] / both["local"] for _, both in sorted(found.items()) if len(both) == 2]


def report(comparison: Comparison) -> str:
    """Return the table, the errors and the sentence as one Markdown text."""
    header = ["people", "views, local", "remote", "complete, local, s", "remote", "95 %, local, s", "remote"]
    rows = [_row(comparison, people) for people in comparison.people]
    errors = [f"{number} × {name}" for name, number in comparison.errors.items()]
    found = "\n".join(["Errors:", *errors]) if errors else "No error, no character lost or mixed."
    table = markdown([*header, "remote / local", "95 %"], rows)
    return "\n\n".join([table, found, crossing_sentence(comparison)]) + "\n"


def _row(comparison: Comparison, people: int) -> list[str]:
    both = [comparison.settled(engine, people) for engine in COLOURS]
    times = [f"{value_at(settled, share):.2f}" for share in (0.5, 0.95) for settled in both]
    ratios = [comparison.ratios(people, share) for share in (0.5, 0.95)]
    shown = [f"{median(some):.2f}" if some else "–" for some in ratios]
    return [str(people), *(f"{len(settled):,}" for settled in both), *times, *shown]


def first_faster(comparison: Comparison, share: float = 0.5) -> int | None:
    """Return the least number of people from which on the remote engine is faster with all measured numbers of people.

    Faster means that the median of `Comparison.ratios` is below 1. None if it is slower with the most people.
    """
    first = None
    for people in reversed(comparison.people):
        ratios = comparison.ratios(people, share)
        if not ratios or median(ratios) >= 1:
            break
        first = people
    return first


def crossing_sentence(comparison: Comparison) -> str:
    """Return two sentences, by median and by 95th percentile: from how many people on the remote engine is faster."""
    return " ".join(
        f"By the {name} of the time to a complete view {_winner(comparison, share)}."
        for name, share in (("median", 0.5), ("95th percentile", 0.95))
    )


def _winner(comparison: Comparison, share: float) -> str:
    most, first = comparison.people[-1], first_faster(comparison, share)
    ratios = comparison.ratios(most, share)
    if not ratios:
        return f"nothing can be said: an engine had no complete view with {most} people"
    times = f"with {most} it takes {median(ratios):.2f} times as long as the local one"
    if first is None:
        return f"the remote engine is slower with the most people that were measured: {times}"
    if first == comparison.people[0]:
        return f"the remote engine is faster with every measured number of people: {times}"
    return f"the remote engine is faster from {first} people on: {times}"


def save_plot(comparison: Comparison, path: Path) -> str:
    """Save the plot like `save_panels`: seconds to a complete view, and the ratio of the engines, by people."""
    return save_panels((lambda axes: _waits(axes, comparison), lambda axes: _ratios(axes, comparison)), path)


def _waits(axes: Axes, comparison: Comparison) -> None:
    for engine, colour in COLOURS.items():
        for share, line in ((0.5, "-"), (0.95, (0, (4, 2)))):
            values = [value_at(comparison.settled(engine, people), share) for people in comparison.people]
            label = f"{engine}, {share:.0%}"
            style: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 4, "linestyle": line}
            axes.plot(comparison.people, values, label=label, **style)
    axes.set_title("people who click and type: seconds to a complete view", fontsize=10)
    _people_axis(axes, comparison)


def _ratios(axes: Axes, comparison: Comparison) -> None:
    axes.axhline(1, color="#8a8a8a", linestyle=(0, (1, 2)), label="as long as the local engine")
    found = [(people, ratios) for people in comparison.people if (ratios := comparison.ratios(people))]
    axes.plot(
        *zip(*((people, median(ratios)) for people, ratios in found), strict=True),
        color=STRONG, marker="o", markersize=4, label="remote / local, median",
    )  # fmt: skip
    points = [(people, ratio) for people, ratios in found for ratio in ratios]
    axes.plot(*zip(*points, strict=True), color=STRONG, marker="x", markersize=4, linestyle="", label="each repeat")
    axes.set_title("median time to a complete view, remote by local", fontsize=10)
    _people_axis(axes, comparison)


def _people_axis(axes: Axes, comparison: Comparison) -> None:
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log", base=2)
    axes.set_xticks(comparison.people, [str(people) for people in comparison.people])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("people")
    axes.legend(frameon=False, fontsize=8)
