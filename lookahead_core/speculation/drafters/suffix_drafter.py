"""The drafter "suffix": copies what followed earlier occurrences of the text's ending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lookahead_core.engines.engine import NodeScores
from lookahead_core.speculation.drafters.protocol import Guess
from lookahead_core.speculation.ngram_index import NgramIndex
from lookahead_core.text.passage import common_prefix_length
from lookahead_core.tree import Node

COMPARED_TOKENS = 16
"""Number of tokens that are compared to decide whether a path continues the indexed text."""
RUN, NEAR, ASTRAY = "run", "near", "astray"
"""Kinds of matches. RUN: the text's last tokens occur before the position. NEAR: the text has left a passage that it
copied, and its last token occurs before the position, further on in that passage. ASTRAY: it has left a passage, and
the position is where it would be now if it had replaced as many tokens as it has added."""
INITIAL_ODDS = {
    RUN: (0.0, 0.2, 0.4, 0.7, 0.88, 0.95, 0.98),
    NEAR: (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98),
    ASTRAY: (0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98),
}
"""First estimate that a copied token is right, by the kind of match and the bit length of the match's length."""


@dataclass(frozen=True, slots=True)
class SuffixMatches:
    """Positions in n-gram indexes whose tokens may continue the text, and the way in which they all were found."""

    kind: str
    """RUN, NEAR or ASTRAY."""
    length: int
    """Number of tokens before the first position that equal the text's last tokens, those followed included."""
    positions: tuple[tuple[NgramIndex, int], ...]
    """Pairs of an index and a position in it; the token there is a guess."""

    def guesses(self) -> list[Guess]:
        """Return the tokens at the positions as guesses, each once, the most frequent first.

        Positions without a token are skipped; the list is empty if none has one.
        """
        counts: dict[int, int] = {}
        for index, position in self.positions:
            if (token_id := index.token_at(position)) is not None:
                counts[token_id] = counts.get(token_id, 0) + 1
        total, length_bits = sum(counts.values()), min(self.length, 32).bit_length()
        odds = INITIAL_ODDS[self.kind][length_bits]
        return [
            Guess(token_id, odds * count / total, (self.kind, length_bits, count == total, min(count, 3)))
            for token_id, count in sorted(counts.items(), key=lambda pair: -pair[1])
        ]

    def follow(self, token_id: int) -> SuffixMatches | None:
        """Return the positions that hold this token, each moved one token further; None if none holds it."""
        left = tuple(
            (index, position + 1) for index, position in self.positions if index.token_at(position) == token_id
        )
        return SuffixMatches(self.kind, self.length + 1, left) if left else None


