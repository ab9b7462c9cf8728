"""Several documents at once: one pass for all of them, each over its own cache. Results equal the single runs."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lookahead_core.branches import Beams, Cost, Lookahead
from lookahead_core.document import Document
from lookahead_core.strategies.beam import BeamOptions, beam_search
from lookahead_core.strategies.checks import checked
from lookahead_core.strategies.decode import StreamOptions
from lookahead_core.strategies.options import Options
from lookahead_core.strategies.together import grow_together
from lookahead_core.stream import Streams, read_lines


def stream_batch(documents: Sequence[Document], **options: Any) -> Streams:
    """One continuation of each document, side by side: which one has gone on, and its step.

    A document given several times has several texts drawn: `stream_batch([document] * 5, temperature=0.8)` gives the
    streams 0 to 4 of the seed.
    """
    asked = checked(StreamOptions, options, "stream_batch")
    costs = _begin(documents, asked.max_new_tokens)
    readers = []
    seen: collections.Counter[int] = collections.Counter()
    for document in documents:
        readers.append(document.line(replace(asked, stream=asked.stream + seen[id(document)])))
        seen[id(document)] += 1
    steps = read_lines(documents[0].model.engine, readers) if documents else iter(())
    return Streams(steps, len(readers), lambda: _sum(list({id(cost): cost for cost in costs}.values())))


def beam_search_batch(documents: Sequence[Document], **options: Any) -> list[Beams]:
    """A beam search in each document, all of them in one pass a level."""
    asked = checked(BeamOptions, options, "beam_search_batch")
    costs = _begin(documents, asked.max_new_tokens)
    searches = [document.search(asked) for document in documents]
    if documents:
        collections.deque(beam_search(documents[0].model.engine, searches), maxlen=0)
    triples = zip(documents, searches, costs, strict=True)
    return [document.found(search, cost).result for document, search, cost in triples]


def lookahead_batch(documents: Sequence[Document], **options: Any) -> list[Lookahead]:
    """A lookahead in each document; likely branches of all of them grow in the same passes."""
    asked = checked(Options, options, "lookahead_batch")
    _begin(documents, asked.depth)
    if documents and asked.mode == "likely" and asked.until == "tokens" and not (asked.banned or asked.heal):
        model, heads = documents[0].model, [document.head for document in documents]
        collections.deque(grow_together(model.engine, heads, asked.k, asked.depth, model.end_token_ids), maxlen=0)
    return [document.lookahead(**options) for document in documents]


def _sum(costs: Sequence[Callable[[], Cost]]) -> Cost:
    """Several documents' costs; they were spent in the same time."""
    found = [cost() for cost in costs]
    return Cost(
        sum(cost.passes for cost in found),
        sum(cost.tokens for cost in found),
        max((cost.seconds for cost in found), default=0.0),
        sum(cost.live_slots for cost in found),
        sum(cost.cache_bytes for cost in found),
    )


def _begin(documents: Sequence[Document], room: int) -> list[Callable[[], Cost]]:
    """A new view in each document, once; what tells the cost of each."""
    if len({id(document.model) for document in documents}) > 1:
        raise ValueError("The documents have several models; run each model's documents in a batch of their own.")
    costs = {id(document): document.begin(room)[0] for document in {id(one): one for one in documents}.values()}
    return [costs[id(document)] for document in documents]
