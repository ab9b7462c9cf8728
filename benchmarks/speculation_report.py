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
"""The speed that ours is to reach in bfloat16, as a multiple of plain `generate`."""


@dataclass(frozen=True)
class Run:
    """One run of a method at one prompt."""

    dtype: str
    task: str
    number: int
    repeat: int
    contestant: str
    prompt_tokens: int
    seconds: float
    token_ids: tuple[int, ...]
    passes: tuple[Pass, ...] = ()
    same: bool = True
    """Whether the text equals that of plain `generate`."""
    tie: bool = False
    """Where it does not: whether the texts part at two equally likely tokens."""
    oracle_passes: int = 0
    """The passes of the oracle for the same text."""

    @property
    def speed(self) -> float:
        """Tokens a second, prefill included."""
        return len(self.token_ids) / self.seconds


class Runs:
    """All runs, and their ratios."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs = list(runs)
        self.dtypes = list(dict.fromkeys(run.dtype for run in self.runs))
        self.tasks = list(dict.fromkeys(run.task for run in self.runs))

    def of(self, dtype: str, contestant: str, task: str | None = None) -> list[Run]:
        """The runs of a method, at all tasks or at one."""
        asked = (dtype, contestant)
        return [run for run in self.runs if (run.dtype, run.contestant) == asked and task in (None, run.task)]

    def contestants(self, dtype: str) -> list[str]:
        """The methods: first those with the most runs; `MAIN` in its own order."""
        count = Counter(run.contestant for run in self.runs if run.dtype == dtype)
        return [*(name for name in MAIN if name in count), *(name for name in count if name not in MAIN)]

    def prompts(self, dtype: str, contestant: str) -> int:
        """The number of prompts of a method."""
        return len({(run.task, run.number) for run in self.of(dtype, contestant)})

    def ratio(self, dtype: str, contestant: str, row: str) -> float | None:
        """The speed over that of plain `generate`: the geometric mean over the prompts of a task, or over tasks."""
        if row == PASSAGE_TASKS:
            ratios = [self.ratio(dtype, contestant, task) for task in PASSAGES]
        elif row == ALL:
            ratios = [self.ratio(dtype, contestant, task) for task in self.tasks]
        else:
            ratios = self._ratios(dtype, contestant, row)
        known = [ratio for ratio in ratios if ratio is not None]
        return geometric_mean(known) if known and len(known) == len(ratios) else None

    def _ratios(self, dtype: str, contestant: str, task: str) -> list[float | None]:
        """For each prompt the median of its repeats."""
        plain = {(run.number, run.repeat): run.speed for run in self.of(dtype, GREEDY, task)}
        ratios: dict[int, list[float]] = {}
        for run in self.oracles(dtype) if contestant == ORACLE else self.of(dtype, contestant):
            if run.task == task:
                ratios.setdefault(run.number, []).append(run.speed / plain[run.number, run.repeat])
        return [median(some) for some in ratios.values()]

    def oracles(self, dtype: str) -> list[Run]:
        """The runs of the oracle for the texts of ours, at the times that passes of each size had in ours."""
        ours = [run for run in self.of(dtype, OURS) if run.oracle_passes and run.passes]
        sizes = [(one.evaluated, one.seconds) for run in ours for one in run.passes[1:]]
        if len({evaluated for evaluated, _ in sizes}) < 2:
            return []
        a_node, a_pass = linear_regression(*zip(*sizes, strict=True))
        return [replace(run, contestant=ORACLE, seconds=_oracles_seconds(run, a_node, a_pass)) for run in ours]


def _oracles_seconds(run: Run, a_node: float, a_pass: float) -> float:
    """The oracle's seconds: its passes have as many nodes as they win; prefill and gaps take as long as ours."""
    between = (run.seconds - sum(one.seconds for one in run.passes)) / len(run.passes)
    return run.passes[0].seconds + run.oracle_passes * (a_pass + between) + len(run.token_ids) * a_node


def wrong(runs: Runs) -> list[Run]:
    """Runs in float32 that wrote another text without a tie; there must be none."""
    return [run for run in runs.runs if run.dtype == "float32" and not run.same and not run.tie]


def report(runs: Runs) -> str:
    """Every table, as one text."""
    parts = [part for dtype in runs.dtypes for part in (_speeds(runs, dtype), _passes(runs, dtype))]
    if "bfloat16" in runs.dtypes:
        parts.insert(0, _bars(runs))
    return "\n\n".join([*parts, _same(runs)]) + "\n"


def _bars(runs: Runs) -> str:
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
    return NOTHING if one is None or other is None else "yes" if one >= other else "no"


def _speeds(runs: Runs, dtype: str) -> str:
    """Ratios by task and method; a star where a method did not write at all prompts."""
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
    """The tokens won by passes after the prompt: ours by task, the others over all tasks."""
    header = ["contestant", "task", "won a pass", f"by {ORACLE}", "evaluated a pass", "drafting / pass"]
    header.append("whose drafts held")
    ours = [name for name in (OURS, HEADS) if runs.of(dtype, name)]
    rows = [[name, task, *_won(runs.of(dtype, name, task))] for name in ours for task in runs.tasks]
    rows += [[name, ALL, *_won(runs.of(dtype, name))] for name in runs.contestants(dtype) if name != PLAIN]
    title = f"## What passes won, {SHORT.get(dtype, dtype)}"
    return f"{title}\n\n{markdown(header, [row for row in rows if row[2] != NOTHING])}"


def _won(some: Sequence[Run]) -> list[str]:
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
    """The share of accepted draft tokens of each drafter, in per cent."""
    held = Counter(name for one in passes for name in one.drafters)
    return ", ".join(f"{name} {count / held.total():.0%}" for name, count in held.most_common()) or NOTHING


def _same(runs: Runs) -> str:
    """A table of how often a method's text equals that of plain `generate`."""
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
