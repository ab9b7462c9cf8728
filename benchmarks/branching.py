"""The cost of k branches, against methods of an earlier notebook, those of transformers, and bare matrix products."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedModel

from benchmarks.agreement import check_agreement, with_agreement
from benchmarks.contestants import COLD, FLOOR, Method, contestants
from benchmarks.environment import describe
from benchmarks.peers import peers_model
from benchmarks.plot import save_plot
from benchmarks.prompts import Prompts
from benchmarks.report import report
from benchmarks.results import Case, LeftOut, Measure, Results, Run
from benchmarks.shapes import SHAPES, random_model
from benchmarks.timing import rotated
from lookahead_core import Model, load_model
from lookahead_core.loading.device import available_device

NAME = "branching"
HELP = "Measure what k branches cost, against other ways to get them."
DTYPES = ("float32", "bfloat16")
# A star: every arm leaves the middle case in one dimension.
MIDDLE = Case(prompt=256, k=5, depth=10)
FULL = (
    Case(64, 5, 10), MIDDLE, Case(768, 5, 10), Case(2000, 5, 10),
    Case(256, 1, 10), Case(256, 20, 10),
    Case(256, 5, 2), Case(256, 5, 40),
)  # fmt: skip
PLOT = Path("benchmarks/out/branching.png")
QUICK = (Case(64, 5, 10), MIDDLE)
# Tokens that a method would have to evaluate in one attempt: above the first number it runs in the last repeat
# only, above the second not at all. They bound the run to some 25 minutes on two slow cores.
ONCE_ABOVE = 10_000
LEFT_OUT_ABOVE = 40_000


@dataclass(frozen=True)
class Participants:
    """The methods and models of a run."""

    contestants: tuple[Method, ...]
    """All methods, in all dtypes."""
    models: dict[str, Model]
    """Our models by dtype, as "float32"."""
    judges: dict[str, PreTrainedModel]
    """By dtype, plain transformers models, which the peers run and which check results."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
    parser.add_argument("--quick", action="store_true", help="64 and 256 tokens, k 5, depth 10, three repeats")
    parser.add_argument(
        "--case", type=int, nargs=3, metavar=("PROMPT", "K", "DEPTH"), help="this one case, in five repeats"
    )
    parser.add_argument(
        "--most", type=int, metavar="TOKENS", default=LEFT_OUT_ABOVE, help="leave out who would evaluate more than that"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="save every raw figure")
    parser.add_argument("--plot", type=Path, metavar="FILE", default=PLOT, help=f"where to save the plot: {PLOT}")
    parser.add_argument("--no-plot", dest="plot", action="store_const", const=None, help="draw nothing")
    parser.add_argument("--model", help="what to load: a Hub id, a folder, a .gguf file; the default model if left out")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES, help="the types of the weights")
    parser.add_argument(
        "--shape", choices=SHAPES, help="random weights in this shape, which need no download; --model is its tokenizer"
    )


