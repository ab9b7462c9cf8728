"""Highlights: marks the words of a given text where the model predicted another token."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

from lookahead_core.analysis.highlight_results import (
    HighlightAlternative,
    HighlightEntry,
    Highlights,
    HighlightsStep,
)  # fmt: skip
from lookahead_core.analysis.text_spans import (
    ReadingWindow,
    first_character,
    node_before,
    reading_windows,
    text_end_before,
    token_spans,
    word_spans,
)
from lookahead_core.analysis.token_facts import TokenFacts, observe
from lookahead_core.document.cost_meter import CostMeter
from lookahead_core.document.document import Document
from lookahead_core.engines.engine import MAX_LAST_CHUNK, PREFILL_CHUNK
from lookahead_core.errors import LookaheadError
from lookahead_core.tree import Node
from lookahead_core.validation import check_integer

MAX_ALTERNATIVES = 20
MAX_LOGITS = 40_000_000
"""Maximum number of logits held at once: a row has one for each token of the vocabulary."""


def highlights(document: Document, k: int = 5) -> Highlights:
    """Return the model's prediction at every token of the text, each with its `k` likeliest tokens, 1 to 20.

    The text stays as it is. A new view of the tree begins: a lookahead of this document that is not finished raises an
    error at its next step. Raises LookaheadError if the text is empty or the opening leaves no room for it, and
    ValueError for a wrong `k`.
    """
    result = None
    for step in highlights_steps(document, k):
        result = step.result
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
    token_ids = document.token_ids
    facts: dict[int, TokenFacts] = {}
    read_from: dict[int, int] = {}
    windows = reading_windows(document)
    total, before = sum(window.end - window.begin for window in windows), 0
    for window in windows:
        document.new_view()
        for read in _evaluate(document, window, k, facts):
            yield HighlightsStep(before + read, total)
            if document.token_ids != token_ids:
                raise LookaheadError("The text has changed while it was read; read it again.")
        read_from |= dict.fromkeys(range(window.begin, window.end), window.start)
        before += window.end - window.begin
    yield HighlightsStep(total, total, Highlights(tuple(_entries(document, facts, read_from)), meter.cost()))


def _evaluate(document: Document, window: ReadingWindow, k: int, facts: dict[int, TokenFacts]) -> Iterator[int]:
    """Evaluate a window; yield after each forward pass how many of its tokens have been predicted so far.

    When the generator ends, the facts of its tokens, with the `k` likeliest tokens each, are added to `facts`, by index
    in `document.token_ids`. A token that nothing precedes has none.
    """
    engine, tree, token_ids = document.model.engine, document.tree, document.token_ids
    path = tree.path(node_before(document, window.end - 1, window.start))
    # The facts of a token come from the logits of the node before it.
    token_after = {node: token for token, node in enumerate(path, window.end - len(path)) if token >= window.begin}
    pending = [node for node, token in token_after.items() if _known_facts(node, token_ids[token], k) is None]
    due = dict.fromkeys([*engine.nodes_to_prefill(pending[0]), *pending]) if pending else {}
    for chunk in scoring_chunks(list(due), document.model.vocabulary):
        nodes = [node for node in chunk if node in token_after]
        if nodes:
            logits, next_ids = engine.score(nodes).logits_of(nodes), [token_ids[token_after[node]] for node in nodes]
            for node, token_id, fact in zip(nodes, next_ids, observe(logits, next_ids, k), strict=True):
                tree.memoize(node, ("highlight", token_id, k), fact)
            yield token_after[nodes[-1]] + 1 - window.begin
        else:
            engine.prefill(chunk)
            yield 0
    for node, token in token_after.items():
        facts[token] = cast(TokenFacts, _known_facts(node, token_ids[token], k))


def _known_facts(node: Node, token_id: int, k: int) -> TokenFacts | None:
    return (node.memo or {}).get(("highlight", token_id, k))


def scoring_chunks(nodes: list[Node], vocabulary: int) -> Iterator[list[Node]]:
    """Yield the nodes, in order, in chunks for one forward pass each: at most `MAX_LAST_CHUNK` nodes.

    A chunk of several nodes has at most `MAX_LOGITS` logits, with one row of `vocabulary` logits per node.
    """
    most = max(1, MAX_LOGITS // vocabulary)
    while nodes:
        size = min(most, len(nodes) if len(nodes) <= MAX_LAST_CHUNK else PREFILL_CHUNK)
        yield nodes[:size]
        nodes = nodes[size:]


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
