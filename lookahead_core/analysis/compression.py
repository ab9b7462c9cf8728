"""Compression: shortens a text by removing its least surprising phrases, with the model as the judge."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lookahead_core.analysis.phrases import Word, phrases
from lookahead_core.analysis.text_spans import token_spans
from lookahead_core.analysis.token_surprise import surprise_steps
from lookahead_core.document.cost_meter import CostMeter
from lookahead_core.document.document import Document
from lookahead_core.document.results import Cost
from lookahead_core.errors import LookaheadError
from lookahead_core.model import Model
from lookahead_core.steps import last_step
from lookahead_core.text.kept_text import join_spans
from lookahead_core.validation import check_number


@dataclass(frozen=True, slots=True)
class CompressionSpan:
    """A part of the source that is kept or removed as a whole: words of one phrase, with their white space."""

    start: int
    """Index of its first character in the source."""
    end: int
    """Index after its last character."""
    kept: bool
    protected: bool
    """Whether its words are names or numbers, which are removed last."""
    tokens: int
    """Number of its tokens in the source."""
    surprise: float | None
    """Sum of -log p of its tokens, in nats; None if one of them is not predicted: the first of a text, if the model has
    no start token."""
    phrase_surprise: float | None
    """Mean of -log p over the predicted tokens of its phrase, in nats; None without any. Phrases are removed by it."""


@dataclass(frozen=True)
class Compression:
    """The result of `compress`: a shortened text, and the kept and removed spans of its source."""

    text: str
    """The kept spans, unchanged, in order; where spans were removed between two, with white space of the source."""
    spans: tuple[CompressionSpan, ...]
    """All spans, kept or removed, in order; they cover the source without gaps."""
    tokens_before: int
    """Number of tokens of the source, without start tokens."""
    tokens_after: int
    """Number of tokens of `text`, at most the ratio times `tokens_before`."""
    cost: Cost

    @property
    def kept(self) -> tuple[CompressionSpan, ...]:
        """The spans that `text` is made of."""
        return tuple(span for span in self.spans if span.kept)

    @property
    def removed(self) -> tuple[CompressionSpan, ...]:
        """The spans that were removed."""
        return tuple(span for span in self.spans if not span.kept)


@dataclass(frozen=True, slots=True)
class CompressionStep:
    """The progress of a compression, after a forward pass or at the end."""

    read: int
    """Number of tokens with a known surprise so far."""
    total: int
    """Number of tokens of the source."""
    result: Compression | None = None
    """The result, in the last step only."""


def compress(model: Model, text: str, ratio: float = 0.25) -> Compression:
    """Return the text without its least surprising phrases, with at most `ratio` times its tokens.

    The surprise of a token is -log p, from one pass of the model over the text. Phrases (see `phrases`) are removed by
    their mean surprise, the lowest first, but without their names and numbers; these are removed last, the lowest mean
    surprise first. The same arguments give the same result. `ratio` is above 0 and at most 1; 1 removes nothing.
    Raises ValueError for another ratio, LookaheadError for an empty text, and TextError without a tokenizer.
    """
    check_ratio(ratio)
    result = last_step(compression_steps(Document(model, text), ratio)).result
    assert result is not None
    return result


def compression_steps(document: Document, ratio: float = 0.25) -> Iterator[CompressionStep]:
    """Compress a document's text as `compress` does; yield a step after each forward pass, and the result in the last.

    There is one further step without a result after the last pass. The document and its text stay as they are. The
    generator may be abandoned: the tree keeps what was computed. The first step raises the errors of `compress`, a
    later one LookaheadError if the text has changed.
    """
    check_ratio(ratio)
    if not document.text:
        raise LookaheadError("There is no text to shorten yet: write or paste one.")
    meter = CostMeter(document.model.engine, document.tree)
    surprises: list[float | None] = []
    total = len(document.token_ids) - document.passage.start_count
    for read in surprise_steps(document, surprises):
        yield CompressionStep(read, total)
    spans = _spans(document, surprises)
    yield CompressionStep(total, total)  # a long text takes half a second here, and as long again below
    yield CompressionStep(total, total, _compressed(document, spans, ratio, meter))


def check_ratio(ratio: object) -> None:
    """Raise ValueError unless `ratio` is a number above 0 and at most 1."""
    check_number("ratio", ratio, 0, 1, above=True)


@dataclass(frozen=True, slots=True)
class _Span:
    """A `CompressionSpan` in the making: it is not decided yet whether it is kept."""

    start: int
    end: int
    protected: bool
    tokens: int
    surprises: tuple[float | None, ...]
    """The surprise of each of its tokens; None for a token that is not predicted."""
    phrase: int
    """Index of its phrase."""


def _compressed(document: Document, spans: Sequence[_Span], ratio: float, meter: CostMeter) -> Compression:
    """Return the compression of the document's text, of which `spans` are all spans."""
    source, codec = document.text, document.model.codec
    tokens_before = len(document.token_ids) - document.passage.start_count
    order, means = _order_of_removal(spans)
    limit = math.floor(ratio * tokens_before + 1e-9)

    def text_after(removals: int) -> str:
        return join_spans(source, [(span.start, span.end) for span in _without(spans, order[:removals])])

    def is_short(removals: int) -> bool:
        return len(codec.encode(text_after(removals))) <= limit

    removals = _first_within(spans, order, limit)
    if not is_short(removals):  # the tokens of the joined text are others than those of the spans
        removals += 1 + bisect.bisect_left(range(removals + 1, len(order)), True, key=is_short)
    text, removed = text_after(removals), set(order[:removals])
    shown = tuple(
        CompressionSpan(
            start=span.start,
            end=span.end,
            kept=index not in removed,
            protected=span.protected,
            tokens=span.tokens,
            surprise=_total(span.surprises),
            phrase_surprise=means[span.phrase] if means[span.phrase] < math.inf else None,
        )
        for index, span in enumerate(spans)
    )
    return Compression(text, shown, tokens_before, len(codec.encode(text)), meter.cost())


