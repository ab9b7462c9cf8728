"""How long a forward pass takes by its number of nodes: for scores of branches, and to prefill tokens of a text."""

from __future__ import annotations

import argparse
from statistics import median

from benchmarks.environment import describe
from benchmarks.report import markdown
from benchmarks.timing import rotated, timed
from lookahead_core import Document, Model, load_model

NAME = "passes"
HELP = "Measure forward passes by their number of nodes: what one more node costs."
SIZES = (1, 2, 5, 10, 14, 20, 28, 64, 128, 256)
CONTEXT = 256
"""About how many tokens the text has before the nodes of a pass; its exact number depends on the tokenizer."""
WORD = " sea"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
    parser.add_argument("--repeats", type=int, default=11, help="passes of each size, in turns (11)")
    parser.add_argument("--model", help="what to load: a Hub id, a folder, a .gguf file; the default model if left out")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")


def main(arguments: argparse.Namespace) -> int:
    """Measure passes of each size, in turns, print the median time of each size, and return the exit status 0."""
    model = load_model(arguments.model, device=arguments.device)
    scored: dict[int, list[float]] = {size: [] for size in SIZES}
    prefilled: dict[int, list[float]] = {size: [] for size in SIZES}
    for repeat in range(arguments.repeats + 1):
        for size in rotated(SIZES, repeat):
            seconds = (score(model, size), prefill(model, size))
            if repeat:  # the first pass of each size prepares what later ones use
                scored[size].append(seconds[0])
                prefilled[size].append(seconds[1])
    print("; ".join(f"{name} {value}" for name, value in describe({str(model.dtype): model}).items()))
    print(f"\nMedian of {arguments.repeats} passes of each size, in milliseconds, after {CONTEXT} tokens\n")
    cells = [[str(size), *_cells(scored[size], size), *_cells(prefilled[size], size)] for size in SIZES]
    print(markdown(["nodes", "scores", "for each", "prefill", "for each"], cells))
    return 0


def score(model: Model, size: int) -> float:
    """Return the seconds of one pass for the scores of `size` nodes below the end of a new text."""
    document = Document(model, WORD * CONTEXT)
    engine, head = model.engine, document.head
    engine.evaluate([head])
    nodes = [document.tree.expand(head, token_id) for token_id in range(size)]
    return timed(lambda: engine.score(nodes), model.hf_model.device)[0]


def prefill(model: Model, size: int) -> float:
    """Return the seconds of one pass for the keys and values of `size` tokens of a new text."""
    document = Document(model, WORD * (CONTEXT + size))
    engine = model.engine
    nodes = engine.nodes_to_prefill(document.head)
    engine.prefill(nodes[:-size])
    return timed(lambda: engine.prefill(nodes[-size:]), model.hf_model.device)[0]


def _cells(seconds: list[float], size: int) -> list[str]:
    """Return two table cells in milliseconds: the median of these times, and the median divided by the nodes."""
    milliseconds = median(seconds) * 1000
    return [f"{milliseconds:.1f}", f"{milliseconds / size:.2f}"]
