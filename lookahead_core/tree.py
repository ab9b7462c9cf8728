"""The token tree: what stands, what might follow, and what the model said after each token.

Standard library only. A node is a token in the context of all tokens above it, so two equal tokens with different
pasts are different nodes, and a node's prediction never goes stale.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

TAIL_BIN = 0.125
"""Width, in nats, of a bin of the tail's histogram: shares re-heated to any temperature up to 2 stay within 1 %."""

MAX_MEMO = 256
"""How many notes a node keeps: twenty streams drawn again a dozen times."""

NEVER = -1
"""Before the first view."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says after a node, small enough to keep for every node.

    `tail[i]` counts the tokens not kept that lie between `i` and `i + 1` bins below the most likely one.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    entropy: float
    tail: tuple[int, ...] = ()
    row: object | None = field(default=None, repr=False, compare=False)
    """All log-probabilities, by token id: only where they were asked for."""
    log_total: float | None = field(default=None, repr=False, compare=False)
    """Added to a log-probability it gives the score that the model itself gave; None where the engine does not know."""

    def reheated(self, temperature: float) -> tuple[tuple[float, ...], float]:
        """The kept tokens' probabilities at another temperature, and the probability of all the others together."""
        if not temperature > 0:
            raise ValueError(f"temperature is {temperature!r}, and must be more than 0.")
        weights = [math.exp((value - self.logprobs[0]) / temperature) for value in self.logprobs]
        rest = self._tail_weight(temperature) * self._tail_scale()
        total = sum(weights) + rest
        return tuple(weight / total for weight in weights), rest / total

    def _tail_weight(self, temperature: float) -> float:
        """The tail's weight, where the most likely token weighs 1 and each bin is evenly filled."""
        spread = TAIL_BIN / temperature / 2
        fill = math.sinh(spread) / spread
        return fill * sum(
            count * math.exp(-(index + 0.5) * TAIL_BIN / temperature) for index, count in enumerate(self.tail) if count
        )

    def _tail_scale(self) -> float:
        """What makes the tail's weight exact at temperature 1, where it is known: what the kept tokens leave."""
        left = 1 - math.fsum(map(math.exp, self.logprobs))
        if left < 1e-3:
            return 1.0
        return left / (self._tail_weight(1.0) * math.exp(self.logprobs[0]))


@dataclass(slots=True)
class TreeWork:
    """What a tree has cost so far: forward passes, and tokens that went through them."""

    passes: int = 0
    tokens: int = 0


class Node:
    """A token in the tree. Read it freely; only its tree's methods change it, and an engine sets its prediction."""

    __slots__ = (
        "__weakref__",
        "children",
        "depth",
        "first_view",
        "last_view",
        "memo",
        "parent",
        "prediction",
        "token_id",
        "tree",
    )  # fmt: skip

    def __init__(self, tree: TokenTree, parent: Node | None, token_id: int) -> None:
        self.tree = tree
        self.parent = parent
        self.token_id = token_id
        self.depth: int = parent.depth + 1 if parent else 0
        self.children: dict[int, Node] = {}
        self.prediction: Prediction | None = None
        self.memo: dict[Hashable, Any] | None = None
        """What was read off the full row and would cost a pass to read again; gone when the node is."""
        self.first_view = tree.view
        """The view that made it."""
        self.last_view = NEVER
        """The view that showed it last."""

    def __repr__(self) -> str:
        return f"Node(token_id={self.token_id}, depth={self.depth})"


class TreeGrower(Protocol):
    """Whatever grows in a tree step by step, and must find what it has grown the next time."""

    @property
    def frontier(self) -> Iterable[Node]:
        """The ends that it goes on from; none once it is over."""
        ...


