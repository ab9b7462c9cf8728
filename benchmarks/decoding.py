"""The cost of beam search, sampling and greedy decoding, against transformers' `generate` in the same run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import torch
from transformers import GenerationConfig, PreTrainedModel

from benchmarks.agreement import is_tie
from benchmarks.environment import describe
from benchmarks.peers import peers_model
from benchmarks.prompts import Prompts
from benchmarks.report import markdown
from benchmarks.timing import rotated, timed
from lookahead_core import Document, Model, load_model
from lookahead_core.document.batch import stream_batch

NAME = "decoding"
HELP = "Measure beam search, sampling and greedy decoding against transformers' generate."
DTYPES = ("float32", "bfloat16")
PROMPTS = (64, 256, 768)
SAMPLING = {"temperature": 0.8, "top_p": 0.95}
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Task:
    """What both sides decode."""

    name: str
    kind: str
    """"beam", "sample" or "greedy"."""
    width: int
    """The number of beams or sampled sequences; 1 for greedy decoding."""
    new_tokens: int
    """The number of tokens of each sequence, without the prompt."""


@dataclass(frozen=True)
class Decoded:
    """The result of one side: ours, or transformers'."""

    sequences: tuple[tuple[int, ...], ...]
    """The new token ids of each sequence."""
    scores: tuple[float, ...]
    """The score of each beam; empty for samples and greedy decoding."""
    slots: int
    """Tokens in the cache at the end, rows times columns for transformers."""
    cache_bytes: int


@dataclass(frozen=True)
class Timing:
    """Both sides of one task in one repeat."""

    task: str
    dtype: str
    prompt: int
    """Tokens of the prompt."""
    ours: float
    """Seconds of ours."""
    theirs: float
    """Seconds of transformers."""
    same: bool
    """Whether both found the same sequences; always True for samples."""
    our_slots: int
    their_slots: int
    our_bytes: int
    their_bytes: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
    parser.add_argument("--quick", action="store_true", help="256 tokens in float32 and 768 in bfloat16 only")
    parser.add_argument("--repeats", type=int, default=5, help="interleaved repeats of each; medians count")
    parser.add_argument("--new-tokens", type=int, default=10, help="how many tokens beams and samples add")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save every raw figure")
    parser.add_argument("--model", help="what to load: a Hub id, a folder, a .gguf file; the default model if left out")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")


def main(arguments: argparse.Namespace) -> int:
    """Measure, print the table, save the figures as the arguments say; return 0."""
    size = arguments.new_tokens
    tasks = [Task(f"beam {width}", "beam", width, size) for width in (5, 20)]
    tasks += [Task(f"sample {width}", "sample", width, size) for width in (5, 20)]
    tasks += [Task("greedy", "greedy", 1, 4 * size)]
    models = {dtype: load_model(arguments.model, dtype=dtype, device=arguments.device) for dtype in DTYPES}
    cases = [(dtype, prompt) for prompt in PROMPTS for dtype in DTYPES]
    if arguments.quick:
        cases = [("float32", 256), ("bfloat16", 768)]
    timings = measure(models, tasks, cases, arguments.repeats)
    print("; ".join(f"{name} {value}" for name, value in describe(models).items()), end="\n\n")
    print(table(timings))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps([asdict(timing) for timing in timings], indent=1))
    return 0


def measure(
    models: dict[str, Model], tasks: Sequence[Task], cases: Sequence[tuple[str, int]], repeats: int
) -> list[Timing]:
    """Time all tasks in turns, `repeats` times for each case, each time on a prompt new to the process.

    `models` are by dtype; a case is a dtype and a number of prompt tokens.
    """
    prompts = Prompts(models[DTYPES[0]].tokenizer)
    # Both sides ignore end tokens, so that both do the same work.
    endless = {dtype: replace(model, end_token_ids=frozenset()) for dtype, model in models.items()}
    peers = {dtype: peers_model(model.hf_model) for dtype, model in models.items()}
    timings: list[Timing] = []
    for repeat in range(repeats):
        for dtype, prompt in cases:
            for task in rotated(tasks, repeat):
                ids = prompts.draw(prompt)
                timings.append(one(task, dtype, endless[dtype], peers[dtype], ids, ours_first=repeat % 2 == 0))
                last = timings[-1]
                ratio = last.theirs / last.ours
                print(f"{repeat + 1}: {dtype}, {prompt}, {task.name}: {ratio:.2f}", file=sys.stderr, flush=True)
    return timings


def one(task: Task, dtype: str, model: Model, peer: PreTrainedModel, ids: list[int], *, ours_first: bool) -> Timing:
    """Time both sides on one prompt, one after the other.

    Raises AssertionError if beam or greedy results in float32 differ by more than a tie.
    """
    sides: dict[str, Callable[[], Decoded]] = {
        "ours": lambda: OURS[task.kind](model, task, ids),
        "theirs": lambda: theirs(peer, task, ids),
    }
    order = ("ours", "theirs") if ours_first else ("theirs", "ours")
    found = {side: timed(sides[side], peer.device) for side in order}
    (ours, mine), (other, peers) = found["ours"], found["theirs"]
    same = task.kind == "sample" or mine.sequences == peers.sequences
    if dtype == "float32" and task.kind != "sample":
        check(task, mine, peers, peer, ids)
    return Timing(
        task.name, dtype, len(ids), ours, other, same, mine.slots, peers.slots, mine.cache_bytes, peers.cache_bytes
    )


