"""What drafting and verifying several tokens a pass gains: ours, transformers' ways and a trie, by kind of task."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.agreement import is_tie
from benchmarks.environment import describe
from benchmarks.oracle import passes_of_an_oracle
from benchmarks.speculation_report import Run, Runs, report, wrong
from benchmarks.speculators import GREEDY, MAIN, Company, Contestant, Written, write
from benchmarks.tasks import TASKS, Prompt, like, prompts_of
from benchmarks.timing import rotated, timed
from lookahead_core import Model, load_heads, load_model

NAME = "speculation"
HELP = "Measure speculative decoding against transformers' generate, by kind of task."
DTYPES = ("bfloat16", "float32")
QUICK_PROMPTS = 3
ALL_PROMPTS = sys.maxsize
PROMPTS = {"bfloat16": (ALL_PROMPTS, 2), "float32": (3, 1)}
"""How many prompts of each task the main contestants get, and how many the others, if nothing is said: float32 is there
to show that all write the same."""
WARM_UP = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this subcommand."""
    parser.add_argument(
        "--quick",
        action="store_true",
        help="three prompts a task, the main contestants, and heads if given; bfloat16 alone, if --dtypes says nothing",
    )
    parser.add_argument(
        "--repeats", type=int, default=1, help="how often everybody writes; medians of each prompt count"
    )
    parser.add_argument("--new-tokens", type=int, default=128, help="how many tokens are written at most")
    parser.add_argument("--dtypes", type=_listed(DTYPES), default=(), help="bfloat16, float32 or both, by comma")
    parser.add_argument("--tasks", type=_listed(TASKS), default=TASKS, help=f"some of {','.join(TASKS)}")
    parser.add_argument(
        "--prompts", type=int, help="how many of each task, for everybody; else fewer for variants and float32"
    )
    parser.add_argument("--model", help="what to load: a Hub id, a folder, a .gguf file; the default model if left out")
    parser.add_argument("--draft-model", help="a smaller model with the same tokenizer, for ours and for `generate`")
    parser.add_argument("--heads", help="trained heads for the model: a folder or a Hub id")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save every raw figure")


def _listed(allowed: Sequence[str]) -> Any:
    """Reads words between commas."""

    def read(text: str) -> tuple[str, ...]:
        words = tuple(word.strip() for word in text.split(","))
        if unknown := set(words) - set(allowed):
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: choose from {', '.join(allowed)}")
        return words

    return read


def main(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, save what was asked for; 1 where somebody wrote another text in float32."""
    dtypes = arguments.dtypes or (DTYPES[:1] if arguments.quick else DTYPES)
    models = {dtype: load_model(arguments.model, dtype=dtype, device=arguments.device) for dtype in dtypes}
    first = models[dtypes[0]]
    answers = {} if arguments.quick else answered(first, prompts_for(first, arguments))
    runs = Runs(run for dtype in dtypes for run in measure(dtype, models[dtype], arguments, answers))
    environment = describe(models)
    print("; ".join(f"{name} {value}" for name, value in environment.items()), end="\n\n")
    print(report(runs))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        saved = {"environment": environment, "runs": [asdict(run) for run in runs.runs]}
        arguments.json.write_text(json.dumps(saved, indent=1))
    for run in wrong(runs):
        print(f"{run.contestant}, {run.task} {run.number}: another text than generate's", file=sys.stderr)
    return 1 if wrong(runs) else 0


def prompts_for(model: Model, arguments: argparse.Namespace) -> list[Prompt]:
    """All prompts of the tasks that were asked for."""
    return [prompt for task in arguments.tasks for prompt in prompts_of(task, model.tokenizer, arguments.new_tokens)]


def answered(model: Model, prompts: Sequence[Prompt]) -> dict[Prompt, str]:
    """What the model itself says to each prompt: texts of the same kind as what will be written."""
    decode = model.tokenizer.decode
    return {prompt: decode(write(model, prompt).token_ids, skip_special_tokens=True) for prompt in prompts}


def measure(dtype: str, model: Model, arguments: argparse.Namespace, answers: Mapping[Prompt, str]) -> Iterator[Run]:
    """Everything in one type, prompt by prompt, everybody in turns."""
    company = assemble(model, arguments)
    contestants = [one for one in company.contestants() if one.name in MAIN or not arguments.quick]
    prompts = prompts_for(model, arguments)
    for contestant in contestants:
        contestant.ready(replace(prompts[0], new_tokens=WARM_UP), list(answers.values()))()
    chosen = [(prompt, some) for prompt in prompts if (some := invited(contestants, prompt, dtype, arguments))]
    for repeat in range(arguments.repeats):
        for place, (prompt, some) in enumerate(chosen):
            turns = rotated(some, repeat + place)
            runs = [one(dtype, repeat, contestant, prompt, like(prompt, answers), company) for contestant in turns]
            yield from compared(runs, prompt, company)
            print(_progress(runs, place + 1, len(chosen)), file=sys.stderr, flush=True)


def assemble(model: Model, arguments: argparse.Namespace) -> Company:
    """The contestants' models, in the type of this one."""
    little = heads = None
    if arguments.draft_model:
        little = load_model(arguments.draft_model, dtype=model.dtype, device=arguments.device)
    if arguments.heads:
        heads = load_heads(arguments.heads, model)
    return Company(model, little, heads)


def invited(
    contestants: Sequence[Contestant], prompt: Prompt, dtype: str, arguments: argparse.Namespace
) -> list[Contestant]:
    """Who writes at this prompt."""
    most, few = (arguments.prompts, arguments.prompts) if arguments.prompts else PROMPTS[dtype]
    if arguments.quick:
        most = few = arguments.prompts or QUICK_PROMPTS
    return [each for each in contestants if prompt.number < (most if each.name in MAIN else few)]


def one(dtype: str, repeat: int, contestant: Contestant, prompt: Prompt, texts: Sequence[str], company: Company) -> Run:
    """One attempt; what does not depend on the prompt is made ready before the clock starts."""
    ready = contestant.ready(prompt, texts)
    seconds, written = timed(ready, company.peer.device)
    return _run(dtype, repeat, contestant, prompt, seconds, written)


def _run(dtype: str, repeat: int, contestant: Contestant, prompt: Prompt, seconds: float, written: Written) -> Run:
    where = (dtype, prompt.task, prompt.number, repeat, contestant.name, len(prompt.ids))
    oracle_passes = passes_of_an_oracle(prompt.ids, written.token_ids)
    return Run(*where, seconds, written.token_ids, written.passes, oracle_passes=oracle_passes)


def compared(runs: Sequence[Run], prompt: Prompt, company: Company) -> Iterator[Run]:
    """The attempts at a prompt, each with whether it wrote what plain `generate` wrote."""
    plain = next(run.token_ids for run in runs if run.contestant == GREEDY)
    for run in runs:
        parts = any(one != other for one, other in zip(run.token_ids, plain, strict=False))
        tie = run.dtype == "float32" and parts and is_tie(company.peer, list(prompt.ids), run.token_ids, plain)
        yield replace(run, same=run.token_ids == plain, tie=tie)


def _progress(runs: Sequence[Run], place: int, count: int) -> str:
    plain = next(run.speed for run in runs if run.contestant == GREEDY)
    ratios = ", ".join(f"{run.contestant} {run.speed / plain:.2f}" for run in runs if run.contestant != GREEDY)
    return f"{runs[0].dtype}, {place} of {count}, {runs[0].task}, {plain:.1f} tokens/s: {ratios}"
