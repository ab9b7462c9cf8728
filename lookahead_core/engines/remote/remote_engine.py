"""The remote engine: a server computes the predictions, such as vLLM's, over its completions call with token ids."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace

import torch

from lookahead_core.engines.cpu.prepare import Computation
from lookahead_core.engines.engine import NodeScores, best_token, group_by_tree
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.engines.prediction_rows import LogitRows
from lookahead_core.engines.remote.completions import ALL, Completions, MissingFields, ServerToken
from lookahead_core.engines.remote.remote_scores import RemoteScores
from lookahead_core.engines.remote.server_errors import Retries, RowsUnavailable, ServerFault
from lookahead_core.engines.remote.truncated_prediction import truncated_prediction
from lookahead_core.errors import LookaheadError, ModelError
from lookahead_core.prediction import Prediction
from lookahead_core.tree import Node, TokenTree

MOST_PROMPTS = 256
"""Maximum number of prompts in a request; vLLM takes up to 1,024."""
MOST_WHOLE_ROWS = 8
"""Maximum number of prompts in a request for the log-probabilities of all tokens: each row is megabytes of JSON."""
COLD_TOKENS = 32
"""Tokens that several prompts share, without a prediction near their end, from which on they are sent alone first: the
server's prefix cache then has them for all. One or two of the server's blocks."""


class RemoteEngine:
    """An `Engine` whose forward passes a server makes. A pass is a request; `roll_out` takes one for all its levels.

    It needs no rows for predictions. `evaluate`, and the rows of scores, need a server that gives the log-probabilities
    of all tokens; otherwise they raise RowsUnavailable. It may be used by several threads.
    """

    def __init__(
        self, completions: Completions, *, most: int, vocabulary: int, most_tokens: int, whole_rows: bool
    ) -> None:
        """`most` is the number of log-probabilities that the server gives, `most_tokens` its context with new tokens.

        `whole_rows` says whether it gives those of all `vocabulary` tokens.
        """
        self.most = most
        self.vocabulary = vocabulary
        self.most_tokens = most_tokens
        self.whole_rows = whole_rows
        self.batch_invariant_rows = None
        self.pass_costs = PassCosts()
        self.passes = 0
        self.computation = Computation("by the server", "by the server")
        self._completions = completions
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """The address of the server."""
        return self._completions.connection.address

    def close(self) -> None:
        """Close the connections to the server."""
        self._completions.connection.close()

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        """See `Engine.evaluate`. Raises RowsUnavailable if the server gives only the likeliest tokens."""
        order = list(dict.fromkeys(nodes))
        rows = self._rows(order)
        with torch.inference_mode():
            # The softmax of log-probabilities is theirs, but their log total is not that of the model's logits.
            for node, prediction in zip(order, LogitRows(rows).predictions(), strict=True):
                node.prediction = replace(prediction, log_total=None)
                node.tree.mark_visible(node)
            row_of = dict(zip(order, rows, strict=True))
            return torch.stack([row_of[node] for node in nodes])

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        """See `Engine.score`. The result has predictions; its rows are requested from the server when they are read.

        `hidden` is ignored: the result has no hidden states.
        """
        order = list(dict.fromkeys(nodes))
        self._warm(order)
        return RemoteScores(self._predictions(order), self.vocabulary, self._rows)

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        """Return no nodes: the server prefills."""
        return []

    def prefill(self, nodes: Sequence[Node]) -> None:
        """Do nothing: the server prefills."""

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        """See `Engine.roll_out`: one request for all levels, which ends when the generator is closed.

        There are more requests where the server's answer breaks off, or if its tokens are not the likeliest ones.
        """
        retries = Retries()
        ends = _unfinished(nodes, depth, stop)
        while ends:
            growing = _Branches(ends[:MOST_PROMPTS], depth, stop)
            try:
                for grown in self._grow(growing):
                    retries.note_progress()
                    yield grown
            except ServerFault as fault:
                retries.wait_after(fault)
            ends = _unfinished([*growing.tips, *ends[len(growing.tips) :]], depth, stop)

    def free(self, nodes: Sequence[Node]) -> None:
        """Do nothing: the server's cache is its own."""

    def compact(self, tree: TokenTree) -> None:
        """Do nothing: the server's cache is its own."""

    def cache_usage(self, tree: TokenTree) -> tuple[int, int]:
        return 0, 0

    def _predictions(self, nodes: Sequence[Node]) -> dict[Node, Prediction]:
        """Return the predictions after these nodes, which must be without repetitions, in their order."""
        found: dict[Node, Prediction] = {}
        for start in range(0, len(nodes), MOST_PROMPTS):
            for node, token in self._next_tokens(nodes[start : start + MOST_PROMPTS], self.most):
                found[node] = self._prediction(token)
        return {node: found[node] for node in nodes}

    def _rows(self, nodes: Sequence[Node]) -> torch.Tensor:
        """Return the log-probabilities of all tokens, of shape (nodes, vocabulary); RowsUnavailable if it cannot be."""
        if not self.whole_rows:
            raise RowsUnavailable(self.address, self.most)
        self._warm(nodes)
        found: dict[Node, torch.Tensor] = {}
        for start in range(0, len(nodes), MOST_WHOLE_ROWS):
            for node, token in self._next_tokens(nodes[start : start + MOST_WHOLE_ROWS], ALL):
                found[node] = self._whole_row(token)
        return torch.stack([found[node] for node in nodes])

    def _whole_row(self, token: ServerToken) -> torch.Tensor:
        if token.logprobs.keys() != set(range(self.vocabulary)):
            raise ServerFault(f"{self.address} has left out tokens of its answer; try again.", retry=False)
        return torch.tensor([token.logprobs[token_id] for token_id in range(self.vocabulary)], dtype=torch.float32)

    def _next_tokens(self, nodes: Sequence[Node], logprobs: int) -> Iterator[tuple[Node, ServerToken]]:
        """Yield each node with the token that follows it, in any order; one request, and more after faults."""
        retries, missing = Retries(), list(nodes)
        while missing:
            asked = missing
            try:
                for token in self._request(asked, 1, logprobs):
                    node = asked[token.prompt]
                    missing = [each for each in missing if each is not node]
                    retries.note_progress()
                    yield node, token
            except ServerFault as fault:
                retries.wait_after(fault)

    def _request(self, nodes: Sequence[Node], tokens: int, logprobs: int) -> Generator[ServerToken, None, None]:
        """Yield the tokens of one request: `tokens` after each node. Raises LookaheadError if they do not fit."""
        deepest = max(node.depth for node in nodes)
        if deepest + tokens > self.most_tokens:
            # The server would cut the answer silently.
            raise LookaheadError(
                f"The text and {tokens} more tokens are longer than the {self.most_tokens} tokens that "
                f"{self.address} reads: shorten the text, or the branches."
            )
        with self._lock:
            self.passes += 1
        for tree in {node.tree for node in nodes}:
            tree.work.passes += 1
        prompts = [node.tree.token_ids(node) for node in nodes]
        with contextlib.closing(self._completions.tokens(prompts, tokens, logprobs)) as found:
            try:
                for token in found:
                    nodes[token.prompt].tree.work.tokens += 1
                    yield token
            except MissingFields as missing:
                raise ModelError(f"{self.address} no longer answers with {missing}; check the server.") from None

    def _warm(self, nodes: Sequence[Node]) -> None:
        """Evaluate what several prompts of a tree have in common, unless that is short or the server knows it."""
        by_tree = group_by_tree(nodes).values()
        cold = [common for members in by_tree if (common := _cold_ancestor(members)) is not None]
        if cold:
            for node, prediction in self._predictions(cold).items():
                node.prediction = prediction

    def _grow(self, branches: _Branches) -> Iterator[list[Node]]:
        """Yield the new nodes of each level, as they come, of one request for all branches that have room for it."""
        tokens = max(branches.depth - node.depth for node in branches.tips)
        # Branches may begin at different depths: those without room for so many tokens are for a later request.
        fitting = [index for index, node in enumerate(branches.tips) if node.depth + tokens <= self.most_tokens]
        fitting = fitting or list(range(len(branches.tips)))
        nodes = [branches.tips[index] for index in fitting]
        with contextlib.closing(self._request(nodes, tokens, self.most)) as answer:
            growing = dict(enumerate(fitting))
            for token in answer:
                if token.prompt not in growing:
                    continue
                if not branches.add(growing[token.prompt], token.token_id, self._prediction(token)):
                    del growing[token.prompt]
                yield from branches.new_levels(growing.values())
                if not growing:
                    return

    def _prediction(self, token: ServerToken) -> Prediction:
        return truncated_prediction(token.logprobs, self.vocabulary, first=token.token_id)