def check(task: Task, mine: Decoded, peers: Decoded, judge: PreTrainedModel, ids: list[int]) -> None:
    """Raise AssertionError if the sides' sequences differ by more than a tie.

    Beams are tied if their scores differ by at most 1e-4, greedy sequences if `is_tie` says so with the model `judge`.
    """
    if mine.sequences == peers.sequences:
        return
    pairs = zip(mine.scores, peers.scores, strict=True)
    tied = all(abs(one - other) <= 1e-4 for one, other in pairs)
    if task.kind == "greedy":
        tied = is_tie(judge, ids, mine.sequences[0], peers.sequences[0])
    if not tied:
        raise AssertionError(f"{task.name}: ours found {mine.sequences}, transformers {peers.sequences}.")


def our_beams(model: Model, task: Task, ids: list[int]) -> Decoded:
    """Run our beam search in a new document."""
    result = Document(model, token_ids=ids).beam_search(num_beams=task.width, max_new_tokens=task.new_tokens)
    scores = tuple(beam.score for beam in result.branches)
    sequences = tuple(beam.token_ids for beam in result.branches)
    return Decoded(sequences, scores, result.cost.live_slots, result.cost.cache_bytes)


def our_samples(model: Model, task: Task, ids: list[int]) -> Decoded:
    """Draw `task.width` samples of a new document with our streams, in shared passes."""
    document = Document(model, token_ids=ids)
    texts: list[list[int]] = [[] for _ in range(task.width)]
    steps = stream_batch(
        [document] * task.width, max_new_tokens=task.new_tokens, seed=len(ids), speculate=False, **SAMPLING
    )
    for index, step in steps:
        texts[index].append(step.token_id)
    return Decoded(tuple(map(tuple, texts)), (), *model.engine.cache_usage(document.tree))


def our_stream(model: Model, task: Task, ids: list[int]) -> Decoded:
    """Decode greedily with our stream in a new document, without speculation."""
    document = Document(model, token_ids=ids)
    text = tuple(step.token_id for step in document.stream(max_new_tokens=task.new_tokens, speculate=False))
    return Decoded((text,), (), *model.engine.cache_usage(document.tree))


OURS: dict[str, Callable[[Model, Task, list[int]], Decoded]] = {
    "beam": our_beams,
    "sample": our_samples,
    "greedy": our_stream,
}


@torch.inference_mode()
def theirs(peer: PreTrainedModel, task: Task, ids: list[int]) -> Decoded:
    """Run the task with transformers' `generate`, with all its options set explicitly."""
    row = torch.tensor([ids], device=peer.device)
    beams = task.kind == "beam"
    sampling = {"do_sample": True, "top_k": 0, **SAMPLING} if task.kind == "sample" else {"do_sample": False}
    config = GenerationConfig(
        max_new_tokens=task.new_tokens,
        min_new_tokens=task.new_tokens,
        num_beams=task.width if beams else 1,
        num_return_sequences=task.width,
        repetition_penalty=1.0,
        no_repeat_ngram_size=0,
        use_cache=True,
        return_dict_in_generate=True,
        output_scores=beams,
        **({"length_penalty": 1.0, "early_stopping": False} if beams else {}),
        **sampling,
    )
    output = peer.generate(row, attention_mask=torch.ones_like(row), generation_config=config)
    layers = output.past_key_values.layers
    slots = layers[0].keys.shape[0] * layers[0].keys.shape[2]
    size = sum(layer.keys.nbytes + layer.values.nbytes for layer in layers)
    sequences = tuple(map(tuple, output.sequences[:, len(ids) :].tolist()))
    return Decoded(sequences, tuple(output.sequences_scores.tolist()) if beams else (), slots, size)


def table(timings: Sequence[Timing]) -> str:
    """Return a Markdown table by task, prompt length and dtype: median seconds of ours, ratio of theirs, and caches."""
    header = ["task", "prompt", "type", "ours, s", "generate / ours", "same", "slots", "theirs", "MiB", "theirs, MiB"]
    groups: dict[tuple[str, int, str], list[Timing]] = {}
    for timing in timings:
        groups.setdefault((timing.task, timing.prompt, timing.dtype), []).append(timing)
    return markdown(header, [_row(key, some) for key, some in sorted(groups.items())])


def _row(key: tuple[str, int, str], some: Sequence[Timing]) -> list[str]:
    task, prompt, dtype = key
    last = some[-1]
    return [
        task,
        str(prompt),
        dtype,
        f"{median(timing.ours for timing in some):.3f}",
        f"{median(timing.theirs / timing.ours for timing in some):.2f}",
        "any" if task.startswith("sample") else f"{sum(timing.same for timing in some)} of {len(some)}",
        str(last.our_slots),
        str(last.their_slots),
        f"{last.our_bytes / MEBIBYTE:.1f}",
        f"{last.their_bytes / MEBIBYTE:.1f}",
    ]
