"""The predictions and memos of a tree, in a form that can be sent to another process and inserted into a tree there."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from lookahead_core.prediction import Prediction
from lookahead_core.tree import Node, TokenTree, TreeWork


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """What was learned about nodes of a tree. Nodes have numbers: those of the trunk their depth, others follow."""

    key: str
    """The name of the tree."""
    trunk: int
    """The hash of the trunk's token ids: the facts fit only a tree with an equal trunk."""
    nodes: tuple[tuple[int, int], ...]
    """Nodes with their first facts, parents first: the parent's number and the token id. Each has the next number."""
    predictions: tuple[tuple[int, Prediction], ...]
    """Predictions by the node's number."""
    memos: tuple[tuple[int, Hashable, Any], ...]
    """Memo entries: the node's number, the key and the value."""
    passes: int
    """Number of forward passes for this tree since the last facts."""
    tokens: int
    """Number of tokens computed in them."""
    usage: tuple[int, int]
    """The slots and bytes of the worker's cache for this tree."""


class FactsReader:
    """Reads the facts of a tree as they are learned: `read` returns those that it has not returned before."""

    def __init__(self, key: str, tree: TokenTree, before: TreeWork | None = None) -> None:
        """Begin at the parent of the tree's head, with which token healing begins: nodes above it are not read.

        The first facts count the passes and tokens since the tree's work was `before`; None means since now.
        """
        self._key = key
        self._tree = tree
        self._trunk = hash(tuple(tree.token_ids(tree.head)))
        self._top = tree.head.parent or tree.head
        self._numbers = {node: node.depth for node in (tree.root, *tree.path(tree.head))}
        self._predicted: set[Node] = set()
        self._memoized: dict[Node, set[Hashable]] = {}
        self._work = dataclasses.replace(before or tree.work)

    def read(self, usage: tuple[int, int] = (0, 0)) -> TreeFacts:
        """Return the new facts of the nodes that the current view shows. `usage` becomes the field of that name."""
        nodes: list[tuple[int, int]] = []
        predictions: list[tuple[int, Prediction]] = []
        memos: list[tuple[int, Hashable, Any]] = []
        for node in self._visible():
            if node.prediction is not None and node not in self._predicted:
                self._predicted.add(node)
                predictions.append((self._number(node, nodes), node.prediction))
            for key, value in (node.memo or {}).items():
                known = self._memoized.setdefault(node, set())
                if key not in known:
                    known.add(key)
                    memos.append((self._number(node, nodes), key, value))
        work, before = dataclasses.replace(self._tree.work), self._work
        self._work = work
        passes, tokens = work.passes - before.passes, work.tokens - before.tokens
        return TreeFacts(self._key, self._trunk, tuple(nodes), tuple(predictions), tuple(memos), passes, tokens, usage)

    def _visible(self) -> Iterator[Node]:
        """Yield the top node, and all nodes below it that the current view shows, each after its parent."""
        waiting = [self._top]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(child for child in node.children.values() if child.last_view == self._tree.view)

    def _number(self, node: Node, nodes: list[tuple[int, int]]) -> int:
        """Return the node's number. If it has none yet, it and its unnumbered ancestors are added to `nodes`."""
        if node not in self._numbers:
            assert node.parent is not None
            nodes.append((self._number(node.parent, nodes), node.token_id))
            self._numbers[node] = len(self._numbers)
        return self._numbers[node]


class FactsWriter:
    """Inserts the facts of a tree, as a `FactsReader` of an equal tree in another process returns them."""

    def __init__(self, tree: TokenTree) -> None:
        self._tree = tree
        self._trunk = hash(tuple(tree.token_ids(tree.head)))
        self._view = tree.view
        self._nodes = [tree.root, *tree.path(tree.head)]
        self._trunk_size = len(self._nodes)

    def restart(self) -> None:
        """Forget the numbers of nodes below the trunk: a new reader's facts follow. What was inserted stays."""
        del self._nodes[self._trunk_size :]

    def write(self, facts: TreeFacts) -> bool:
        """Insert facts and return whether there were any.

        Nothing happens if another view of the tree has begun meanwhile, or if they are those of another text: its trunk
        must be equal to that of the reader's tree when the reader was made.
        """
        if self._tree.view != self._view or facts.trunk != self._trunk:
            return False
        for parent, token_id in facts.nodes:
            self._nodes.append(self._tree.expand(self._nodes[parent], token_id))
        for number, prediction in facts.predictions:
            self._nodes[number].prediction = prediction
        for number, key, value in facts.memos:
            self._tree.memoize(self._nodes[number], key, value)
        self._tree.work.passes += facts.passes
        self._tree.work.tokens += facts.tokens
        return bool(facts.predictions or facts.memos)
