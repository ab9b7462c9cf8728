"""`RemoteScores`: the scores of nodes from a server, whose rows are fetched only where a caller reads them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch

from lookahead_core.engines.engine import NodeScores
from lookahead_core.engines.prediction_rows import renormalised_among
from lookahead_core.prediction import Prediction
from lookahead_core.tree import Node

FetchRows = Callable[[Sequence[Node]], torch.Tensor]
"""A function from nodes to their log-probabilities of all tokens, of shape (nodes, vocabulary).

It raises RowsUnavailable where the server does not give them.
"""
FetchAmong = Callable[[Node, Sequence[int], Sequence[int]], tuple[Prediction, list[float]]]
"""A function that fetches what `NodeScores.among` returns."""


class RemoteScores(NodeScores):
    """The predictions of nodes from a server. Methods that return rows fetch them, or raise RowsUnavailable.

    Logits are not known: log-probabilities stand for them.
    """

    def __init__(
        self,
        predictions: Mapping[Node, Prediction],
        vocabulary: int,
        fetch_rows: FetchRows,
        fetch_among: FetchAmong | None,
    ) -> None:
        """`fetch_among` is None if the server does not give odds on a condition."""
        super().__init__(list(predictions), torch.empty(len(predictions), 0))
        self._predictions = dict(predictions)
        self._vocabulary = vocabulary
        self._fetch_rows = fetch_rows
        self._fetch_among = fetch_among
        self._fetched: dict[Node, torch.Tensor] = {}

    @staticmethod
    def _join(parts: Sequence[NodeScores]) -> NodeScores:
        remote = [part for part in parts if isinstance(part, RemoteScores)]
        predictions = {node: value for part in remote for node, value in part._predictions.items()}
        whole = RemoteScores(predictions, remote[0]._vocabulary, remote[0]._fetch_rows, remote[0]._fetch_among)
        whole.shared = any(part.shared for part in parts)
        return whole

    def part(self, nodes: Sequence[Node], *, hidden: bool) -> NodeScores:
        predictions = {node: self._predictions[node] for node in nodes}
        part = RemoteScores(predictions, self._vocabulary, self._fetch_rows, self._fetch_among)
        part.shared = True
        return part

    @functools.cached_property
    def best_tokens(self) -> list[int]:
        return [self._predictions[node].token_ids[0] for node in self.nodes]

    def top_k(self, nodes: Sequence[Node], count: int) -> tuple[list[list[int]], list[list[float]]]:
        """See `NodeScores.top_k`; fewer than `count` tokens if the server returned fewer."""
        kept = [self._predictions[node] for node in nodes]
        ids = [list(each.token_ids[:count]) for each in kept]
        return ids, [list(map(math.exp, each.logprobs[:count])) for each in kept]

    def logits_of(self, nodes: Sequence[Node]) -> torch.Tensor:
        """See `logprobs_of`, which this returns."""
        missing = [node for node in dict.fromkeys(nodes) if node not in self._fetched]
        if missing:
            self._fetched.update(zip(missing, self._fetch_rows(missing), strict=True))
        return torch.stack([self._fetched[node] for node in nodes])

    def logprobs_of(self, nodes: Sequence[Node]) -> torch.Tensor:
        """Return the log-probabilities after these nodes, of shape (nodes, vocabulary), in the order of `nodes`.

        Raises RowsUnavailable where the server does not give them.
        """
        return self.logits_of(nodes)

    def top_rows(self, nodes: Sequence[Node], count: int) -> torch.Tensor:
        """See `NodeScores.top_rows`. If the server gives fewer than `count` tokens, whole rows are fetched."""
        known = [self._predictions[node] for node in nodes]
        if any(len(each.token_ids) < min(count, self._vocabulary) for each in known):
            return self.logprobs_of(nodes)
        width = max(self._vocabulary, 1 + max(max(each.token_ids) for each in known))
        rows = torch.full((len(known), width), -math.inf)
        for row, each in zip(rows, known, strict=True):
            row[list(each.token_ids)] = torch.tensor(each.logprobs)
        return rows

    def among(self, node: Node, token_ids: Sequence[int], named: Sequence[int] = ()) -> tuple[Prediction, list[float]]:
        """See `NodeScores.among`. Log-probabilities that are not known yet are requested from the server.

        The prediction may be truncated. Raises RowsUnavailable if the server gives neither those nor all of them.
        """
        known = self._predictions[node].token_ids
        if set(token_ids) <= set(known):
            row, prediction = renormalised_among(self.top_rows([node], 0)[0], token_ids)
            return prediction, row[list(named)].tolist()
        if node in self._fetched or self._fetch_among is None:
            return super().among(node, token_ids, named)
        return self._fetch_among(node, token_ids, named)

    def next_logprobs(self, nodes: Sequence[Node], token_ids: Sequence[int]) -> list[float]:
        known = [dict(zip(each.token_ids, each.logprobs, strict=True)) for each in map(self._predictions.get, nodes)]  # type: ignore[union-attr]
        if all(token_id in values for token_id, values in zip(token_ids, known, strict=True)):
            return [values[token_id] for token_id, values in zip(token_ids, known, strict=True)]
        rows = self.logprobs_of(nodes)
        return [float(row[token_id]) for row, token_id in zip(rows, token_ids, strict=True)]

    def store_predictions(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            node.prediction = self._predictions[node]
            node.tree.mark_visible(node)
