"""The remote engine: servers compute the predictions, such as vLLM's, over its completions call with token ids."""

from __future__ import annotations

import contextlib
import math
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from lookahead_core.engines.cpu.prepare import Computation
from lookahead_core.engines.engine import NodeScores, best_token, group_by_tree, unfinished
from lookahead_core.engines.feed import read_all
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.engines.prediction_rows import LogitRows
from lookahead_core.engines.remote.completions import ALL, ServerToken
from lookahead_core.engines.remote.prompt_answers import Prompt, PromptToken, answers
from lookahead_core.engines.remote.remote_scores import RemoteScores
from lookahead_core.engines.remote.replicas import Replica, Replicas
from lookahead_core.engines.remote.server_errors import RowsUnavailable, ServerFault
from lookahead_core.engines.remote.truncated_prediction import truncated_prediction
from lookahead_core.engines.server_engine import OPEN, Gate, Reader, ReplicaCounts, RollOut
from lookahead_core.prediction import Prediction
from lookahead_core.tree import Node, TokenTree, TreeGrower

KEPT_ROWS = 2
"""Rows of all tokens that are kept of a tree: 0.2 MB each with 49,152 tokens."""
MOVED = "The server that computed your text has stopped. Another one goes on with it; nothing is lost."
COLD_TOKENS = 32
"""Tokens that several prompts share, without a prediction near their end, from which on they are sent alone first: the
server's prefix cache then has them for all. One or two of the server's blocks."""