class _Branches:
    """Greedy branches while the tokens of one request come, and which of their levels are complete."""

    def __init__(self, ends: Sequence[Node], depth: int, stop: frozenset[int]) -> None:
        """`ends` are the nodes below which they grow, without predictions."""
        self.depth = depth
        self.tips = list(ends)
        """The last node of each branch."""
        self._stop = stop
        self._grown: list[list[Node]] = [[] for _ in ends]
        self._levels = 0

    def add(self, index: int, token_id: int, prediction: Prediction) -> bool:
        """Add the next node to a branch, from the prediction at its tip; return whether the request may go on there.

        It may not at the branch's end, and where the server has gone on with another token than the likeliest.
        """
        tip = self.tips[index]
        tip.prediction = prediction
        tip.tree.mark_visible(tip)
        child = self.tips[index] = tip.tree.expand(tip, best_token(tip))
        self._grown[index].append(child)
        return child.token_id == token_id and child.depth < self.depth and child.token_id not in self._stop

    def new_levels(self, growing: Iterable[int]) -> Iterator[list[Node]]:
        """Yield the new nodes of each level that is complete: all branches in `growing` have reached it."""
        least = min((len(self._grown[index]) for index in growing), default=max(map(len, self._grown)))
        while self._levels < least:
            yield [nodes[self._levels] for nodes in self._grown if len(nodes) > self._levels]
            self._levels += 1


def _unfinished(nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> list[Node]:
    """Follow known predictions below each node; return the ends that are above `depth` and not in `stop`, each once."""
    ends: dict[Node, None] = {}
    for node in nodes:
        while node.depth < depth and node.token_id not in stop and node.prediction is not None:
            node = node.tree.expand(node, best_token(node))
        if node.depth < depth and node.token_id not in stop:
            ends[node] = None
    return list(ends)


def _cold_ancestor(nodes: Sequence[Node]) -> Node | None:
    """Return the deepest common ancestor of several nodes of a tree, if the server is not known to have its tokens.

    None if it has fewer than COLD_TOKENS tokens, or a prediction among its last COLD_TOKENS nodes, or for one node.
    """
    ancestor = nodes[0]
    for node in nodes[1:]:
        ancestor = _common_ancestor(ancestor, node)
    if len(nodes) < 2 or ancestor.depth < COLD_TOKENS:
        return None
    above: Node | None = ancestor
    for _ in range(COLD_TOKENS):
        if above is None or above.prediction is not None:
            return None
        above = above.parent
    return ancestor


def _common_ancestor(one: Node, other: Node) -> Node:
    while one is not other:
        if one.depth >= other.depth:
            assert one.parent is not None
            one = one.parent
        else:
            assert other.parent is not None
            other = other.parent
    return one
