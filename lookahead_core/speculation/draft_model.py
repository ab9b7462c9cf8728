"""A smaller model that drafts for a bigger one, over a tree of its own."""

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
from lookahead_core.speculation.drafters import Guess, GuessAccuracy, decile
from lookahead_core.text.context_window import window_start
from lookahead_core.tree import Node, TokenTree

Choose: TypeAlias = Callable[[torch.Tensor, Sequence[int]], tuple[int, torch.Tensor | None]]
"""Tells of a row and a path which token comes, and the probabilities that it was drawn from, if it was drawn here."""

LONGEST = 8
"""How many tokens it runs ahead at most: each is a pass of its own."""
SURE_ENOUGH = 0.3
"""It stops where all that it has drafted is less likely than this to be right: another pass would hardly pay."""
WAYS = 3
DRAWN = 0.7
"""How likely a token that it has drawn is taken: the same for all, or the ones that were put into a draft would come
with other odds than they were drawn with."""


class DraftModelDrafter:
    """Runs ahead with a smaller model, choosing as the big one chooses."""

    name = "model"
    hidden = False
    guesses_are_valid = True

    def __init__(self, little: Model, vocabulary: int, choose: Choose, trust: GuessAccuracy) -> None:
        """The vocabulary is the bigger model's, which may have more ids that stand for nothing, or fewer."""
        self.little = little
        self._vocabulary = vocabulary
        self._choose = choose
        self._trust = trust
        self._tree = TokenTree()
        self._ahead: dict[Node, tuple[int, float, torch.Tensor | None]] = {}
        """What was chosen after each node that it has run over, with its odds and what it was drawn from."""

    def read(self, token_ids: Sequence[int]) -> None:
        """It reads what it needs when it starts."""

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        """It learns nothing from the bigger model."""

    def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> Any:
        seen = self._seen(path)
        if not seen or max(seen) >= self.little.vocabulary:
            return None
        self._tree.new_view()
        top = self._tree.descend(self._tree.root, seen)
        self._tree.move_head(top)
        self._ahead = {}
        self._run(top, list(path), min(reach, LONGEST))
        if self._tree.size > 2 * len(seen) + 256:
            self.little.engine.free(self._tree.prune())
        return top

    def _seen(self, path: Sequence[int]) -> Sequence[int]:
        """What it reads of a path: nothing where it could not run ahead behind it."""
        context, starts = self.little.context_length, self.little.start_ids
        first = len(starts) if tuple(path[: len(starts)]) == starts else 0
        if context is not None and context <= first + LONGEST:
            return ()
        start = window_start(len(path), context, LONGEST, first)
        return [*path[:first], *path[start:]] if start else path

    def _run(self, node: Node, path: list[int], reach: int) -> None:
        """One token after the other, as long as what it has drafted is likely to be right."""
        likely = 1.0
        for _ in range(reach):
            try:
                row = self.little.engine.evaluate([node])[0]
            except CacheFull:
                # The text goes on without it.
                return
            token_id, odds, source = self._token(row, path)
            self._ahead[node] = token_id, odds, source
            likely *= self._trust.odds(self.name, _first(token_id, odds, source))
            if likely < SURE_ENOUGH:
                return
            node = self._tree.expand(node, token_id)
            path.append(token_id)

    def _token(self, row: torch.Tensor, path: Sequence[int]) -> tuple[int, float, torch.Tensor | None]:
        # Rows of padding stand for nothing, and one model may have more of them than the other.
        row = functional.pad(row, (0, self._vocabulary - len(row)), value=-math.inf).log_softmax(-1)
        token_id, source = self._choose(row, path)
        return token_id, DRAWN if source is not None else float(row[token_id].exp()), source

    def ways(self, state: Any) -> Sequence[Guess]:
        if state not in self._ahead:
            return ()
        token_id, odds, source = self._ahead[state]
        first = _first(token_id, odds, source)
        if source is not None:
            # Of several tokens only the first could be a draw; the others would have to be told apart from it.
            return [first]
        said = zip(state.prediction.token_ids, state.prediction.logprobs, strict=True)
        known = itertools.islice(((other, value) for other, value in said if other < self._vocabulary), WAYS)
        others = [
            Guess(other, 0.5 * math.exp(value), ("other", place))
            for place, (other, value) in enumerate(known)
            if other != token_id
        ]
        return [first, *others]

    def follow(self, state: Any, token_id: int) -> Any:
        return state.children.get(token_id)


def _first(token_id: int, odds: float, source: torch.Tensor | None) -> Guess:
    """What the smaller model would say: it agrees with the bigger one more often than it is sure of it."""
    if source is not None:
        return Guess(token_id, DRAWN, "drawn", source)
    return Guess(token_id, 0.4 + 0.6 * odds, ("first", decile(odds)))
