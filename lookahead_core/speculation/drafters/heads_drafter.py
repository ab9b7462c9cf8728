"""The drafter "heads": guesses with trained draft heads, from the model's last hidden state."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from lookahead_core.engines.engine import NodeScores
from lookahead_core.engines.prediction_rows import top_k_sorted
from lookahead_core.model import Model
from lookahead_core.speculation.drafters.protocol import Guess, decile
from lookahead_core.speculation.heads_file import Heads, check_heads
from lookahead_core.speculation.heads_forward import HeadsForward
from lookahead_core.tree import Node

GUESSES = 6
"""Number of tokens that each head guesses, or all of its vocabulary if that is smaller."""


class HeadsDrafter:
    """Guesses with trained draft heads.

    A state is a pair of a `HeadGuesses` and the index, from 0, of the head that guesses next.
    """

    name = "heads"
    hidden = True
    guesses_are_valid = True
    dear = True

    def __init__(self, heads: Heads, model: Model) -> None:
        """Prepare the heads for the model; this is kept in `heads.prepared`, for later drafters of the same model.

        A ModelError is raised as by `check_heads`: if they do not fit the model, or its output matrix cannot be read.
        """
        self.heads = heads
        check_heads(heads, model)
        if model.hf_model not in heads.prepared:
            heads.prepared[model.hf_model] = HeadsForward(heads, model)
        self._forward: HeadsForward = heads.prepared[model.hf_model]

    def read(self, token_ids: Sequence[int]) -> None:
        """Do nothing: heads use hidden states only."""

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        """Do nothing: heads are trained beforehand."""

    def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> tuple[HeadGuesses, int] | None:
        """Return the first state: a `HeadGuesses` of at most `reach` heads, not computed yet, and the head index 0.

        `vector`, of shape (hidden size,), is the hidden state that the path's last token was predicted from. Returns
        None if it is None, or if `reach` is 0.
        """
        if vector is None or reach < 1:
            return None
        return HeadGuesses(self._forward, vector, path[-1], min(reach, self.heads.count)), 0

    def ways(self, state: Any) -> Sequence[Guess]:
        """Return the guesses of the state's head, the most probable first; a draft's first call runs all its heads."""
        guesses: HeadGuesses = state[0]
        return guesses.by_head[state[1]]

    def follow(self, state: Any, token_id: int) -> tuple[HeadGuesses, int] | None:
        """Return the state of the next head, whose guesses do not depend on `token_id`; None after the last head."""
        guesses, head = state
        return (guesses, head + 1) if head + 1 < guesses.count else None


class HeadGuesses:
    """The guesses of the first `count` draft heads from one hidden state; the first access to `by_head` runs them."""

    def __init__(self, forward: HeadsForward, state: torch.Tensor, token_id: int, count: int) -> None:
        """`state` is the hidden state, of shape (hidden size,), and `token_id` the token that followed it.

        `count` is the number of heads to use, at most as many as there are.
        """
        self.count = count
        self._forward, self._state, self._token_id = forward, state, token_id

    @functools.cached_property
    def by_head(self) -> tuple[tuple[Guess, ...], ...]:
        """For each of the first `count` heads, its guesses, at most GUESSES, the most probable first.

        The first access runs the heads. The odds are probabilities among the tokens that heads guess among.
        """
        scores = self._forward(self._state.reshape(1, -1), torch.tensor([self._token_id]), self.count)[:, 0]
        columns = top_k_sorted(scores, min(GUESSES, scores.shape[-1]))
        odds = scores.softmax(-1).gather(1, columns)
        token_ids = self._forward.kept[columns]
        return tuple(map(_guesses, range(self.count), token_ids.tolist(), odds.tolist()))


def _guesses(head: int, token_ids: list[int], odds: list[float]) -> tuple[Guess, ...]:
    """Return these tokens, in order, as guesses whose odds are the probabilities `odds`; give the most probable first.

    `head` is the index of the head that guesses them. With a token's rank and its probability's tenth it makes the kind
    of guess.
    """
    return tuple(
        Guess(token_id, value, (head, min(rank, 3), decile(value)))
        for rank, (token_id, value) in enumerate(zip(token_ids, odds, strict=True))
    )
