"""The draft-model drafter: a smaller model runs ahead of the big one, over a token tree of its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch.nn import functional

from lookahead_core.engines.engine import NodeScores
from lookahead_core.errors import CacheFull
from lookahead_core.model import Model
from lookahead_core.speculation.drafters.protocol import Guess, GuessAccuracy, decile
from lookahead_core.text.context_window import window_start
from lookahead_core.tree import Node, TokenTree

Choose: TypeAlias = Callable[[torch.Tensor, Sequence[int]], tuple[int, torch.Tensor | None]]
"""A function from a row of log-probabilities and a path to the next token, chosen as the stream chooses.

It also returns the probabilities that the token was sampled from; None if it was chosen greedily or with the stream's
own noise.
"""

MAX_DRAFT_DEPTH = 8
"""Maximum number of tokens that the draft model runs ahead: each takes a forward pass of its own."""
MIN_PATH_ODDS = 0.3
"""The draft model stops when the estimated probability that all tokens chosen so far are accepted is below this."""
ALTERNATIVES = 3
"""Number of the draft model's most probable tokens that are guessed too; the chosen token may be one of them."""
SAMPLED_ODDS = 0.7
"""Odds of a sampled guess. They are the same for all tokens: if they depended on the token, sampled tokens would enter
the draft with other probabilities than they were sampled with."""


class DraftModelDrafter:
    """Guesses the tokens that a smaller model, the draft model, generates after the text, and its likeliest others.

    A state is a node of the drafter's own token tree.
    """

    name = "model"
    hidden = False
    guesses_are_valid = True

    def __init__(self, draft_model: Model, vocabulary: int, choose: Choose, accuracy: GuessAccuracy) -> None:
        """`vocabulary` is the number of ids of the big model, whose text is drafted; the draft model may have more or
        fewer padding ids at the end.

        `choose` chooses a token from log-probabilities and a path, as the stream does; see `Choose`. `accuracy` are the
        stream's counts of right guesses, which are only read, to decide when to stop.
        """
        self.draft_model = draft_model
        self._vocabulary = vocabulary
        self._choose = choose
        self._accuracy = accuracy
        self._tree = TokenTree()
        self._chosen: dict[Node, tuple[int, float, torch.Tensor | None]] = {}
        """The token chosen after each node of the current draft, its odds, and what it was sampled from."""

    def read(self, token_ids: Sequence[int]) -> None:
        """Do nothing: this drafter learns from no text, and `start` gets the whole path."""

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        """Do nothing: this drafter learns from no pass, and `start` gets the whole path."""

    def start(self, path: Sequence[int], vector: object, reach: int) -> Node | None:
        """Generate tokens after the path with the draft model, and return the state at the path's end.

        They are at most `reach`, at most MAX_DRAFT_DEPTH, and fewer if they become unlikely to be accepted. Returns
        None, and generates none, if the path is empty, if the draft model's context is too short, or if the part of
        the path that it reads has ids that it does not have. `vector` is not used.
        """
        window = self._window(path)
        if not window or max(window) >= self.draft_model.vocabulary:
            return None
        self._tree.new_view()
        head = self._tree.descend(self._tree.root, window)
        self._tree.move_head(head)
        self._chosen = {}
        self._run_ahead(head, list(path), min(reach, MAX_DRAFT_DEPTH))
        if self._tree.size > 2 * len(window) + 256:
            self.draft_model.engine.free(self._tree.prune())
        return head

    def _window(self, path: Sequence[int]) -> Sequence[int]:
        """Return the part of the path that the draft model reads: all of it, if it fits the context.

        Otherwise its start tokens and its end, which fit. MAX_DRAFT_DEPTH tokens always fit after the part. Empty if
        the context has no room for them.
        """
        context, start_ids = self.draft_model.context_length, self.draft_model.start_ids
        first = len(start_ids) if tuple(path[: len(start_ids)]) == start_ids else 0
        if context is not None and context <= first + MAX_DRAFT_DEPTH:
            return ()
        start = window_start(len(path), context, MAX_DRAFT_DEPTH, first)
        return [*path[:first], *path[start:]] if start else path

    def _run_ahead(self, node: Node, path: list[int], max_depth: int) -> None:
        """Choose up to `max_depth` tokens after `node` as the stream would, one pass of the draft model for each.

        They are stored in `_chosen`. Stops after the token that makes the draft unlikely to be accepted as a whole, or
        if the draft model's cache is full. `path` holds the ids down to `node`; the tokens are appended to it, except
        one that stopped the run.
        """
        path_odds = 1.0
        for _ in range(max_depth):
            try:
                row = self.draft_model.engine.evaluate([node])[0]
            except CacheFull:
                return  # the stream continues without this drafter
            token_id, odds, source = self._chosen_token(row, path)
            self._chosen[node] = token_id, odds, source
            path_odds *= self._accuracy.odds(self.name, _first_guess(token_id, odds, source))
            if path_odds < MIN_PATH_ODDS:
                return
            node = self._tree.expand(node, token_id)
            path.append(token_id)

    def _chosen_token(self, row: torch.Tensor, path: Sequence[int]) -> tuple[int, float, torch.Tensor | None]:
        """Return the token chosen after `path`, its odds, and the probabilities that it was sampled from.

        `row` holds the draft model's log-probabilities after `path`. The probabilities have the shape (ids of the big
        model,); None if the token was not sampled for acceptance by rejection. The odds are the draft model's
        probability of the token, or SAMPLED_ODDS if it was sampled for rejection.
        """
        # Padding ids have no text; one model may have more of them than the other.
        row = functional.pad(row, (0, self._vocabulary - len(row)), value=-math.inf).log_softmax(-1)
        token_id, source = self._choose(row, path)
        return token_id, SAMPLED_ODDS if source is not None else float(row[token_id].exp()), source

    def ways(self, state: Any) -> Sequence[Guess]:
        """Return guesses after the state's node: the draft model's chosen token, then others of its likeliest.

        The others are those of its ALTERNATIVES most probable tokens that are not the chosen one. Empty if no token was
        chosen there; the chosen one alone if it was sampled for acceptance by rejection.
        """
        if state not in self._chosen:
            return ()
        token_id, odds, source = self._chosen[state]
        first = _first_guess(token_id, odds, source)
        if source is not None:
            # Further tokens would have to be sampled, given that the first one is rejected.
            return [first]
        pairs = zip(state.prediction.token_ids, state.prediction.logprobs, strict=True)
        known = itertools.islice(((other, value) for other, value in pairs if other < self._vocabulary), ALTERNATIVES)
        others = [
            Guess(other, 0.5 * math.exp(value), ("other", rank))
            for rank, (other, value) in enumerate(known)
            if other != token_id
        ]
        return [first, *others]

    def follow(self, state: Any, token_id: int) -> Node | None:
        """Return the child of the state's node for this token; None if the drafter's tree has none."""
        child: Node | None = state.children.get(token_id)
        return child


def _first_guess(token_id: int, odds: float, source: torch.Tensor | None) -> Guess:
    """Return the guess of a token that the draft model has chosen; `odds` is the draft model's probability of it.

    The guess's odds are higher, as the models agree more often than that: 0.4 + 0.6 * `odds`. With `source`, the
    probabilities that the token was sampled from, they are SAMPLED_ODDS instead.
    """
    if source is not None:
        return Guess(token_id, SAMPLED_ODDS, "drawn", source)
    return Guess(token_id, 0.4 + 0.6 * odds, ("first", decile(odds)))
