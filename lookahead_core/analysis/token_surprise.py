"""The surprise of each token of a text, -log p in nats: one read of the text, pass by pass."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lookahead_core.analysis.text_spans import reading_windows
from lookahead_core.analysis.window_reading import WindowReader
from lookahead_core.document.document import Document

OVERLAP = 0.04
"""The share of a window that the next one reads again: a text of any length takes less than 1.05 times its tokens."""
MAX_PRECISE = 60.0
"""Surprise in nats up to which the probability itself is a precise float32 number."""
SLICE = 8
"""Rows of logits that are normalised at once, so that they stay in the processor's cache."""


def surprise_steps(document: Document, surprises: list[float | None]) -> Iterator[int]:
    """Fill `surprises` with the surprise of each token of `document.token_ids`; yield how many are done.

    It yields after each forward pass. `surprises` must be empty. It is complete when the generator ends: None for start
    tokens, the opening, and a first token that nothing precedes. A text longer than the model's context is read in
    windows that overlap by `OVERLAP`. The tree keeps what was computed. Raises LookaheadError if the opening leaves no
    room, or if the text has changed between two steps.
    """
    surprises += [None] * len(document.token_ids)
    reader = WindowReader(surprises_of, "surprise")
    yield from reader.read(document, reading_windows(document, OVERLAP))
    for token, surprise in reader.facts.items():
        surprises[token] = surprise


def surprises_of(logits: torch.Tensor, token_ids: list[int]) -> list[float]:
    """Return -log p, in nats, of each of `token_ids`, which the row of `logits` with the same index predicts."""
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
