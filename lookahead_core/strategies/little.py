"""A smaller model that drafts for a bigger one, over a tree of its own."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch

from lookahead_core.engines.engine import Engine, Scores
from lookahead_core.strategies.drafters import Trust, Way, decile
from lookahead_core.strategies.verify import drawn
from lookahead_core.tree import Node, TokenTree

LONGEST = 8
"""How many tokens it runs ahead at most: each is a pass of its own."""
SURE_ENOUGH = 0.3
"""It stops where all that it has drafted is less likely than this to be right: another pass would hardly pay."""
WAYS = 3
DRAWN = 0.7
"""How likely a token that it has drawn is taken: the same for all, or the ones that were put into a draft would come
with other odds than they were drawn with."""


class LittleModel:
    """Runs ahead with a smaller model, choosing as the big one chooses."""

    name = "model"
    hidden = False

    def __init__(
        self,
        engine: Engine,
        context: int | None,
        choose: Callable[[torch.Tensor, Sequence[int], int], torch.Tensor | int],
        trust: Trust,
        *,
        seed: int = 0,
    ) -> None:
        """`choose` tells of a row, a path and how many tokens were run ahead which token comes, or the probabilities
        that one is to be drawn with here."""
        self.engine = engine
        self._context = context
        self._choose = choose
        self._trust = trust
        self._dice = random.Random(seed)
        self._tree = TokenTree()
        self._ahead: dict[Node, tuple[int, float, torch.Tensor | None]] = {}
        """What was chosen after each node that it has run over, with its odds and what it was drawn from."""

    def read(self, token_ids: Sequence[int]) -> None:
        """It reads what it needs when it starts."""

    def hear(self, path: Sequence[int], new: int, scores: Scores, nodes: Sequence[Node]) -> None:
        """It learns nothing from the bigger model."""

    def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> Any:
        seen = path if self._context is None else path[max(0, len(path) + LONGEST - self._context) :]
        self._tree.new_view()
        top = self._tree.descend(self._tree.root, seen)
        self._tree.move_head(top)
        self._ahead = {}
        self._run(top, list(path), min(reach, LONGEST))
        if self._tree.size > 2 * len(seen) + 256:
            self.engine.forget(self._tree.prune())
        return top

    def _run(self, node: Node, path: list[int], reach: int) -> None:
        """One token after the other, as long as what it has drafted is likely to be right."""
        likely = 1.0
        for ahead in range(reach):
            row = self.engine.evaluate([node])[0]
            token_id, odds, source = self._token(row, path, ahead)
            self._ahead[node] = token_id, odds, source
            likely *= self._trust.odds(self.name, _first(token_id, odds, source))
            if likely < SURE_ENOUGH:
                return
            node = self._tree.expand(node, token_id)
            path.append(token_id)

    def _token(self, row: torch.Tensor, path: Sequence[int], ahead: int) -> tuple[int, float, torch.Tensor | None]:
        chosen = self._choose(row, path, ahead)
        if isinstance(chosen, torch.Tensor):
            return drawn(chosen, self._dice.random()), DRAWN, chosen
        return chosen, float(row[chosen].exp()), None

    def ways(self, state: Any) -> Sequence[Way]:
        if state not in self._ahead:
            return ()
        token_id, odds, source = self._ahead[state]
        first = _first(token_id, odds, source)
        if source is not None:
            # Of several tokens only the first could be a draw; the others would have to be told apart from it.
            return [first]
        said = state.prediction
        others = [
            Way(other, 0.5 * math.exp(value), ("other", place))
            for place, (other, value) in enumerate(zip(said.token_ids[:WAYS], said.logprobs, strict=False))
            if other != token_id
        ]
        return [first, *others]

    def follow(self, state: Any, token_id: int) -> Any:
        return state.children.get(token_id)


def _first(token_id: int, odds: float, source: torch.Tensor | None) -> Way:
    """What the smaller model would say: it agrees with the bigger one more often than it is sure of it."""
    if source is not None:
        return Way(token_id, DRAWN, "drawn", source)
    return Way(token_id, 0.4 + 0.6 * odds, ("first", decile(odds)))
