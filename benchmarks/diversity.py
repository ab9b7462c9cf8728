"""How dissimilar the branches of each lookahead mode are, and what that costs in probability and passes.

Similarity is measured without the library's own measure: by words, and by hidden states from plain forward passes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import torch

from benchmarks.environment import describe
from benchmarks.report import markdown
from benchmarks.tasks import TEXTS
from lookahead_core import Document, Model, load_model

NAME = "diversity"
HELP = "Measure how dissimilar the branches of each mode are, and what that costs in probability and passes."
MODES = ("likely", "diverse", "surprising")
PASSAGES = ("copying", "answering", "retelling")
FEWEST_WORDS, MOST_WORDS = 8, 60
DRAWN = 20
"""Number of continuations sampled for each prompt: their mean vector is what all continuations have in common."""


@dataclass(frozen=True)
class ModeFigures:
    """The figures of one mode's branches, here called rows, after one prompt."""

    mode: str
    words: float
    """Mean over pairs of rows: the share of their words that both have."""
    vectors: float
    """Mean over pairs of rows: the cosine of their mean hidden states, minus the mean of sampled continuations."""
    cosines: float
    """Mean over pairs of rows: the cosine of their mean hidden states."""
    coverage: float
    logprob: float
    """Mean log-probability of the tokens of all rows."""
    rows: int
    passes: int
    tokens: int
    seconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
    parser.add_argument("--prompts", type=int, default=50, help="number of prompts (50)")
    parser.add_argument("-k", type=int, default=5, help="number of rows (5)")
    parser.add_argument("--depth", type=int, default=8, help="tokens of each row (8)")
    parser.add_argument("--model", help="a Hub name or a folder; the default model, if not given")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure to this file")


def main(arguments: argparse.Namespace) -> int:
    """Measure every mode after every prompt, print a table, and return the exit status 0."""
    model = load_model(arguments.model) if arguments.model else load_model()
    found = [
        measured
        for number, prompt in enumerate(prompts(arguments.prompts))
        for measured in measure(model, prompt, arguments.k, arguments.depth, number)
    ]
    environment = describe({str(model.dtype): model})
    print("; ".join(f"{name} {value}" for name, value in environment.items()))
    print(f"\n{arguments.prompts} prompts, k {arguments.k}, depth {arguments.depth}\n\n{table(found)}")
    if arguments.json:
        figures = {"environment": environment, "measured": [asdict(one) for one in found]}
        arguments.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


def prompts(count: int) -> list[str]:
    """Return `count` beginnings of English passages, cut after a random word; the same at each call."""
    entries = [entry for name in PASSAGES for entry in json.loads((TEXTS / f"{name}.json").read_text())["prompts"]]
    dice = random.Random(0)
    found = []
    for entry in itertools.islice(itertools.cycle(entries), count):
        words = entry["text"].split()
        found.append(" ".join(words[: dice.randrange(FEWEST_WORDS, min(MOST_WORDS, len(words)))]))
    return found


def measure(model: Model, prompt: str, k: int, depth: int, seed: int) -> list[ModeFigures]:
    """Return the figures of each mode after a prompt, each on a new document; `seed` is that of the samples."""
    drawn = Document(model, prompt).lookahead(mode="sampled", k=DRAWN, depth=depth, seed=seed)
    ids = Document(model, prompt).token_ids
    common = _vectors(model, ids, [branch.token_ids for branch in drawn.branches]).mean(0)
    measured = []
    for mode in MODES:
        result = Document(model, prompt).lookahead(mode=mode, k=k, depth=depth)
        vectors = _vectors(model, ids, [branch.token_ids for branch in result.branches])
        cost = result.cost
        measured.append(
            ModeFigures(
                mode=mode,
                words=_mean_of_pairs([_words(branch.text) for branch in result.branches], _shared),
                vectors=_mean_of_pairs(vectors - common, _cosine),
                cosines=_mean_of_pairs(vectors, _cosine),
                coverage=result.coverage,
                logprob=mean(value for branch in result.branches for value in branch.logprobs),
                rows=len(result.branches),
                passes=cost.passes,
                tokens=cost.tokens,
                seconds=cost.seconds,
            )
        )
    return measured


def table(found: Sequence[ModeFigures]) -> str:
    """Return the means over all prompts as a Markdown table, one row for each mode; passes and seconds are medians."""
    header = [
        "mode", "rows", "shared words", "of likely", "vectors", "of likely", "bare cosine", "coverage",
        "log-prob. a token", "passes", "tokens", "ms",
    ]  # fmt: skip
    lines = []
    base = [one for one in found if one.mode == MODES[0]]
    for mode in MODES:
        own = [one for one in found if one.mode == mode]
        words, vectors = (
            (mean(getattr(one, name) for one in own), mean(getattr(one, name) for one in base))
            for name in ("words", "vectors")
        )
        lines.append([
            mode, f"{mean(one.rows for one in own):.2f}",
            f"{words[0]:.3f}", f"{words[0] / words[1]:.2f}", f"{vectors[0]:.3f}", f"{vectors[0] / vectors[1]:.2f}",
            f"{mean(one.cosines for one in own):.3f}", f"{mean(one.coverage for one in own):.1%}",
            f"{mean(one.logprob for one in own):.2f}", f"{median(one.passes for one in own):.0f}",
            f"{median(one.tokens for one in own):.0f}", f"{1000 * median(one.seconds for one in own):.0f}",
        ])  # fmt: skip
    return markdown(header, lines)


@torch.inference_mode()
def _vectors(model: Model, ids: Sequence[int], rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return the mean last hidden state over each row's tokens, of shape (rows, width), by plain forward passes."""
    states = []
    for row in rows:
        output = model.hf_model(torch.tensor([[*ids, *row]], device=model.hf_model.device), output_hidden_states=True)
        states.append(output.hidden_states[-1][0, len(ids) :].float().mean(0).cpu())
    return torch.stack(states)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower()))


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(one, other, dim=0))


def _mean_of_pairs(values: Any, alike: Any) -> float:
    """Return the mean of the function `alike` over all pairs of values; 0 for fewer than two values."""
    return mean([alike(one, other) for one, other in itertools.combinations(values, 2)] or [0.0])
