"""Whether the model's word would fit in place of the person's, with what follows left as it is."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lookahead_core.analysis.highlights import HighlightAlternative, HighlightEntry, node_at, spans
from lookahead_core.document.document import Document
from lookahead_core.engines.engine import prefill_in_chunks
from lookahead_core.errors import LookaheadError
from lookahead_core.tree import Node
from lookahead_core.validation import check_integer

DROPS = 4.0
"""An alternative drops in where the person's next words are at most so many times less likely after it."""
MOST_FOLLOWING = 8
"""How many tokens of those next words are looked at."""
_RUN = re.compile(r"\s*\S+")


@dataclass(frozen=True, slots=True)
class ReplacementFit:
    """Whether an alternative could stand in place of the person's word with what follows left as it is."""

    alternative: HighlightAlternative
    following: str
    """The person's next words, which were asked about."""
    logprob: float | None
    """Theirs after the alternative; None where that cannot be asked."""
    own: float | None
    """Theirs after the person's own word."""

    @property
    def drops_in(self) -> bool | None:
        """Whether they are about as likely after it as after the person's own word."""
        if self.logprob is None or self.own is None:
            return None
        return self.logprob >= self.own - math.log(DROPS)

    @property
    def sentence(self) -> str:
        """The verdict for people."""
        if self.alternative.ended:
            return "the text would end here"
        if not self.following:
            return "nothing follows it"
        return {True: "drops in", False: "would need the rest rewritten", None: "cannot be told"}[self.drops_in]


def drop_in(
    document: Document, entry: HighlightEntry, alternatives: Sequence[HighlightAlternative], words: int = 3
) -> list[ReplacementFit]:
    """For each alternative how likely the person's next words are after it, in one pass for all of them.

    It takes the place of the rest of the person's word; what follows is cut into tokens as it is written after it. It
    drops in where those words are at most `DROPS` times less likely than after the person's own.
    """
    return next(fits for fits in drop_in_steps(document, entry, alternatives, words) if fits is not None)


def drop_in_steps(
    document: Document, entry: HighlightEntry, alternatives: Sequence[HighlightAlternative], words: int = 3
) -> Iterator[list[ReplacementFit] | None]:
    """The same, a step for each chunk of what stands before and has to be read again; the last one has the result."""
    check_integer("words", words, 1, MOST_FOLLOWING)
    for _ in prefill_in_chunks(document.model.engine, _origin(document, entry)):
        yield None
    yield _fits(document, entry, alternatives, words)


def _fits(
    document: Document, entry: HighlightEntry, alternatives: Sequence[HighlightAlternative], words: int
) -> list[ReplacementFit]:
    origin, own_ids = _origin(document, entry), _rest_of_word(document, entry)
    following, next_ids = _following(document, entry, words)
    context, tree = document.model.context_length, document.tree
    if context is not None:
        next_ids = next_ids[: max(0, context - origin.depth - len(own_ids) + 1)]
    ends_of = {
        alternative.token_id: tree.descend(
            origin, own_ids if alternative.token_id == own_ids[0] else [alternative.token_id]
        )
        for alternative in alternatives
        if alternative.text is not None and not alternative.ended
    }
    odds = _odds_of(document, [tree.descend(origin, own_ids), *ends_of.values()], next_ids) if ends_of else {}
    own = odds.get(tree.descend(origin, own_ids))
    return [
        ReplacementFit(alternative, following, odds.get(ends_of[alternative.token_id]), own)
        if alternative.token_id in ends_of
        else ReplacementFit(alternative, following, None, own)
        for alternative in alternatives
    ]


def _origin(document: Document, entry: HighlightEntry) -> Node:
    """The node before the token that an entry's alternatives stand in place of."""
    stands = tuple(document.token_ids[entry.at : entry.at + len(entry.token_ids)]) == entry.token_ids
    if not stands or document.text[entry.start : entry.end] != entry.token:
        raise LookaheadError("The text has changed since it was read; read it again.")
    return node_at(document, entry.read_from, entry.at + entry.place)


def _rest_of_word(document: Document, entry: HighlightEntry) -> list[int]:
    """The person's tokens from the one that an alternative stands for to the end of the word."""
    last = next(after for _, after, _, end in spans(document) if end >= entry.word[1])
    return document.token_ids[entry.at + entry.place : last]


def _following(document: Document, entry: HighlightEntry, words: int) -> tuple[str, list[int]]:
    """The person's next words after the one that an entry is part of, and their first tokens."""
    runs = itertools.islice(_RUN.finditer(document.text, entry.word[1]), words)
    following = "".join(run[0] for run in runs)
    tokens = document.model.codec.encode(following, continuing=True)
    return following, [token.token_id for token in tokens][:MOST_FOLLOWING]


def _odds_of(document: Document, ends: Sequence[Node], token_ids: Sequence[int]) -> dict[Node, float]:
    """How likely these tokens are after each of the nodes, in one pass."""
    if not token_ids:
        return {}
    tree = document.tree
    paths = {end: [end, *tree.path(tree.descend(end, token_ids[:-1]), end)] for end in ends}
    nodes = list(dict.fromkeys(node for path in paths.values() for node in path))
    rows = document.model.engine.score(nodes).logits_of(nodes).log_softmax(-1)
    places = {node: place for place, node in enumerate(nodes)}
    return {
        end: math.fsum(float(rows[places[node], token_id]) for node, token_id in zip(path, token_ids, strict=True))
        for end, path in paths.items()
    }
