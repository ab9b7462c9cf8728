"""The surprise of each token of a text, -log p in nats, from one pass over the text."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lookahead_core.analysis.text_spans import reading_windows
from lookahead_core.analysis.window_reading import WindowReader
from lookahead_core.document.document import Document

OVERLAP = 0.04
"""The share of a window that the next one evaluates again: the passes have less than 1.05 times the text's tokens."""
MAX_PRECISE = 60.0
"""Maximum surprise, in nats, for which the probability is a precise float32 number."""
SLICE = 8
"""Number of rows of logits that are normalised at once, so that they stay in the processor's cache."""


def surprise_steps(document: Document, surprises: list[float | None]) -> Iterator[int]:
    """Append the surprise of each token of `document.token_ids` to `surprises`, an empty list.

    A generator that yields, after each forward pass, the number of tokens done. The list is complete at its end, with
    None for start tokens, the opening, and a first token before which there is nothing. A text longer than the model's
    context is read in windows that overlap by `OVERLAP`. The tree keeps the results. Raises LookaheadError if the
    opening leaves no room, or if the text changes between two steps.
    """
    surprises += [None] * len(document.token_ids)
    reader = WindowReader(surprises_of, "surprise")
    yield from reader.read(document, reading_windows(document, OVERLAP))
    for token, surprise in reader.facts.items():
        surprises[token] = surprise


def surprises_of(logits: torch.Tensor, token_ids: list[int]) -> list[float]:
    """Return -log p, in nats, of each of `token_ids` under the row of `logits` with the same index."""
    ids = torch.tensor(token_ids, device=logits.device)[:, None]
    buffer = torch.empty_like(logits[:SLICE])  # shared by all slices: logsumexp allocates, and takes four times as long
    own = [
        torch.softmax(rows, -1, out=buffer[: len(rows)]).gather(1, some)[:, 0]
        for rows, some in zip(logits.split(SLICE), ids.split(SLICE), strict=True)
    ]
    surprises = -torch.cat(own).log()
    imprecise = (surprises > MAX_PRECISE).nonzero()[:, 0]
    surprises[imprecise] = logits[imprecise].logsumexp(-1) - logits[imprecise].gather(1, ids[imprecise])[:, 0]
    return surprises.clamp_min(0).tolist()
