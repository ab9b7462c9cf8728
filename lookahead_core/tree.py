"""The token tree: the text's path, the branches below it, and the model's prediction after each node.

A node is a token in the context of all its ancestors. Two equal tokens with different ancestors are different nodes, so
a node's prediction never becomes invalid. This module imports the standard library and `Prediction` only.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from lookahead_core.prediction import Prediction

MAX_MEMO = 256
"""Entries in a node's memo: enough for twenty streams that are drawn again a dozen times."""

NEVER = -1
"""The `last_view` of a node that no view has shown yet."""


def new_session_key() -> str:
    """Return a random session key: 256 bits as 43 letters, digits, hyphens and underscores."""
    return secrets.token_urlsafe(32)


@dataclass(slots=True)
class TreeWork:
    """The cost of a tree so far: forward passes, and tokens computed in them."""

    passes: int = 0
    tokens: int = 0


class Node:
    """A token in a tree, or the tree's root, which is no token and has depth 0.

    Only the tree's methods make and change nodes, except that engines set `prediction`.
    """

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
        """Results computed from the full row of log-probabilities, which is not kept; see `TokenTree.memoize`."""
        self.first_view = tree.view
        """The view in which the node was created."""
        self.last_view = NEVER
        """The last view that showed the node."""

    def __repr__(self) -> str:
        return f"Node(token_id={self.token_id}, depth={self.depth})"


class TreeGrower(Protocol):
    """An object that grows nodes step by step, such as a stream, and needs them again at its next step.

    It adds itself to `TokenTree.growers`, so that its nodes are not pruned meanwhile.
    """

    @property
    def frontier(self) -> Iterable[Node]:
        """The nodes from which it continues; none when it has ended. They and their ancestors are not pruned."""
        ...


