"""The draft tree: guesses below the last node of a continuation, with a record of who made them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from lookahead_core.speculation.drafters.protocol import Guess
from lookahead_core.tree import Node


@dataclass(eq=False, slots=True)
class DraftNode:
    """A guessed token of a draft: its node in the token tree, its probability, and the drafters' states after it."""

    node: Node
    odds: float
    """The probability that the whole path down to it is accepted."""
    drafters: tuple[str, ...]
    """The names of the drafters that guessed it."""
    states: list[Any]
    """The state of each drafter at this node; None for a drafter without guesses here."""
    depth: int
    """Its depth below the root of the draft."""
    guesses: list[tuple[str, Guess]] = field(default_factory=list)
    """All guesses of what follows it, with the drafter's name, whether they became part of the draft or not."""
    drafted: list[tuple[int, torch.Tensor | None]] = field(default_factory=list)
    """The tokens drafted below it, in order, with the probabilities that each was sampled from."""
    children: list[DraftNode] = field(default_factory=list)


class DraftTree:
    """The draft of one pass: guessed tokens as a tree below the last node of a continuation."""

    def __init__(self, root: DraftNode) -> None:
        self.root = root
        self.by_node: dict[Node, DraftNode] = {root.node: root}
        self.created: list[Node] = []
        """The nodes of the token tree that were created for this draft."""
        self.reused: list[Node] = []
        """The pending nodes of this draft that the token tree had already."""

    def add(self, parent: DraftNode, child: DraftNode, *, created: bool) -> None:
        """Add a draft node; `created` says whether its node is new in the token tree."""
        self.by_node[child.node] = child
        parent.children.append(child)
        if created:
            self.created.append(child.node)
        elif child.node.prediction is None:
            self.reused.append(child.node)

    def remove(self, parent: DraftNode, child: DraftNode) -> None:
        """Remove a draft node without children. Its node stays in the token tree until the pass is over."""
        parent.children.remove(child)
        del self.by_node[child.node]

    @property
    def nodes(self) -> list[Node]:
        """All nodes, depth first, in the order in which children were added.

        An accepted path therefore tends to lie in adjacent cache slots.
        """
        order, waiting = [], [self.root]
        while waiting:
            draft_node = waiting.pop()
            order.append(draft_node.node)
            waiting.extend(reversed(draft_node.children))
        return order
