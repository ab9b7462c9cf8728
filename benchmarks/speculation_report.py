"""The report of the speculation benchmark: ratios to plain `generate`, the bars, and the tokens won by passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean, linear_regression, median

from benchmarks.report import NOTHING, SHORT, markdown
from benchmarks.speculators import GREEDY, HEADS, LOOKUP, MAIN, OURS, PLAIN
from benchmarks.tasks import PASSAGES
from lookahead_core.speculation.draft_and_verify import Pass

PASSAGE_TASKS = "passage tasks"
ALL = "over all"
ORACLE = "an oracle that copies"
BARS = {"copying": 7.0, PASSAGE_TASKS: 4.2, "code": 1.8, "open": 1.25, ALL: 2.6}
"""By task: the speed that ours is meant to reach in bfloat16, as a multiple of plain `generate`."""


@dataclass(frozen=True)
class Run:
    """One run of a method at one prompt."""

    dtype: str
    task: str
    number: int
    """The number of the prompt within its task, from 0."""
    repeat: int
    contestant: str
    """The name of the method."""
    prompt_tokens: int
    seconds: float
    token_ids: tuple[int, ...]
    """The tokens that the method wrote, without the prompt."""
    passes: tuple[Pass, ...] = ()
    """The passes of ours; empty for other methods."""
    same: bool = True
    """Whether the text equals that of plain `generate`."""
    tie: bool = False
    """Whether, in float32, it does not because of two tokens with nearly equal logits."""
    oracle_passes: int = 0
    """The passes that an oracle needs for the same text, see oracle.py."""

    @property
    def speed(self) -> float:
        """Written tokens per second; the prefill counts in the time."""
        return len(self.token_ids) / self.seconds


class Runs:
    """All runs of the benchmark, and speeds as multiples of that of plain `generate`."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs = list(runs)
        self.dtypes = list(dict.fromkeys(run.dtype for run in self.runs))
        self.tasks = list(dict.fromkeys(run.task for run in self.runs))

    def of(self, dtype: str, contestant: str, task: str | None = None) -> list[Run]:
        """Return the runs of a method in a dtype, of one task or, without `task`, of all."""
        asked = (dtype, contestant)
        return [run for run in self.runs if (run.dtype, run.contestant) == asked and task in (None, run.task)]

    def contestants(self, dtype: str) -> list[str]:
        """Return the names of the methods with runs in a dtype: those of MAIN first, then in the order of the runs."""
        count = Counter(run.contestant for run in self.runs if run.dtype == dtype)
        return [*(name for name in MAIN if name in count), *(name for name in count if name not in MAIN)]

    def prompts(self, dtype: str, contestant: str) -> int:
        """Return the number of prompts, over all tasks, at which a method wrote in a dtype."""
        return len({(run.task, run.number) for run in self.of(dtype, contestant)})

    def ratio(self, dtype: str, contestant: str, row: str) -> float | None:
        """Return a method's speed divided by that of plain `generate`; None if it has no runs for a part of the row.

        `row` is a task: the geometric mean over its prompts; or PASSAGE_TASKS or ALL: that over their tasks.
        """
        if row == PASSAGE_TASKS:
            ratios = [self.ratio(dtype, contestant, task) for task in PASSAGES]
        elif row == ALL:
            ratios = [self.ratio(dtype, contestant, task) for task in self.tasks]
        else:
            ratios = self._ratios(dtype, contestant, row)
        known = [ratio for ratio in ratios if ratio is not None]
        return geometric_mean(known) if known and len(known) == len(ratios) else None

    def _ratios(self, dtype: str, contestant: str, task: str) -> list[float | None]:
        """Return, for each prompt of a task, the median over its repeats of the speed divided by plain `generate`'s."""
        plain = {(run.number, run.repeat): run.speed for run in self.of(dtype, GREEDY, task)}
        ratios: dict[int, list[float]] = {}
        for run in self.oracles(dtype) if contestant == ORACLE else self.of(dtype, contestant):
            if run.task == task:
                ratios.setdefault(run.number, []).append(run.speed / plain[run.number, run.repeat])
        return [median(some) for some in ratios.values()]

    def oracles(self, dtype: str) -> list[Run]:
        """Return the oracle's runs for the texts of ours, with seconds estimated from the passes of ours.

        A linear fit of seconds over evaluated tokens gives the time of a pass. Empty if all passes have one size.
        """
        ours = [run for run in self.of(dtype, OURS) if run.oracle_passes and run.passes]
        sizes = [(one.evaluated, one.seconds) for run in ours for one in run.passes[1:]]
        if len({evaluated for evaluated, _ in sizes}) < 2:
            return []
        a_node, a_pass = linear_regression(*zip(*sizes, strict=True))
        return [replace(run, contestant=ORACLE, seconds=_oracles_seconds(run, a_node, a_pass)) for run in ours]


def _oracles_seconds(run: Run, a_node: float, a_pass: float) -> float:
    """Return the oracle's seconds for a run of ours: `a_pass` seconds for a pass, and `a_node` for each token in it.

    Its passes have as many nodes as they gain; the prefill and the time between passes are those of ours.
    """
    between = (run.seconds - sum(one.seconds for one in run.passes)) / len(run.passes)
    return run.passes[0].seconds + run.oracle_passes * (a_pass + between) + len(run.token_ids) * a_node


def wrong(runs: Runs) -> list[Run]:
    """Return the float32 runs whose text is not that of plain `generate`, without a tie; there must be none."""
    return [run for run in runs.runs if run.dtype == "float32" and not run.same and not run.tie]