class TokenTree:
    """All nodes below one root. The root is no token: the first tokens of all paths are its children.

    The head is the node at the end of the text, and the trunk is the path to it. A view is the nodes that one result
    shows, such as a lookahead's. Nodes outside of the current view are hidden and may be pruned, unless they are on the
    trunk or in use by a grower. Pruning does not free the nodes' cache slots: `Engine.free` does.
    """

    def __init__(self, session_key: str = "") -> None:
        """`session_key` is shared by the trees of one person; empty for a new one."""
        self.session_key = session_key or new_session_key()
        """A random secret that stands for the person whose texts these are; it must be in no log, page or export."""
        self.view = 0
        """The number of the current view."""
        self.root = Node(self, None, -1)
        self.mark_visible(self.root)
        self.head = self.root
        """The end of the text; the path to it is the trunk."""
        self.size = 0
        """The number of nodes, without the root."""
        self.work = TreeWork()
        self.growers: weakref.WeakSet[TreeGrower] = weakref.WeakSet()
        """Active growers; they are held weakly."""
        self.cache: Any = None
        """The engine's cache for this tree."""
        self._row: tuple[weakref.ref[Node], Any] | None = None

    def expand(self, parent: Node, token_id: int) -> Node:
        """Return the child of `parent` for this token, created if it does not exist; it becomes visible."""
        child = parent.children.get(token_id)
        if child is None:
            child = parent.children[token_id] = Node(self, parent, token_id)
            self.size += 1
        self.mark_visible(child)
        return child

    def descend(self, start: Node, token_ids: Iterable[int]) -> Node:
        """Return the node at the end of a path of tokens below `start`; missing nodes are created, all visible.

        `start` itself for no tokens.
        """
        node = start
        for token_id in token_ids:
            node = self.expand(node, token_id)
        return node

    def memoize(self, node: Node, key: Hashable, value: Any) -> None:
        """Store a value under `key` in the dict `node.memo`; beyond `MAX_MEMO` entries the oldest one is dropped."""
        if node.memo is None:
            node.memo = {}
        node.memo[key] = value
        if len(node.memo) > MAX_MEMO:
            del node.memo[next(iter(node.memo))]

    def keep_row(self, node: Node, row: Any) -> None:
        """Keep the full row of log-probabilities after a node, for `row_of`; the row kept before is dropped."""
        self._row = weakref.ref(node), row

    def row_of(self, node: Node) -> Any | None:
        """Return the row of log-probabilities after `node`; None unless `keep_row` was last called for this node."""
        return self._row[1] if self._row is not None and self._row[0]() is node else None

    def path(self, node: Node, below: Node | None = None) -> list[Node]:
        """Return the nodes on the path from the root, or from `below`, to `node`: the first excluded, `node` included.

        Empty if the two are the same node. Raises ValueError if `node` is not below `below`.
        """
        nodes: list[Node] = []
        top = below or self.root
        while node is not top:
            nodes.append(node)
            if node.parent is None:
                raise ValueError("The node is not below the given ancestor.")
            node = node.parent
        nodes.reverse()
        return nodes

    def token_ids(self, node: Node) -> list[int]:
        """Return the token ids of the path from below the root down to `node`."""
        return [each.token_id for each in self.path(node)]

    def move_head(self, node: Node) -> None:
        """Make the path to `node` the trunk: moves down to accept, up to rewind, anywhere after an edit."""
        self.head = node

    def new_view(self) -> None:
        """Begin a view, in which only the trunk is visible at first: all other nodes are hidden, none is removed."""
        self.view += 1
        self.mark_visible(self.head)

    def mark_visible(self, node: Node) -> None:
        """Mark `node` and its ancestors as shown by the current view: `prune` keeps them until the next view."""
        current: Node | None = node
        while current is not None and current.last_view != self.view:
            current.last_view = self.view
            current = current.parent

    def nodes(self) -> Iterator[Node]:
        """Yield all nodes except the root, each after its parent; siblings are in no particular order."""
        return self._below(self.root)

    @staticmethod
    def _below(top: Node) -> Iterator[Node]:
        waiting = list(top.children.values())
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children.values())

    def _path_ends(self) -> list[Node]:
        """Return the end nodes of all paths that must not be pruned: the head, and the nodes in growers' frontiers.

        A node may come several times, and the root may be among them. A grower may have nodes in several trees; only
        those in this tree are returned.
        """
        return [self.head, *(node for grower in self.growers for node in grower.frontier if node.tree is self)]

    def protected(self) -> set[Node]:
        """Return the nodes that must not be pruned: the trunk and the paths to growers' frontiers, without the root."""
        return {node for end in self._path_ends() for node in self.path(end)}

    def prune_new(self, top: Node) -> list[Node]:
        """Remove the nodes below `top` that were created in the current view, and return them, children first.

        `top` itself, the trunk, paths to growers' frontiers, and nodes with a child that stays are kept.
        """
        protected = self.protected()
        below = list(self._below(top))
        removed = []
        # From the bottom up: nodes of an older view keep all of their ancestors.
        for node in reversed(below):
            if node.first_view == self.view and node not in protected and not node.children:
                assert node.parent is not None
                del node.parent.children[node.token_id]
                removed.append(node)
        self.size -= len(removed)
        return removed

    def prune_unevaluated(self, nodes: Iterable[Node]) -> list[Node]:
        """Remove those of `nodes` that have no prediction and no children that stay; return them, deepest first.

        The head and the frontiers of growers are kept. `nodes` must hold each node once, and not the root.
        """
        ends = set(self._path_ends())
        removed = []
        for node in sorted(nodes, key=lambda node: -node.depth):
            if node not in ends and node.prediction is None and not node.children:
                assert node.parent is not None
                del node.parent.children[node.token_id]
                removed.append(node)
        self.size -= len(removed)
        return removed

    def prune(self, count: int | None = None) -> list[Node]:
        """Remove hidden nodes, least recently visible first, and return them in this order: all, or at most `count`.

        The trunk and the paths to growers' frontiers are kept. A node is removed after its children.
        """
        protected = self.protected()
        hidden = [node for node in self.nodes() if node.last_view < self.view and node not in protected]
        # A parent is visible whenever its child is, so this order never removes a parent before its children.
        hidden.sort(key=lambda node: (node.last_view, -node.depth))
        removed = hidden if count is None else hidden[:count]
        for node in removed:
            assert node.parent is not None
            del node.parent.children[node.token_id]
        self.size -= len(removed)
        return removed

    def check(self) -> None:
        """Raise AssertionError if an invariant of the tree is violated; for tests."""
        count = 0
        for node in self.nodes():
            count += 1
            assert node.parent is not None
            assert node.parent.children.get(node.token_id) is node
            assert node.depth == node.parent.depth + 1
            assert node.tree is self
            assert node.parent.last_view >= node.last_view, "a parent is visible whenever its child is"
        assert count == self.size, f"{count} nodes, but size is {self.size}"
        assert self.path(self.head) is not None
