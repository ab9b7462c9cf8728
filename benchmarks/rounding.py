"""How far odds in bfloat16 are from those in float32: of our engine, and of the model's own forward.

The weights of published models are mostly exact in bfloat16. Those of others are rounded too, which is in the result.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch

from benchmarks.environment import describe
from benchmarks.prompts import Prompts
from benchmarks.report import markdown
from lookahead_core import Model, load_model
from lookahead_core.tree import TokenTree

NAME = "rounding"
HELP = "Compare log-probabilities in bfloat16 with those of the model's own forward in float32."
LIKELIEST = 5
"""Tokens of each row whose log-probabilities are compared."""
Rows = Callable[[list[int]], torch.Tensor]
"""A function that returns the log-probabilities after each token of a prompt, of shape (tokens, vocabulary)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
    parser.add_argument("--prompts", type=int, default=10, help="prompts, new ones (10)")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of a prompt (64)")
    parser.add_argument("--model", help="what to load: a Hub id, a folder, a .gguf file; the default model if left out")


def main(arguments: argparse.Namespace) -> int:
    """Print how far each way to compute is from the reference, and return the exit status 0."""
    exact, rounded = (load_model(arguments.model, device="cpu", dtype=dtype) for dtype in ("float32", "bfloat16"))
    reference = plain_rows(exact)
    ways = {
        "ours, float32": our_rows(exact),
        "ours, bfloat16": our_rows(rounded),
        "transformers, bfloat16": plain_rows(rounded),
    }
    prompts = Prompts(exact.tokenizer)
    drawn = [prompts.draw(arguments.tokens) for _ in range(arguments.prompts)]
    expected = torch.cat([reference(token_ids) for token_ids in drawn])
    print("; ".join(f"{name} {value}" for name, value in describe({"float32": exact, "bfloat16": rounded}).items()))
    print(f"\n{len(expected)} rows of {len(drawn)} prompts, beside transformers in float32\n")
    cells = [
        [name, *differences(torch.cat([rows(token_ids) for token_ids in drawn]), expected)]
        for name, rows in ways.items()
    ]
    header = [
        "computed",
        f"log-probability of the {LIKELIEST} likeliest, mean",
        "largest",
        "largest difference of a probability in a row, percentage points, mean",
        "same likeliest token",
    ]
    print(markdown(header, cells))
    return 0


def our_rows(model: Model) -> Rows:
    """Return a function that computes rows with the model's engine, all tokens of a prompt in one call."""

    def rows(token_ids: list[int]) -> torch.Tensor:
        tree = TokenTree()
        node, nodes = tree.root, []
        for token_id in token_ids:
            node = tree.expand(node, token_id)
            nodes.append(node)
        return model.engine.evaluate(nodes).clone()  # rows are valid until the next call

    return rows


def plain_rows(model: Model) -> Rows:
    """Return a function that computes rows with the forward of transformers."""

    @torch.inference_mode()
    def rows(token_ids: list[int]) -> torch.Tensor:
        logits = model.hf_model(torch.tensor([token_ids])).logits[0]
        return logits.float().log_softmax(-1)

    return rows


def differences(found: torch.Tensor, expected: torch.Tensor) -> list[str]:
    """Return four table cells: how far log-probabilities are from the expected ones, see the header in `main`."""
    likeliest = expected.topk(LIKELIEST, -1).indices
    apart = (found.gather(1, likeliest) - expected.gather(1, likeliest)).abs()
    points = 100 * (found.exp() - expected.exp()).abs().amax(-1)
    same = 100 * (found.argmax(-1) == expected.argmax(-1)).float().mean()
    return [f"{apart.mean():.2g}", f"{apart.max():.2g}", f"{points.mean():.2g}", f"{same:.1f} %"]