def report(runs: Runs) -> str:
    """Return every table as one Markdown text; the table of bars only with runs in bfloat16."""
    parts = [part for dtype in runs.dtypes for part in (_speeds(runs, dtype), _passes(runs, dtype))]
    if "bfloat16" in runs.dtypes:
        parts.insert(0, _bars(runs))
    return "\n\n".join([*parts, _same(runs)]) + "\n"


def _bars(runs: Runs) -> str:
    """Return the table of BARS and the speeds reached in bfloat16, with those of prompt lookup and the oracle."""
    ours = [name for name in (OURS, HEADS) if runs.of("bfloat16", name)]
    header = ["task", "bar", *(word for name in ours for word in (name, "reached")), LOOKUP, "ahead", ORACLE]
    rows = []
    for row in (*runs.tasks, PASSAGE_TASKS, ALL):
        bar, lookup = BARS.get(row), runs.ratio("bfloat16", LOOKUP, row)
        reached = [runs.ratio("bfloat16", name, row) for name in ours]
        figures = [word for ratio in reached for word in (_times(ratio), _more(ratio, bar))]
        ahead = _more(min((ratio for ratio in reached if ratio), default=None), lookup)
        rows.append([row, _times(bar), *figures, _times(lookup), ahead, _times(runs.ratio("bfloat16", ORACLE, row))])
    return f"## The bars, bf16\n\nTokens a second, plain `generate` = 1.\n\n{markdown(header, rows)}"


def _more(one: float | None, other: float | None) -> str:
    """Return "yes" if `one` is at least `other`, else "no"; NOTHING if one of them is None."""
    return NOTHING if one is None or other is None else "yes" if one >= other else "no"


def _speeds(runs: Runs, dtype: str) -> str:
    """Return a table of ratios by task and method; a star marks methods that did not write at all prompts."""
    names = [name for name in runs.contestants(dtype) if name != GREEDY]
    most = runs.prompts(dtype, GREEDY)
    stars = {name: "*" if runs.prompts(dtype, name) < most else "" for name in names}
    header = ["task", "generate, tokens/s", *(name + stars[name] for name in names)]
    rows = [
        [row, _tokens_a_second(runs, dtype, row), *(_times(runs.ratio(dtype, name, row)) for name in names)]
        for row in (*runs.tasks, PASSAGE_TASKS, ALL)
    ]
    fewer = sorted({runs.prompts(dtype, name) for name in names if stars[name]})
    note = f" * wrote at {' or '.join(map(str, fewer))} of them." if fewer else ""
    title = f"## Tokens a second, {SHORT.get(dtype, dtype)}, plain `generate` = 1"
    how = f"Cold, prompt included, {most} prompts; geometric means of prompts, then of tasks.{note}"
    return f"{title}\n\n{how}\n\n{markdown(header, rows)}"


def _tokens_a_second(runs: Runs, dtype: str, row: str) -> str:
    some = runs.of(dtype, GREEDY, row)
    return f"{median(run.speed for run in some):.1f}" if some else ""


def _passes(runs: Runs, dtype: str) -> str:
    """Return a table of the tokens gained by passes after the prompt: ours by task, each variant over all tasks."""
    header = ["contestant", "task", "won a pass", f"by {ORACLE}", "evaluated a pass", "drafting / pass"]
    header.append("whose drafts held")
    ours = [name for name in (OURS, HEADS) if runs.of(dtype, name)]
    rows = [[name, task, *_won(runs.of(dtype, name, task))] for name in ours for task in runs.tasks]
    rows += [[name, ALL, *_won(runs.of(dtype, name))] for name in runs.contestants(dtype) if name != PLAIN]
    title = f"## What passes won, {SHORT.get(dtype, dtype)}"
    return f"{title}\n\n{markdown(header, [row for row in rows if row[2] != NOTHING])}"


def _won(some: Sequence[Run]) -> list[str]:
    """Return five cells: tokens gained a pass, by the oracle, evaluated; share of drafting time; drafters' shares."""
    passes = [one for run in some for one in run.passes[1:]]
    if not passes:
        return [NOTHING] * 5
    drafting = sum(one.drafting for one in passes) / sum(one.seconds for one in passes)
    oracle = sum(run.oracle_passes for run in some)
    return [
        f"{sum(one.won for one in passes) / len(passes):.2f}",
        f"{sum(len(run.token_ids) for run in some) / oracle:.2f}" if oracle else NOTHING,
        f"{sum(one.evaluated for one in passes) / len(passes):.1f}",
        f"{drafting:.1%}",
        shares(passes),
    ]


def shares(passes: Sequence[Pass]) -> str:
    """Return each drafter's share of the accepted draft tokens, as "suffix 60%, heads 40%"; NOTHING without any."""
    held = Counter(name for one in passes for name in one.drafters)
    return ", ".join(f"{name} {count / held.total():.0%}" for name, count in held.most_common()) or NOTHING


def _same(runs: Runs) -> str:
    """Return a table of how often a method's text equals that of plain `generate`, by dtype."""
    names = list(dict.fromkeys(name for dtype in runs.dtypes for name in runs.contestants(dtype) if name != GREEDY))
    rows = [[name, *(_agreeing(runs.of(dtype, name)) for dtype in runs.dtypes)] for name in names]
    note = "In fp32 another text is an error unless two tokens are tied where they part."
    return f"## The same text as plain `generate`\n\n{note}\n\n" + markdown(
        ["contestant", *(SHORT.get(dtype, dtype) for dtype in runs.dtypes)], rows
    )


def _agreeing(some: Sequence[Run]) -> str:
    ties = sum(run.tie for run in some)
    return f"{sum(run.same for run in some)} of {len(some)}" + (f", {ties} tied" if ties else "") if some else NOTHING


def _times(ratio: float | None) -> str:
    return NOTHING if ratio is None else f"{ratio:.2f}"
