"""The drafter "recycled": repeats the most probable successors that earlier passes found for the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lookahead_core.engines.engine import NodeScores
from lookahead_core.speculation.drafters.protocol import Guess, decile
from lookahead_core.tree import Node

SUCCESSORS = 4
"""How many of the most probable successors are kept per context; measured in docs/performance-notes.md."""
MIN_PROBABILITY = 0.1
"""Successors less probable than this, as `NodeScores.top_k` reports it, hardly ever pay for a node in a pass."""
MAX_CONTEXTS = 16_384
"""Maximum number of contexts, of one or two token ids, that are kept; the one that was updated least recently goes."""
INITIAL_ODDS = (0.0, 0.5, 0.8)
"""First estimate of a guess's odds, as a factor on its earlier probability: after a context of 0, 1 or 2 tokens."""


class SuccessorDrafter:
    """Guesses the most probable successors of the last one or two tokens, as earlier passes of the document found them.

    Rejected draft nodes are used as well: their scores were computed anyway. The state is the last two token ids.
    """

    name = "recycled"
    hidden = False
    guesses_are_valid = True

    def __init__(self) -> None:
        self._successors: dict[tuple[int, ...], tuple[tuple[int, ...], tuple[float, ...]]] = {}
        """By the last one or two token ids: successors and their probabilities."""

    def read(self, token_ids: Sequence[int]) -> None:
        """Do nothing: this drafter learns from passes only."""

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        """Store the SUCCESSORS most probable next tokens after each of `nodes`, as `scores` estimates them.

        They are stored under the node's token, and under the pair of its parent's token and its own, in place of
        earlier ones. The root, which has no token, must not be among the nodes. `path` and `new` are not used.
        """
        for node, ids, values in zip(nodes, *scores.top_k(nodes, SUCCESSORS), strict=True):
            parent = node.parent
            assert parent is not None
            for context in ((node.token_id,), (parent.token_id, node.token_id)):
                self._successors.pop(context, None)
                self._successors[context] = tuple(ids), tuple(values)
        while len(self._successors) > MAX_CONTEXTS:
            del self._successors[next(iter(self._successors))]

    def start(self, path: Sequence[int], vector: object, reach: int) -> tuple[int, ...]:
        """Return the state: the last two token ids of the path, or fewer if it is shorter.

        `vector` and `reach` are not used.
        """
        return tuple(path[-2:])

    def ways(self, state: Any) -> Sequence[Guess]:
        """Return as guesses the stored successors of the last two tokens; if none are stored, of the last token alone.

        The most probable come first. Those below MIN_PROBABILITY are left out, so the result may be empty, as it is if
        no successors are stored.
        """
        known, context_length = self._successors.get(state), 2
        if known is None:
            known, context_length = self._successors.get(state[-1:]), 1
        if known is None:
            return ()
        factor = INITIAL_ODDS[context_length]
        return [
            Guess(token_id, factor * value, (context_length, rank, decile(value)))
            for rank, (token_id, value) in enumerate(zip(*known, strict=True))
            if value >= MIN_PROBABILITY
        ]

    def follow(self, state: Any, token_id: int) -> tuple[int, ...]:
        """Return the state after one more token: the last token id of `state`, which must have one, and `token_id`."""
        return (state[-1], token_id)
