"""Streams, beam searches and lookaheads in several documents at once, with shared forward passes.

Each document has its own cache, and its result is the one that it gets alone.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lookahead_core.document.document import Document
from lookahead_core.document.generation_start import GenerationStart, while_text_stays
from lookahead_core.document.joint_lookahead import LookaheadBatchStep, joint_lookahead_steps
from lookahead_core.document.results import Beams, Cost, Lookahead
from lookahead_core.document.stream import StreamReader, Streams, stream_steps
from lookahead_core.steps import last_step
from lookahead_core.strategies.beam import beam_search
from lookahead_core.strategies.beam_options import BeamOptions
from lookahead_core.strategies.keywords import takes_options
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.rules import LogitRules
from lookahead_core.strategies.stream_options import StreamOptions
from lookahead_core.validation import parse_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lookahead_core.strategies.keywords import BeamKeywords, LookaheadKeywords, StreamKeywords


@takes_options(StreamOptions)
def stream_batch(documents: Iterable[Document], **options: Unpack[StreamKeywords]) -> Streams:
    """Return an iterator over one continuation of each document: pairs of an index in the list and a step.

    The continuations grow side by side and share forward passes. A document may be listed several times:
    `stream_batch([document] * 5, temperature=0.8)` draws the streams 0 to 4 of the seed. If the options exclude every
    token for one document, the others go on, and a ValueError is raised at the end. Raises ValueError if the documents
    are of several models; the options and all other errors are those of `Document.stream`.
    """
    checked_options = parse_options(StreamOptions, options, "stream_batch")
    documents = _listed(documents)
    starts = _starts(documents, checked_options)
    readers: list[StreamReader] = []
    times_listed: collections.Counter[int] = collections.Counter()
    for document, start in zip(documents, starts, strict=True):
        stream = checked_options.stream + times_listed[id(document)]
        readers.append(start.stream_reader(replace(checked_options, stream=stream)))
        times_listed[id(document)] += 1
    steps = stream_steps(documents[0].model.engine, readers) if documents else iter(())
    guarded = while_text_stays(_distinct(starts), steps, lambda: all(reader.continuation.over for reader in readers))
    return Streams(guarded, _cost_of(documents, starts), [reader.continuation.passes for reader in readers])


@takes_options(BeamOptions)
def beam_search_batch(documents: Iterable[Document], **options: Unpack[BeamKeywords]) -> list[Beams]:
    """Return one beam search result per document, in order; at each level the searches share forward passes.

    Raises ValueError if the documents are of several models, or if the options exclude every token for one of them. The
    options and all other errors are those of `Document.beam_search`.
    """
    checked_options = parse_options(BeamOptions, options, "beam_search_batch")
    documents = _listed(documents)
    starts = _starts(documents, checked_options)
    searches = [start.beam_search(checked_options) for start in starts]
    if documents:
        collections.deque(beam_search(documents[0].model.engine, searches), maxlen=0)
    return [start.beam_step(search).result for start, search in zip(starts, searches, strict=True)]


@takes_options(LookaheadOptions)
def lookahead_batch(
    documents: Iterable[Document],
    *,
    each: Sequence[Mapping[str, Any]] | None = None,
    **options: Unpack[LookaheadKeywords],
) -> list[Lookahead]:
    """Return one lookahead result per document, in order; the lookaheads share forward passes.

    They take as many passes as the longest of them alone, but texts with more than 768 new tokens are prefilled one
    after the other. `each` has a dictionary of further options for each document, which override the common ones. A
    document may be listed several times, for example with several temperatures. A `cost` has the passes and tokens of
    its own document: a shared pass counts for each document in it, and seconds count from the beginning. `speculate`
    has no effect. Raises ValueError if the documents are of several models, or if `each` has a different length; the
    options and all other errors are those of `Document.lookahead`.
    """
    listed = _listed(documents)
    steps = lookahead_batch_steps(listed, each=each, **options)
    return [result for result in last_step(steps).results if result is not None] if listed else []


@takes_options(LookaheadOptions)
def lookahead_batch_steps(
    documents: Iterable[Document],
    *,
    each: Sequence[Mapping[str, Any]] | None = None,
    **options: Unpack[LookaheadKeywords],
) -> Iterator[LookaheadBatchStep]:
    """Yield a step before the first pass of `lookahead_batch`, and after each pass; the last has the final results.

    Arguments and errors are the same; wrong options raise at the call. The generator may be abandoned at any step. It
    raises LookaheadError if, between two steps, a document's text is set or another lookahead, stream or beam search of
    it begins. Without documents there is no step.
    """
    listed = _listed(documents)
    if each is not None and not (isinstance(each, Sequence) and all(isinstance(own, Mapping) for own in each)):
        raise ValueError("each must be a list of dictionaries of options, one for each document.")
    if each is not None and len(each) != len(listed):
        raise ValueError(f"each has {len(each)} entries for {len(listed)} documents, and must have one for each.")
    common: dict[str, Any] = {**options}
    LookaheadOptions.of(common)
    return joint_lookahead_steps(
        [
            (document, LookaheadOptions.of({**common, **own}))
            for document, own in zip(listed, each if each is not None else [{}] * len(listed), strict=True)
        ]
    )


def _listed(documents: Iterable[Document]) -> list[Document]:
    """Return the documents as a list; a single document counts as a list of one.

    Raises ValueError for no list, for an entry that is no `Document`, and if the documents are of several models.
    """
    if not isinstance(documents, Document | Iterable):
        raise ValueError(f"documents is {type(documents).__name__}, and must be a list of documents.")
    listed: list[Document] = [documents] if isinstance(documents, Document) else list(documents)
    for document in listed:
        if not isinstance(document, Document):
            raise ValueError(f"documents holds {type(document).__name__}, and must hold documents.")
    if len({id(document.model.engine) for document in listed}) > 1:
        raise ValueError("The documents have several models; run each model's documents in a batch of their own.")
    return listed


def _starts(documents: Sequence[Document], rules: LogitRules) -> list[GenerationStart]:
    """Return each document's generation start, in order; a document that is listed several times has one, shared.

    `Document.generation_start` makes each one. It begins a new view of the document's tree, and moves the context
    window if `rules.max_new_tokens` more tokens, or a quarter of the context if that is less, would not fit. It raises
    LookaheadError if there is no token to start from.
    """
    starts: dict[int, GenerationStart] = {}
    for document in documents:
        if id(document) not in starts:
            starts[id(document)] = document.generation_start(rules)
    return [starts[id(document)] for document in documents]


def _distinct(starts: Sequence[GenerationStart]) -> list[GenerationStart]:
    """Return each start object once, in the order in which they first occur."""
    return list({id(start): start for start in starts}.values())


def _cost_of(documents: Sequence[Document], starts: Sequence[GenerationStart]) -> Callable[[], Cost]:
    """Return a function without arguments that returns the cost of the batch so far; all zeros without documents.

    Passes are all passes of the engine since this call, also those for other callers. Tokens are those computed since
    `starts` were made, slots and bytes those held now: sums over the documents, each counted once. Seconds are
    wall-clock time since the first of the starts was made.
    """
    engine = documents[0].model.engine if documents else None
    before = engine.passes if engine else 0

    def cost() -> Cost:
        costs = [start.cost() for start in _distinct(starts)]
        return Cost(
            engine.passes - before if engine else 0,
            sum(each.tokens for each in costs),
            max((each.seconds for each in costs), default=0.0),
            sum(each.live_slots for each in costs),
            sum(each.cache_bytes for each in costs),
        )

    return cost