def main(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, save figures and plot as the arguments say; return 0.

    Raises AssertionError if a method finds wrong branches.
    """
    cases, repeats = (QUICK, 3) if arguments.quick else (FULL, 5)
    if arguments.case:
        cases = (Case(*arguments.case),)
    slots = max(case.tree_tokens for case in cases)
    if arguments.shape:
        models = random_models(arguments.shape, arguments.model, arguments.dtypes, arguments.device)
    else:
        models = {
            dtype: load_model(arguments.model, dtype=dtype, device=arguments.device) for dtype in arguments.dtypes
        }
    participants = prepare_participants(models, slots)
    results = measure(participants, cases, repeats, arguments.most)
    print(report(results))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(results.as_json(), indent=1))
    if arguments.plot:
        print(save_plot(results, arguments.plot))
    return 0


def random_models(shape: str, tokenizer_of: str | None, dtypes: Sequence[str], device: str) -> dict[str, Model]:
    """Return, by dtype, models of a shape with random weights and the tokenizer of another model.

    `tokenizer_of` is a Hub id or a folder, None for the default model.
    """
    if tokenizer_of is None:
        tokenizer = load_model(None, device="cpu").tokenizer
    else:
        tokenizer = AutoTokenizer.from_pretrained(tokenizer_of)
    place = available_device(device)
    return {dtype: load_model(random_model(shape, dtype, place), tokenizer=tokenizer) for dtype in dtypes}


def prepare_participants(models: dict[str, Model], slots: int) -> Participants:
    """Return all methods for these models, by dtype: ours, the peers with a copy, the matrix products of the floor.

    `slots` is the most tokens of a tree.
    """
    judges = {dtype: peers_model(model.hf_model) for dtype, model in models.items()}
    everybody = [contestants(model, judges[dtype], dtype, slots) for dtype, model in models.items()]
    return Participants(tuple(chain.from_iterable(everybody)), models, judges)


def measure(participants: Participants, cases: Sequence[Case], repeats: int, most: int = LEFT_OUT_ABOVE) -> Results:
    """Run all methods in turns, `repeats` times in each case, and return the results.

    A method that would evaluate more than `most` tokens in a case is left out; above ONCE_ABOVE tokens it runs in the
    last repeat only.
    """
    prompts = Prompts(next(iter(participants.models.values())).tokenizer)
    runs: list[Run] = []
    for case in cases:
        for repeat in range(repeats):
            last = repeat == repeats - 1
            limit = most if last else min(most, ONCE_ABOVE)
            runs.extend(one_repeat(participants, case, repeat, limit, prompts))
            _print_progress(case, repeat, runs)
    return Results(describe(participants.models), tuple(runs), left_out(participants, cases, most))


def one_repeat(participants: Participants, case: Case, repeat: int, limit: int, prompts: Prompts) -> list[Run]:
    """Run each method that evaluates at most `limit` tokens, on a prompt new to the process; return its measures.

    The number of the repeat decides which method is first. Raises AssertionError if branches differ in float32 without
    a tie.
    """
    dtypes = list(participants.models)
    ids = {dtype: prompts.draw(case.prompt) for dtype in dtypes}
    measures: dict[str, list[Measure]] = {dtype: [] for dtype in dtypes}
    for contestant in rotated(participants.contestants, repeat):
        if contestant.tokens(case) <= limit:
            measures[contestant.dtype].extend(contestant.attempt(case, ids[contestant.dtype]))
    if "float32" in dtypes:
        check_agreement(participants.judges["float32"], ids["float32"], measures["float32"])
    return [
        Run(case, dtype, repeat, measure, same) for dtype in dtypes for measure, same in with_agreement(measures[dtype])
    ]


def left_out(participants: Participants, cases: Sequence[Case], most: int) -> tuple[LeftOut, ...]:
    """Return, for each case, the methods that would evaluate more than `most` tokens."""
    pairs = [(case, contestant, contestant.tokens(case)) for case in cases for contestant in participants.contestants]
    return tuple(
        LeftOut(case, contestant.dtype, contestant.name, tokens) for case, contestant, tokens in pairs if tokens > most
    )


def _print_progress(case: Case, repeat: int, runs: Sequence[Run]) -> None:
    """Print one line to stderr: the seconds of ours and of the floor in this repeat of a case."""
    latest = [run for run in runs if (run.case, run.repeat) == (case, repeat)]
    shown = {(run.dtype, run.measure.method): run.measure.seconds for run in latest}
    dtypes = dict.fromkeys(run.dtype for run in latest)
    words = [f"{dtype} ours {shown[dtype, COLD]:.2f} s, floor {shown[dtype, FLOOR]:.2f} s" for dtype in dtypes]
    print(f"{case}, repeat {repeat + 1}: {'; '.join(words)}", file=sys.stderr, flush=True)
