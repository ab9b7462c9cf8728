"""The plot of a branching run: time against prompt length, k and depth, one line for each method."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.contestants import BEAM, COLD, FLOOR, GENERATE, SEED_CACHED, SEED_UNCACHED, TYPED
from benchmarks.results import Case, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Ours in one strong colour, the floor in grey, the others in quieter ones; markers tell them apart without colour.
LINES: dict[str, dict[str, object]] = {
    SEED_UNCACHED: {"color": "#a0522d", "marker": "v"},
    GENERATE: {"color": "#c98a1b", "marker": "s"},
    BEAM: {"color": "#b9a36b", "marker": "D", "linestyle": (0, (4, 2))},
    SEED_CACHED: {"color": "#6f8f72", "marker": "^"},
    COLD: {"color": "#12507b", "marker": "o", "linewidth": 2.4, "zorder": 5},
    TYPED: {"color": "#12507b", "marker": "o", "linestyle": (0, (4, 2)), "markerfacecolor": "white", "zorder": 5},
    FLOOR: {"color": "#8a8a8a", "marker": "x", "linestyle": (0, (1, 2))},
}
PANELS = {"prompt": "prompt tokens", "k": "branches", "depth": "tokens a branch"}


def save_plot(results: Results, path: Path) -> str:
    """Save the plot, if matplotlib is installed; return a sentence that says where it is, or why there is none."""
    try:
        import matplotlib
    except ImportError:
        return "No plot: matplotlib is not installed (`pip install matplotlib`)."
    matplotlib.use("Agg")
    figure = _draw(results)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, facecolor="white")
    return f"Plot saved as {path}."


def _draw(results: Results) -> Figure:
    """Return a figure with a row of panels for each dtype and a column for each dimension that varies."""
    from matplotlib import pyplot

    dtypes = list(dict.fromkeys(dtype for _, dtype in results.settings()))
    arms = {name: cases for name in PANELS if len(cases := _arm(results, name)) > 1}
    figure, grid = pyplot.subplots(
        len(dtypes), len(arms), figsize=(1.0 + 3.6 * len(arms), 2.0 + 2.9 * len(dtypes)),
        sharey="row", sharex="col", squeeze=False, layout="constrained",
    )  # fmt: skip
    for row, dtype in zip(grid, dtypes, strict=True):
        for axes, (name, cases) in zip(row, arms.items(), strict=True):
            _lines(axes, results, dtype, name, cases)
            _scales(axes, [getattr(case, name) for case in cases])
        row[0].set_ylabel(f"{dtype}, seconds")
    _words(figure, grid, arms, results)
    return figure


def _arm(results: Results, name: str) -> list[Case]:
    """Return, in order, the middle case and the cases that differ from it in one dimension (a key of PANELS) only."""
    cases = list(dict.fromkeys(case for case, _ in results.settings()))
    middle, others = _middle(cases), [other for other in PANELS if other != name]
    return sorted(case for case in cases if all(getattr(case, other) == getattr(middle, other) for other in others))


def _middle(cases: list[Case]) -> Case:
    """Return the case that shares the most values of prompt, k and depth with the others."""

    def shared(case: Case) -> int:
        return sum(getattr(case, name) == getattr(other, name) for other in cases for name in PANELS)

    return max(cases, key=shared)


def _lines(axes: Axes, results: Results, dtype: str, name: str, cases: list[Case]) -> None:
    """Draw a line for each method: median seconds over the dimension `name` of the cases."""
    for method, style in LINES.items():
        points = [(getattr(case, name), results.seconds(case, dtype, method)) for case in cases]
        drawn = [(value, seconds) for value, seconds in points if seconds is not None]
        axes.plot(*zip(*drawn, strict=True), label=method, **{"linewidth": 1.5, "markersize": 5, **style})


def _scales(axes: Axes, values: list[int]) -> None:
    """Set logarithmic scales, with a tick on the x axis for each of the values."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:,}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def _words(figure: Figure, grid: Any, arms: dict[str, list[Case]], results: Results) -> None:
    """Add titles, axis names, the legend and the machine."""
    for top, bottom, (name, cases) in zip(grid[0], grid[-1], arms.items(), strict=True):
        bottom.set_xlabel(PANELS[name])
        standing = [f"{getattr(cases[0], other):,} {PANELS[other]}" for other in PANELS if other != name]
        top.set_title(", ".join(standing), fontsize=9, color="#555555")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2 + len(arms) // 2 * 2, frameon=False)
    environment = results.environment
    figure.suptitle(f"Cost of k branches\n{environment['model']}; {environment['device']}", fontsize=11)
