"""The speed of speculative decoding by kind of task: ours, the methods of transformers, and a trie (trie.py)."""

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
from benchmarks.speculators import GREEDY, MAIN, SpeculationMethod, SpeculationMethods, Written, write
from benchmarks.tasks import TASKS, Prompt, corpus_for, prompts_of
from benchmarks.timing import rotated, timed
from lookahead_core import Model, load_heads, load_model

NAME = "speculation"
HELP = "Measure speculative decoding against transformers' generate, by kind of task."
DTYPES = ("bfloat16", "float32")
QUICK_PROMPTS = 3
ALL_PROMPTS = sys.maxsize
PROMPTS = {"bfloat16": (ALL_PROMPTS, 2), "float32": (3, 1)}
"""By dtype: prompts of each task for the main methods, and for the others. float32 shows that all texts are equal."""
WARM_UP = 8
"""Tokens that each method writes once before the measurement."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
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
    """Return a function for argparse's `type` that splits a text at commas; each word must be one of `allowed`."""

    def read(text: str) -> tuple[str, ...]:
        words = tuple(word.strip() for word in text.split(","))
        if unknown := set(words) - set(allowed):
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: choose from {', '.join(allowed)}")
        return words

    return read


def main(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, save the figures as the arguments say.

    Returns 1 if a method wrote another text in float32 without a tie, otherwise 0.
    """
    dtypes = arguments.dtypes or (DTYPES[:1] if arguments.quick else DTYPES)
    models = {dtype: load_model(arguments.model, dtype=dtype, device=arguments.device) for dtype in dtypes}
    first = models[dtypes[0]]
    answers = {} if arguments.quick else model_answers(first, prompts_for(first, arguments))
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
    """Return all prompts of the tasks in `arguments.tasks`, through the model's chat template."""
    return [prompt for task in arguments.tasks for prompt in prompts_of(task, model.tokenizer, arguments.new_tokens)]


def model_answers(model: Model, prompts: Sequence[Prompt]) -> dict[Prompt, str]:
    """Return the text that the model writes after each prompt, for the corpora."""
    decode = model.tokenizer.decode
    return {prompt: decode(write(model, prompt).token_ids, skip_special_tokens=True) for prompt in prompts}


def measure(dtype: str, model: Model, arguments: argparse.Namespace, answers: Mapping[Prompt, str]) -> Iterator[Run]:
    """Yield the runs of one dtype: prompt by prompt, all methods in turns.

    `answers` are the texts of the corpora by prompt, see `corpus_for`.
    """
    methods = load_methods(model, arguments)
    contestants = [one for one in methods.contestants() if one.name in MAIN or not arguments.quick]
    prompts = prompts_for(model, arguments)
    for contestant in contestants:
        contestant.prepare(replace(prompts[0], new_tokens=WARM_UP), list(answers.values()))()
    chosen = [(prompt, some) for prompt in prompts if (some := methods_for(contestants, prompt, dtype, arguments))]
    for repeat in range(arguments.repeats):
        for place, (prompt, some) in enumerate(chosen):
            turns = rotated(some, repeat + place)
            runs = [
                run_method(dtype, repeat, contestant, prompt, corpus_for(prompt, answers), methods)
                for contestant in turns
            ]
            yield from compared(runs, prompt, methods)
            print(_progress(runs, place + 1, len(chosen)), file=sys.stderr, flush=True)


def load_methods(model: Model, arguments: argparse.Namespace) -> SpeculationMethods:
    """Return the methods, all in the dtype of `model`; load the draft model and heads that the arguments name."""
    draft_model = heads = None
    if arguments.draft_model:
        draft_model = load_model(arguments.draft_model, dtype=model.dtype, device=arguments.device)
    if arguments.heads:
        heads = load_heads(arguments.heads, model)
    return SpeculationMethods(model, draft_model, heads)


def methods_for(
    contestants: Sequence[SpeculationMethod], prompt: Prompt, dtype: str, arguments: argparse.Namespace
) -> list[SpeculationMethod]:
    """Return those of `contestants` that write at this prompt: MAIN methods at more prompts than the others."""
    most, few = (arguments.prompts, arguments.prompts) if arguments.prompts else PROMPTS[dtype]
    if arguments.quick:
        most = few = arguments.prompts or QUICK_PROMPTS
    return [each for each in contestants if prompt.number < (most if each.name in MAIN else few)]


def run_method(
    dtype: str,
    repeat: int,
    contestant: SpeculationMethod,
    prompt: Prompt,
    texts: Sequence[str],
    methods: SpeculationMethods,
) -> Run:
    """Prepare a method for a prompt and a corpus of `texts`, run it, and return the run; only the writing is timed."""
    run = contestant.prepare(prompt, texts)
    seconds, written = timed(run, methods.peer.device)
    return _run(dtype, repeat, contestant, prompt, seconds, written)


def _run(
    dtype: str, repeat: int, contestant: SpeculationMethod, prompt: Prompt, seconds: float, written: Written
) -> Run:
    where = (dtype, prompt.task, prompt.number, repeat, contestant.name, len(prompt.ids))
    oracle_passes = passes_of_an_oracle(prompt.ids, written.token_ids)
    return Run(*where, seconds, written.token_ids, written.passes, oracle_passes=oracle_passes)


def compared(runs: Sequence[Run], prompt: Prompt, methods: SpeculationMethods) -> Iterator[Run]:
    """Yield the runs of a prompt with `same` and `tie` set, by the text of plain `generate`, which is among the runs.

    `tie` is set in float32 only.
    """
    plain = next(run.token_ids for run in runs if run.contestant == GREEDY)
    for run in runs:
        parts = any(one != other for one, other in zip(run.token_ids, plain, strict=False))
        tie = run.dtype == "float32" and parts and is_tie(methods.peer, list(prompt.ids), run.token_ids, plain)
        yield replace(run, same=run.token_ids == plain, tie=tie)


def _progress(runs: Sequence[Run], place: int, count: int) -> str:
    """Return a line about the runs of prompt number `place` of `count`: speeds as multiples of plain `generate`."""
    plain = next(run.speed for run in runs if run.contestant == GREEDY)
    ratios = ", ".join(f"{run.contestant} {run.speed / plain:.2f}" for run in runs if run.contestant != GREEDY)
    return f"{runs[0].dtype}, {place} of {count}, {runs[0].task}, {plain:.1f} tokens/s: {ratios}"