class RemoteEngine:
    """An `Engine` whose forward passes a server makes. A pass is a request; `roll_out` takes one for all its levels.

    It needs no rows for predictions. `evaluate`, and the rows of scores, need a server that gives the log-probabilities
    of all tokens; otherwise they raise RowsUnavailable. It may be used by several threads.
    """

    def __init__(
        self,
        replicas: Replicas,
        *,
        most: int,
        vocabulary: int,
        most_tokens: int,
        whole_rows: bool,
        conditional: bool = False,
    ) -> None:
        """`most` is the number of log-probabilities that all servers give, `most_tokens` their context with new tokens.

        `whole_rows` says whether they give those of all `vocabulary` tokens, and `conditional` whether they give those
        on the condition that the token is one of some that a request allows.
        """
        self.most = most
        self.vocabulary = vocabulary
        self.most_tokens = most_tokens
        self.whole_rows = whole_rows
        self.conditional = conditional
        self.batch_invariant_rows = None
        self.pass_costs = PassCosts()
        self.passes = 0
        self.computation = Computation("by the server", "by the server")
        self.replicas = replicas
        self.reader: Reader = read_all
        self.new_gate: Callable[[], Gate] = lambda: OPEN
        self.moves = 0
        """How often a text went on at another server because its own one no longer answered."""
        self._lock = threading.Lock()
        self._replica_of: weakref.WeakKeyDictionary[TokenTree, Replica] = weakref.WeakKeyDictionary()
        self._moved: weakref.WeakSet[TokenTree] = weakref.WeakSet()
        self._kept_rows: weakref.WeakKeyDictionary[TokenTree, dict[tuple[int, ...], torch.Tensor]] = (
            weakref.WeakKeyDictionary()
        )
        """By tree, and by the token ids of the path to a node, the log-probabilities of all tokens after it: of the
        KEPT_ROWS nodes that were last asked for alone. While a word is typed, each letter needs those at its
        beginning."""

    @property
    def address(self) -> str:
        """The address of the server; of several, all of them."""
        return self.replicas.address

    @property
    def server_engine(self) -> RemoteEngine:
        """See `server_engine_of`."""
        return self

    def replica_counts(self) -> ReplicaCounts:
        return ReplicaCounts(tuple(not each.reason for each in self.replicas.all), self.moves)

    def close(self) -> None:
        """Close the connections to the servers."""
        self.replicas.close()

    def take_notice(self, tree: TokenTree) -> str:
        """Return a sentence, once, after a tree has moved since its server does not answer any more; else ""."""
        with self._lock:
            moved = tree in self._moved
            self._moved.discard(tree)
        return MOVED if moved else ""

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
        return RemoteScores(
            self._predictions(order), self.vocabulary, self._rows, self._among if self.conditional else None
        )

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        """Return no nodes: the server prefills."""
        return []

    def prefill(self, nodes: Sequence[Node]) -> None:
        """Do nothing: the server prefills."""

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        """See `Engine.roll_out`: one request for all levels, which ends when the generator is closed.

        There are more requests where the server's answer breaks off, or if its tokens are not the likeliest ones.
        """
        return self.roll_out_all([RollOut(nodes, depth, stop)])

    def roll_out_all(self, parts: Sequence[RollOut]) -> Generator[list[Node], None, None]:
        """See `ServerEngine.roll_out_all`."""
        branches = _Branches(parts)
        with (
            _growing(branches, branches.prompts.values()),
            contextlib.closing(self._answers(branches.prompts, self.most)) as found,
        ):
            for each in found:
                branches.add(each, self._prediction(each.token))
                yield from branches.new_levels()

    def free(self, nodes: Sequence[Node]) -> None:
        """Do nothing: the server's cache is its own."""

    def compact(self, tree: TokenTree) -> None:
        """Do nothing: the server's cache is its own."""

    def cache_usage(self, tree: TokenTree) -> tuple[int, int]:
        return 0, 0

    def _predictions(self, nodes: Sequence[Node]) -> dict[Node, Prediction]:
        """Return the predictions after these nodes, which must be without repetitions, in their order."""
        return {node: self._prediction(token) for node, token in self._next_tokens(nodes, self.most).items()}

    def _rows(self, nodes: Sequence[Node]) -> torch.Tensor:
        """Return the log-probabilities of all tokens, of shape (nodes, vocabulary); RowsUnavailable if it cannot be."""
        if not self.whole_rows:
            raise RowsUnavailable(self.address, self.most)
        if len(nodes) == 1:
            return self._row(nodes[0])[None]
        self._warm(nodes)
        return self._fetched_rows(nodes)

    def _row(self, node: Node) -> torch.Tensor:
        """Return the log-probabilities of all tokens after one node, of shape (vocabulary,), and keep them a while."""
        kept, path = self._kept_rows.setdefault(node.tree, {}), tuple(node.tree.token_ids(node))
        if (row := kept.pop(path, None)) is None:
            row = self._fetched_rows([node])[0]
        kept[path] = row
        for oldest in list(kept)[:-KEPT_ROWS]:
            kept.pop(oldest, None)
        return row

    def _fetched_rows(self, nodes: Sequence[Node]) -> torch.Tensor:
        return torch.stack([self._whole_row(token) for token in self._next_tokens(nodes, ALL).values()])

    def _among(self, node: Node, token_ids: Sequence[int], named: Sequence[int]) -> tuple[Prediction, list[float]]:
        """See `NodeScores.among`; the prediction is truncated. One request, and more for unlikely `named` tokens."""
        known = self._logprobs_among(node, token_ids)
        best = max(known, key=lambda each: known[each])
        missing = [token_id for token_id in named if token_id in token_ids and token_id not in known]
        found = dict(known)
        for start in range(0, len(missing), self.most - 1):
            # The odds of these and the likeliest token alone give their ratios to it.
            part = self._logprobs_among(node, [best, *missing[start : start + self.most - 1]])
            found |= {token_id: value - part[best] + known[best] for token_id, value in part.items()}
        return truncated_prediction(known, len(token_ids)), [found.get(token_id, -math.inf) for token_id in named]

    def _logprobs_among(self, node: Node, token_ids: Sequence[int]) -> dict[int, float]:
        """Return the log-probabilities after a node if the token is one of `token_ids`: those of the likeliest of them.

        There are as many as the server gives, at most `self.most`.
        """
        prompt, count = replace(_prompt(node, 1), allowed=tuple(token_ids)), min(self.most, len(token_ids))
        allowed = set(token_ids)
        with _growing(_Kept([node]), [node]):
            (answer,) = self._answers({prompt: node}, count)
        found = {each: value for each, value in answer.token.logprobs.items() if each in allowed}
        if len(found) < count:
            raise self._left_out()
        return found

    def _left_out(self) -> ServerFault:
        return ServerFault(f"{self.address} has left out tokens of its answer; try again.", retry=False)

    def _whole_row(self, token: ServerToken) -> torch.Tensor:
        if token.logprobs.keys() != set(range(self.vocabulary)):
            raise self._left_out()
        return torch.tensor([token.logprobs[token_id] for token_id in range(self.vocabulary)], dtype=torch.float32)

    def _next_tokens(self, nodes: Sequence[Node], logprobs: int) -> dict[Node, ServerToken]:
        """Return the token after each of these nodes, which must be without repetitions, in their order."""
        prompts = {_prompt(node, 1): node for node in nodes}
        with _growing(_Kept(nodes), nodes):
            found = {prompts[each.prompt]: each.token for each in self._answers(prompts, logprobs)}
        return {node: found[node] for node in nodes}

    def _answers(self, prompts: Mapping[Prompt, Node], logprobs: int) -> Generator[PromptToken, None, None]:
        """Yield the tokens after these prompts, which end at the given nodes, and count requests and tokens.

        The prompts of each person with the same allowed tokens are a request of their own; these are made at the same
        time.
        """
        by_key: dict[tuple[str, tuple[int, ...]], list[Prompt]] = {}
        for prompt, node in prompts.items():
            by_key.setdefault((node.tree.session_key, prompt.allowed), []).append(prompt)

        def sent(some: Sequence[Prompt], replica: Replica) -> None:
            self._count_pass({prompts[each].tree for each in some}, replica)

        gate, all_tokens = self.new_gate(), self.vocabulary or logprobs
        parts = [
            answers(
                self.replicas,
                own,
                logprobs=logprobs,
                least=all_tokens if logprobs == ALL else min(logprobs, all_tokens),
                key=key,
                most_tokens=self.most_tokens,
                on_request=sent,
                gate=gate,
            )
            for (key, _), own in by_key.items()
        ]
        try:
            with contextlib.closing(self.reader(parts)) as found:
                for each in found:
                    prompts[each.prompt].tree.work.tokens += 1
                    yield each
        finally:
            gate.abandon()

    def _count_pass(self, trees: Iterable[TokenTree], replica: Replica) -> None:
        """Count a request for these trees, and note which of them it moves away from a replica that is out."""
        with self._lock:
            self.passes += 1
            for tree in trees:
                tree.work.passes += 1
                before = self._replica_of.get(tree)
                self._replica_of[tree] = replica
                if before is not None and before is not replica and before.reason:
                    self.moves += 1
                    self._moved.add(tree)

    def _warm(self, nodes: Sequence[Node]) -> None:
        """Evaluate what several prompts of a tree have in common, unless that is short or the server knows it."""
        by_tree = group_by_tree(nodes).values()
        cold = [common for members in by_tree if (common := _cold_ancestor(members)) is not None]
        if cold:
            for node, prediction in self._predictions(cold).items():
                node.prediction = prediction

    def _prediction(self, token: ServerToken) -> Prediction:
        return truncated_prediction(token.logprobs, self.vocabulary, first=token.token_id)


