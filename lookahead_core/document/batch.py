"""Several documents at once: one pass for all of them, each over its own cache. Results equal the single runs."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lookahead_core.document.document import Document
from lookahead_core.document.generation_start import GenerationStart, guarded
from lookahead_core.document.results import Beams, Cost, Lookahead
from lookahead_core.document.stream import StreamReader, Streams, read_lines
from lookahead_core.strategies.beam import BeamOptions, beam_search
from lookahead_core.strategies.decode import StreamOptions
from lookahead_core.strategies.grow_many import grow_together
from lookahead_core.strategies.keywords import takes_options
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.rules import LogitRules
from lookahead_core.validation import parse_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lookahead_core.strategies.keywords import BeamKeywords, LookaheadKeywords, StreamKeywords


@takes_options(StreamOptions)
def stream_batch(documents: Iterable[Document], **options: Unpack[StreamKeywords]) -> Streams:
    """Return an iterator over one continuation of each document, side by side: pairs of a document's index and a step.

    A document may be listed several times: `stream_batch([document] * 5, temperature=0.8)` draws the streams 0 to 4 of
    the seed. If the options rule out every token for one document, the others go on; its error is raised at the end.
    The options are those of `Document.stream`.
    """
    asked = parse_options(StreamOptions, options, "stream_batch")
    documents = _listed(documents)
    grounds = _grounds(documents, asked)
    readers: list[StreamReader] = []
    times: collections.Counter[int] = collections.Counter()
    for document, ground in zip(documents, grounds, strict=True):
        readers.append(ground.line(replace(asked, stream=asked.stream + times[id(document)])))
        times[id(document)] += 1
    steps = read_lines(documents[0].model.engine, readers) if documents else iter(())
    steps = guarded(_once(grounds), steps, lambda: all(reader.line.over for reader in readers))
    return Streams(steps, _cost_of(documents, grounds), [reader.line.passes for reader in readers])


@takes_options(BeamOptions)
def beam_search_batch(documents: Iterable[Document], **options: Unpack[BeamKeywords]) -> list[Beams]:
    """Return one beam search result per document; each level of all searches is one forward pass.

    The options are those of `Document.beam_search`.
    """
    asked = parse_options(BeamOptions, options, "beam_search_batch")
    documents = _listed(documents)
    grounds = _grounds(documents, asked)
    searches = [ground.search(asked) for ground in grounds]
    if documents:
        collections.deque(beam_search(documents[0].model.engine, searches), maxlen=0)
    return [ground.found(search).result for ground, search in zip(grounds, searches, strict=True)]


@takes_options(LookaheadOptions)
def lookahead_batch(documents: Iterable[Document], **options: Unpack[LookaheadKeywords]) -> list[Lookahead]:
    """Return one lookahead result per document; with the mode `likely`, all branches grow in the same forward passes.

    The options are those of `Document.lookahead`.
    """
    asked = parse_options(LookaheadOptions, options, "lookahead_batch")
    documents = _listed(documents)
    grounds = _grounds(documents, LogitRules(max_new_tokens=asked.depth))
    if documents and asked.is_plain and not asked.heal:
        model, heads = documents[0].model, [ground.head for ground in grounds]
        collections.deque(grow_together(model.engine, heads, asked.k, asked.depth, model.end_token_ids), maxlen=0)
    pairs = zip(documents, grounds, strict=True)
    return [replace(document.lookahead(**options), cost=ground.cost()) for document, ground in pairs]


def _listed(documents: Iterable[Document]) -> list[Document]:
    """The documents, which must have one model."""
    listed: list[Document] = [documents] if isinstance(documents, Document) else list(documents)
    for document in listed:
        if not isinstance(document, Document):
            raise ValueError(f"documents holds {type(document).__name__}, and must hold documents.")
    if len({id(document.model) for document in listed}) > 1:
        raise ValueError("The documents have several models; run each model's documents in a batch of their own.")
    return listed


def _grounds(documents: Sequence[Document], rules: LogitRules) -> list[GenerationStart]:
    """Where each document grows from; one that is given several times has one view."""
    made: dict[int, GenerationStart] = {}
    return [made.get(id(document)) or made.setdefault(id(document), document.ground(rules)) for document in documents]


def _once(grounds: Sequence[GenerationStart]) -> list[GenerationStart]:
    """Each ground once, also where a document was given several times."""
    return list({id(ground): ground for ground in grounds}.values())


def _cost_of(documents: Sequence[Document], grounds: Sequence[GenerationStart]) -> Callable[[], Cost]:
    """What a batch costs: its passes, and what all documents need together."""
    engine = documents[0].model.engine if documents else None
    before = engine.passes if engine else 0

    def cost() -> Cost:
        found = [ground.cost() for ground in _once(grounds)]
        return Cost(
            engine.passes - before if engine else 0,
            sum(one.tokens for one in found),
            max((one.seconds for one in found), default=0.0),
            sum(one.live_slots for one in found),
            sum(one.cache_bytes for one in found),
        )

    return cost
