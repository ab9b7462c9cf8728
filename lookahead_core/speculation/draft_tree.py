"""The draft tree: guesses below the last node of a continuation, with a record of who made them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from lookahead_core.speculation.drafters.protocol import Guess
from lookahead_core.tree import Node


@dataclass(eq=False, slots=True)
class DraftNode:
    """A node of a draft: a guessed token, or as the root the continuation's last token.

    It also holds what the drafters guess after it, and which of these guesses are drafted.
    """

    node: Node
    """Its node in the token tree."""
    odds: float
    """The estimated probability that the whole path down to it is accepted; 1 for the root."""
    drafters: tuple[str, ...]
    """The names of the drafters that guessed it; empty for the root."""
    states: list[Any]
    """The state of each drafter at this node; None for a drafter without guesses here."""
    depth: int
    """Its depth below the root of the draft, which has depth 0."""
    guesses: list[tuple[str, Guess]] = field(default_factory=list)
    """All guesses of what follows it, with the drafter's name, whether they became part of the draft or not."""
    drafted: list[tuple[int, torch.Tensor | None]] = field(default_factory=list)
    """The tokens drafted right below it, in order, with the probabilities that each was sampled from (or None).

    There may be more than children: an end token gets no node, and a token that is drafted twice gets one.
    """
    children: list[DraftNode] = field(default_factory=list)
    """The draft nodes right below it, in the order in which they were added."""


class DraftTree:
    """The draft of one pass: guessed tokens as a tree below the last node of a continuation, which is the root."""

    def __init__(self, root: DraftNode) -> None:
        self.root = root
        self.by_node: dict[Node, DraftNode] = {root.node: root}
        """All draft nodes, by their node in the token tree; the root first."""
        self.created: list[Node] = []
        """The nodes of the token tree that were created for this draft, also if removed from it again."""
        self.reused: list[Node] = []
        """The nodes without a prediction that the token tree had before and this draft used, also if removed again."""

    def add(self, parent: DraftNode, child: DraftNode, *, created: bool) -> None:
        """Add `child` below `parent`, after its other children; its node must not be in the draft yet.

        `created` says whether the node is new in the token tree.
        """
        self.by_node[child.node] = child
        parent.children.append(child)
        if created:
            self.created.append(child.node)
        elif child.node.prediction is None:
            self.reused.append(child.node)

    def remove(self, parent: DraftNode, child: DraftNode) -> None:
        """Remove `child`, which must have no children, from below `parent` in the draft.

        Its node stays in the token tree, and in the lists `created` or `reused`.
        """
        parent.children.remove(child)
        del self.by_node[child.node]

    @property
    def nodes(self) -> list[Node]:
        """A new list of the token tree's nodes of the root and of all guesses: the root's first, then depth first.

        Children come in the order in which they were added, so an accepted path tends to lie in adjacent cache slots.
        """
        order, waiting = [], [self.root]
        while waiting:
            draft_node = waiting.pop()
            order.append(draft_node.node)
            waiting.extend(reversed(draft_node.children))
        return order