class _Branches:
    """Greedy branches while their tokens come, and which of their levels are complete."""

    def __init__(self, parts: Sequence[RollOut]) -> None:
        ends: dict[Node, tuple[int, frozenset[int]]] = {}
        for nodes, depth, stop in parts:
            for node in unfinished(nodes, depth, stop):
                if node not in ends or depth > ends[node][0]:
                    ends[node] = depth, stop
        self.prompts = {_prompt(node, depth - node.depth, stop): node for node, (depth, stop) in ends.items()}
        """The prompt of each branch, with the node below which it grows."""
        self._tips = dict(self.prompts)
        self._grown: dict[Prompt, list[Node]] = {prompt: [] for prompt in self.prompts}
        self._levels = 0

    @property
    def frontier(self) -> Iterable[Node]:
        """See `TreeGrower.frontier`."""
        return self._tips.values()

    def add(self, answer: PromptToken, prediction: Prediction) -> None:
        """Add the next node to a branch, from the prediction at its tip."""
        tip = self._tips[answer.prompt]
        tip.prediction = prediction
        tip.tree.mark_visible(tip)
        child = self._tips[answer.prompt] = tip.tree.expand(tip, best_token(tip))
        self._grown[answer.prompt].append(child)

    def new_levels(self) -> Iterator[list[Node]]:
        """Yield the new nodes of each level that is complete: all unfinished branches have reached it."""
        growing = [len(nodes) for prompt, nodes in self._grown.items() if prompt.count]
        least = min(growing, default=max(map(len, self._grown.values())))
        while self._levels < least:
            yield [nodes[self._levels] for nodes in self._grown.values() if len(nodes) > self._levels]
            self._levels += 1


def _prompt(node: Node, count: int, stop: frozenset[int] = frozenset()) -> Prompt:
    return Prompt(node.tree.token_ids(node), count, stop)


@dataclass(eq=False)
class _Kept:
    """A `TreeGrower` of nodes whose predictions have been requested."""

    frontier: Sequence[Node]


@contextmanager
def _growing(grower: TreeGrower, nodes: Iterable[Node]) -> Iterator[None]:
    """Context manager: let no other job remove a grower's nodes from the trees of `nodes`."""
    trees = {node.tree for node in nodes}
    for tree in trees:
        tree.growers.add(grower)
    try:
        yield
    finally:
        for tree in trees:
            tree.growers.discard(grower)


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
