"""Highlights: marks the words of a given text where the model predicted another token."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lookahead_core.analysis.highlight_results import (
    HighlightAlternative,
    HighlightEntry,
    Highlights,
    HighlightsStep,
)  # fmt: skip
from lookahead_core.analysis.text_spans import (
    first_character,
    reading_windows,
    text_end_before,
    token_spans,
    word_spans,
)
from lookahead_core.analysis.token_facts import TokenFacts, observe
from lookahead_core.analysis.window_reading import WindowReader
from lookahead_core.document.cost_meter import CostMeter
from lookahead_core.document.document import Document
from lookahead_core.engines.engine import Engine
from lookahead_core.errors import LookaheadError
from lookahead_core.steps import last_step
from lookahead_core.tree import Node
from lookahead_core.validation import check_integer

MAX_ALTERNATIVES = 20


def highlights(document: Document, k: int = 5) -> Highlights:
    """Return the model's prediction at every token of the text, each with its `k` likeliest tokens, 1 to 20.

    The text stays as it is. A new view of the tree begins: a lookahead of this document that is not finished raises an
    error at its next step. Raises LookaheadError if the text is empty or the opening leaves no room for it, and
    ValueError for a wrong `k`.
    """
    result = last_step(highlights_steps(document, k)).result
    assert result is not None
    return result


def highlights_steps(document: Document, k: int = 5) -> Iterator[HighlightsStep]:
    """Yield a step without a result after each forward pass of `highlights`, and a last one with the result.

    The generator may be abandoned at any step: the tree keeps what was computed. Its first step raises the errors of
    `highlights`, a later one LookaheadError if the text has changed meanwhile. A text longer than the model's context
    is read in windows, see `reading_windows`.
    """
    check_integer("k", k, 1, MAX_ALTERNATIVES)
    if not document.text:
        raise LookaheadError("There is no text to read yet: write or paste one.")
    meter = CostMeter(document.model.engine, document.tree)
    windows = reading_windows(document)
    total = sum(window.end - window.begin for window in windows)

    def facts_of(engine: Engine, nodes: list[Node], token_ids: list[int]) -> Iterator[TokenFacts]:
        return observe(engine.score(nodes).logits_of(nodes), token_ids, k)

    reader = WindowReader(facts_of, ("highlight", k))
    for read in reader.read(document, windows):
        yield HighlightsStep(read, total)
    read_from = {token: window.start for window in windows for token in range(window.begin, window.end)}
    yield HighlightsStep(total, total, Highlights(tuple(_entries(document, reader.facts, read_from)), meter.cost()))


def _entries(document: Document, facts: dict[int, TokenFacts], read_from: dict[int, int]) -> Iterator[HighlightEntry]:
    """Yield the entries of the text, in order.

    `facts` has the facts of each predicted token. `read_from` has, for every text token, the index of the first text
    token that the model read for its prediction. Both are by index in `document.token_ids`.
    """
    spans = list(token_spans(document))
    words = word_spans([document.text[start:end] for _, _, start, end in spans])
    for (first, after, start, end), word in zip(spans, words, strict=True):
        yield _entry(document, (first, after), (start, end), word, facts, read_from)


def _entry(
    document: Document,
    tokens: tuple[int, int],
    characters: tuple[int, int],
    word: tuple[int, int],
    facts: dict[int, TokenFacts],
    read_from: dict[int, int],
) -> HighlightEntry:
    (first, after), (start, end) = tokens, characters
    own_facts = [facts.get(token) for token in range(first, after)]
    known = [fact for fact in own_facts if fact is not None]
    offset = next((offset for offset, fact in enumerate(own_facts) if fact is not None and fact.rank > 1), 0)
    fact = own_facts[offset] if len(known) == len(own_facts) else None
    return HighlightEntry(
        start=start,
        end=end,
        token=document.text[start:end],
        token_ids=tuple(token.token_id for token in document.passage.tokens[first:after]),
        word=word,
        loss=max(0.0, -math.fsum(each.logprob for each in known)) if fact else None,
        excess_loss=max(0.0, math.fsum(each.likeliest[0][1] - each.logprob for each in known)) if fact else None,
        rank=fact.rank if fact else None,
        entropy=fact.entropy if fact else None,
        alternatives=tuple(_alternatives(document, first + offset, fact)) if fact else (),
        first_token=first,
        offset=offset,
        read_from=read_from[first + offset],
        seen_from=first_character(document, read_from[first + offset]),
    )


def _alternatives(document: Document, token: int, fact: TokenFacts) -> Iterator[HighlightAlternative]:
    text_end = text_end_before(document, token)
    for token_id, logprob in fact.likeliest:
        ended = token_id in document.model.end_token_ids
        text = "" if ended else text_end.decode(token_id)[0]
        whole = text if ended or (text and "\ufffd" not in text) else None
        yield HighlightAlternative(token_id, whole, math.exp(logprob), ended)
