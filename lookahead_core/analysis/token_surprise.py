"""The surprise of each token of a text, -log p in nats, from one pass over the text."""

from __future__ import annotations

from collections.abc import Iterator

from lookahead_core.analysis.text_spans import reading_windows
from lookahead_core.analysis.window_reading import WindowReader
from lookahead_core.document.document import Document
from lookahead_core.engines.engine import Engine, next_logprobs
from lookahead_core.tree import Node

OVERLAP = 0.04
"""The share of a window that the next one evaluates again: the passes have less than 1.05 times the text's tokens."""


def surprise_steps(document: Document, surprises: list[float | None]) -> Iterator[int]:
    """Append the surprise of each token of `document.token_ids` to `surprises`, an empty list.

    A generator that yields, after each forward pass, the number of tokens done. The list is complete at its end, with
    None for start tokens, the opening, and a first token before which there is nothing. A text longer than the model's
    context is read in windows that overlap by `OVERLAP`. The tree keeps the results. Raises LookaheadError if the
    opening leaves no room, or if the text changes between two steps.
    """
    surprises += [None] * len(document.token_ids)
    reader = WindowReader(_surprises, "surprise")
    yield from reader.read(document, reading_windows(document, OVERLAP))
    for token, surprise in reader.facts.items():
        surprises[token] = surprise


def _surprises(engine: Engine, nodes: list[Node], token_ids: list[int]) -> list[float]:
    """Return -log p, in nats, of the token `token_ids[i]` after `nodes[i]`."""
    return [0.0 if logprob >= 0 else -logprob for logprob in next_logprobs(engine, nodes, token_ids)]