class SuffixDrafter:
    """Guesses what followed earlier occurrences of the text's ending, in the text itself and in other indexed texts.

    A text that copies a passage and departs from it, by a replaced or omitted word, often returns to it soon. So
    tokens that follow the point of departure in that passage are guessed too. The state is a tuple of `SuffixMatches`.
    """

    name = "suffix"
    hidden = False
    guesses_are_valid = True
    MAX_MATCHES = 4
    """Maximum number of matching positions per index; the latest are taken."""
    COPY_LENGTH = 4
    """A match of at least this many tokens counts as a copy."""
    RETURN_DISTANCE = 12
    """Maximum number of tokens after which a text is expected to return to the passage that it left."""

    def __init__(self, own: NgramIndex, others: Sequence[NgramIndex] = (), *, learns_from_passes: bool = True) -> None:
        """`own` indexes the document's text and is updated; `others` are only searched.

        Without `learns_from_passes` the own index changes by `read` alone.
        """
        self.own = own
        self._learns_from_passes = learns_from_passes
        self._indexes = [own, *others]
        self._indexed: list[int] = []
        """The document's token ids that the own index holds."""
        self._departure: tuple[NgramIndex, int, int] | None = None
        """The latest copy: its index, the position that would have come next, and the length of the text then."""

    def with_indexes(self, others: Sequence[NgramIndex]) -> SuffixDrafter:
        """Return a drafter that shares this one's own index and searches that and `others`, but not this one's others.

        It learns from passes.
        """
        other = SuffixDrafter(self.own, others)
        other._indexed = self._indexed
        return other

    def read(self, token_ids: Sequence[int]) -> None:
        """Add to the own index what `token_ids`, the document's whole text, has beyond the text indexed before.

        If it does not begin with that text, a new text begins in the index, to which it is added from `max_run` tokens
        before the first difference on. What was indexed before stays.
        """
        same = common_prefix_length(self._indexed, list(token_ids))
        if same < len(self._indexed):
            # The text has changed: index it again from before the change, so that n-grams across it are found.
            same = max(0, same - self.own.max_run)
            self.own.begin_text()
        self.own.add(token_ids[same:])
        self._indexed[:] = token_ids

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        """Add the last `new` tokens of the path, at least one, to the index `own` if they continue its text.

        They continue it if the tokens right before them are the last COMPARED_TOKENS tokens of that text, or the whole
        text if it is shorter; if it is empty, there must be no tokens before them. Does nothing if the drafter does not
        learn from passes. `scores` and `nodes` are not used.
        """
        # Of several samples of one text, only the first is indexed as it grows.
        before = list(path[-new - COMPARED_TOKENS : -new])[-len(self._indexed) :]
        if self._learns_from_passes and self._indexed[-COMPARED_TOKENS:] == before:
            self.own.add(path[-new:])
            self._indexed.extend(path[-new:])

    def start(self, path: Sequence[int], vector: object, reach: int) -> tuple[SuffixMatches, ...] | None:
        """Return the matches of the longest suffix of the path that `NgramIndex.find` finds in any of the indexes.

        If that suffix has COPY_LENGTH tokens or more, the first position after it is noted as the latest copy. If not,
        the match of `_returns`, if there is one, comes first: where the text may return to the passage that it copied.
        None if there are no matches. `vector` and `reach` are not used.
        """
        found = [(index, *index.find(path, self.MAX_MATCHES)) for index in self._indexes]
        longest = max(length for _, _, length in found)
        positions = tuple((index, position) for index, ends, length in found if length == longest for position in ends)
        if longest >= self.COPY_LENGTH:
            self._departure = (*positions[0], len(path))
            return (SuffixMatches(RUN, longest, positions),)
        returns = self._returns(path)
        runs = [SuffixMatches(RUN, longest, positions)] if positions else []
        return tuple([*returns, *runs]) or None

    def _returns(self, path: Sequence[int]) -> list[SuffixMatches]:
        """Return where a text that left the passage it copied may return to it: one match of one position, in a list.

        Empty unless the text left the latest passage that it copied 1 to RETURN_DISTANCE tokens ago. `path` must not be
        empty.
        """
        if self._departure is None or not 0 < len(path) - self._departure[2] <= self.RETURN_DISTANCE:
            return []
        index, position, length = self._departure
        nearby = range(position + 1, position + self.RETURN_DISTANCE)
        near = [each for each in nearby if index.token_at(each - 1) == path[-1]]
        if near:
            return [SuffixMatches(NEAR, 1, ((index, near[0]),))]
        # Most often one word replaces another: skip as many tokens as the text has added since.
        return [SuffixMatches(ASTRAY, 0, ((index, position + len(path) - length),))]

    def ways(self, state: Any) -> Sequence[Guess]:
        """Return the guesses of all matches, each token once with its highest odds.

        They are in the order of the matches, and not sorted by odds.
        """
        best: dict[int, Guess] = {}
        for matches in state:
            for guess in matches.guesses():
                if guess.token_id not in best or guess.odds > best[guess.token_id].odds:
                    best[guess.token_id] = guess
        return list(best.values())

    def follow(self, state: Any, token_id: int) -> tuple[SuffixMatches, ...] | None:
        """Return the matches whose positions hold `token_id`, moved one token further; None if no position holds it."""
        followed = (matches.follow(token_id) for matches in state)
        return tuple(matches for matches in followed if matches is not None) or None