class TokenTree:
    """All that anybody has looked at, below one root. The root itself is no token; paths begin under it."""

    def __init__(self) -> None:
        self.view = 0
        """Counts views; a node's `seen` is the last view that showed it."""
        self.root = Node(self, None, -1)
        self.mark_visible(self.root)
        self.head = self.root
        self.size = 0
        self.work = TreeWork()
        self.growers: weakref.WeakSet[TreeGrower] = weakref.WeakSet()
        """Who is growing: nothing above their ends is forgotten."""
        self.cache: Any = None
        """Whatever an engine keeps beside this tree; it lives and dies with it."""
        self._row: tuple[weakref.ref[Node], Any] | None = None

    def expand(self, parent: Node, token_id: int) -> Node:
        """The child of `parent` for this token, made if it is not there yet."""
        child = parent.children.get(token_id)
        if child is None:
            child = parent.children[token_id] = Node(self, parent, token_id)
            self.size += 1
        self.mark_visible(child)
        return child

    def descend(self, start: Node, token_ids: Iterable[int]) -> Node:
        """The end of the path of these tokens below `start`; what is missing on it is made."""
        node = start
        for token_id in token_ids:
            node = self.expand(node, token_id)
        return node

    def memoize(self, node: Node, key: Hashable, value: Any) -> None:
        """Keep something that was read off a node's full row; the oldest goes where there are too many."""
        if node.memo is None:
            node.memo = {}
        node.memo[key] = value
        if len(node.memo) > MAX_MEMO:
            del node.memo[next(iter(node.memo))]

    def keep_row(self, node: Node, row: Any) -> None:
        """Keep the full row of log-probabilities after a node; a tree keeps one row, since rows are large."""
        self._row = weakref.ref(node), row

    def row_of(self, node: Node) -> Any | None:
        """The row after a node, where it is the one that is kept."""
        return self._row[1] if self._row is not None and self._row[0]() is node else None

    def path(self, node: Node, below: Node | None = None) -> list[Node]:
        """The nodes from under the root (or under `below`) down to `node`."""
        nodes: list[Node] = []
        top = below or self.root
        while node is not top:
            nodes.append(node)
            if node.parent is None:
                raise ValueError("The node does not hang below the one given.")
            node = node.parent
        nodes.reverse()
        return nodes

    def token_ids(self, node: Node) -> list[int]:
        """The tokens of the path to `node`."""
        return [each.token_id for each in self.path(node)]

    def move_head(self, node: Node) -> None:
        """Make the path to `node` the trunk: down to accept, up to rewind, anywhere after an edit."""
        self.head = node

    def new_view(self) -> None:
        """Begin another view: what it does not show is older than what it shows."""
        self.view += 1
        self.mark_visible(self.head)

    def mark_visible(self, node: Node) -> None:
        """Note that the path to `node` can be seen in the current view."""
        current: Node | None = node
        while current is not None and current.last_view != self.view:
            current.last_view = self.view
            current = current.parent

    def nodes(self) -> Iterator[Node]:
        """Every node but the root, parents first."""
        return self._below(self.root)

    @staticmethod
    def _below(top: Node) -> Iterator[Node]:
        waiting = list(top.children.values())
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children.values())

    def _kept(self) -> set[Node]:
        """What must not be forgotten: the trunk, and the paths to where somebody is growing."""
        ends = [self.head, *(end for grower in self.growers for end in grower.frontier)]
        return {node for end in ends for node in self.path(end)}

    def prune_new(self, top: Node) -> list[Node]:
        """Forget what the current view has made below a node, and nobody grows from."""
        kept = self._kept()
        below = list(self._below(top))
        gone = []
        # From the bottom up: what an older view has grown further down keeps all that it hangs below.
        for node in reversed(below):
            if node.first_view == self.view and node not in kept and not node.children:
                assert node.parent is not None
                del node.parent.children[node.token_id]
                gone.append(node)
        self.size -= len(gone)
        return gone

    def prune_unevaluated(self, nodes: Iterable[Node]) -> list[Node]:
        """Forget those of these nodes that nothing was predicted after, nothing hangs below and nobody grows from."""
        ends = {self.head, *(end for grower in self.growers for end in grower.frontier)}
        gone = []
        for node in sorted(nodes, key=lambda node: -node.depth):
            if node not in ends and node.prediction is None and not node.children:
                assert node.parent is not None
                del node.parent.children[node.token_id]
                gone.append(node)
        self.size -= len(gone)
        return gone

    def prune(self, count: int | None = None) -> list[Node]:
        """Forget what nobody can see, longest unseen first: all of it, or `count` nodes if there are as many."""
        kept = self._kept()
        hidden = [node for node in self.nodes() if node.last_view < self.view and node not in kept]
        # A parent is seen whenever its child is, so this order never removes a parent before its children.
        hidden.sort(key=lambda node: (node.last_view, -node.depth))
        gone = hidden if count is None else hidden[:count]
        for node in gone:
            assert node.parent is not None
            del node.parent.children[node.token_id]
        self.size -= len(gone)
        return gone

    def check(self) -> None:
        """Raise AssertionError if anything that must always hold does not."""
        count = 0
        for node in self.nodes():
            count += 1
            assert node.parent is not None
            assert node.parent.children.get(node.token_id) is node
            assert node.depth == node.parent.depth + 1
            assert node.tree is self
            assert node.parent.last_view >= node.last_view, "a parent is seen whenever its child is"
        assert count == self.size, f"{count} nodes, {self.size} counted"
        assert self.path(self.head) is not None
