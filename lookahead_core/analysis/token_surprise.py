"""The surprise of each token of a text, -log p in nats: one read of the text, pass by pass."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lookahead_core.analysis.highlights import scoring_chunks
from lookahead_core.analysis.text_spans import ReadingWindow, node_before, reading_windows
from lookahead_core.document.document import Document
from lookahead_core.errors import LookaheadError
from lookahead_core.tree import Node

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
    token_ids = document.token_ids
    surprises += [None] * len(token_ids)
    done = 0
    for window in reading_windows(document, OVERLAP):
        document.new_view()
        for read in _read(document, window, surprises):
            yield done + read
            if document.token_ids != token_ids:
                raise LookaheadError("The text has changed while it was read; read it again.")
        done += window.end - window.begin


def _read(document: Document, window: ReadingWindow, surprises: list[float | None]) -> Iterator[int]:
    """Evaluate a window; yield after each forward pass how many of its tokens are done, and fill `surprises` with them.

    A token that nothing precedes stays None.
    """
    engine, tree, token_ids = document.model.engine, document.tree, document.token_ids
    path = tree.path(node_before(document, window.end - 1, window.start))
    # The surprise of a token comes from the logits of the node before it.
    token_after = {node: token for token, node in enumerate(path, window.end - len(path)) if token >= window.begin}
    pending = [node for node, token in token_after.items() if _known(node, token_ids[token]) is None]
    due = dict.fromkeys([*engine.nodes_to_prefill(pending[0]), *pending]) if pending else {}
    for chunk in scoring_chunks(list(due), document.model.vocabulary):
        nodes = [node for node in chunk if node in token_after]
        if nodes:
            next_ids = [token_ids[token_after[node]] for node in nodes]
            found = surprises_of(engine.score(nodes).logits_of(nodes), next_ids)
            for node, token_id, surprise in zip(nodes, next_ids, found, strict=True):
                tree.memoize(node, ("surprise", token_id), surprise)
            yield token_after[nodes[-1]] + 1 - window.begin
        else:
            engine.prefill(chunk)
            yield 0
    for node, token in token_after.items():
        surprises[token] = _known(node, token_ids[token])


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


def _known(node: Node, token_id: int) -> float | None:
    return (node.memo or {}).get(("surprise", token_id))