def _spans(document: Document, surprises: Sequence[float | None]) -> list[_Span]:
    """Return the spans of the text: its phrases, divided where names and numbers begin and end."""
    runs = list(token_spans(document))
    found: list[_Span] = []
    for phrase, words in enumerate(phrases([document.text[start:end] for _, _, start, end in runs])):
        group: list[Word] = []
        for word, following in zip(words, [*words[1:], None], strict=True):
            group.append(word)
            if following is not None and following.protected == word.protected:
                continue
            first, after = runs[group[0].first_piece][0], runs[group[-1].after_piece - 1][1]
            found.append(
                _Span(group[0].start, word.end, word.protected, after - first, tuple(surprises[first:after]), phrase)
            )
            group = []
    return found


def _order_of_removal(spans: Sequence[_Span]) -> tuple[list[int], list[float]]:
    """Return the indexes of all spans in the order in which they are removed, and the mean surprise of each phrase.

    Unprotected spans come first, sorted by the mean surprise of their phrase; then protected ones, by their own mean
    surprise. Equal ones are in the order of the text. The mean is infinite if no token has a surprise.
    """
    of_phrase: dict[int, list[float | None]] = {}
    for span in spans:
        of_phrase.setdefault(span.phrase, []).extend(span.surprises)
    means = [_mean(of_phrase[phrase]) for phrase in range(len(of_phrase))]

    def rank(index: int) -> tuple[bool, float, int]:
        span = spans[index]
        return span.protected, _mean(span.surprises) if span.protected else means[span.phrase], index

    return sorted(range(len(spans)), key=rank), means


def _mean(surprises: Sequence[float | None]) -> float:
    known = [surprise for surprise in surprises if surprise is not None]
    return math.fsum(known) / len(known) if known else math.inf


def _total(surprises: Sequence[float | None]) -> float | None:
    known = [surprise for surprise in surprises if surprise is not None]
    return math.fsum(known) if len(known) == len(surprises) else None


def _first_within(spans: Sequence[_Span], order: Sequence[int], limit: int) -> int:
    """Return how many spans must be removed, in this order, until the others have at most `limit` tokens together."""
    left = sum(span.tokens for span in spans)
    for removals, index in enumerate(order):
        if left <= limit:
            return removals
        left -= spans[index].tokens
    return len(order)


def _without(spans: Sequence[_Span], removed: Sequence[int]) -> list[_Span]:
    absent = set(removed)
    return [span for index, span in enumerate(spans) if index not in absent]
