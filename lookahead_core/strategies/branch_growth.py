"""The leaves of branches and the operations on them that all lookahead modes share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from lookahead_core.engines.engine import Engine
from lookahead_core.engines.prediction_rows import LogitRows
from lookahead_core.prediction import Prediction
from lookahead_core.strategies.continuation import Continuation
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.sampling import exclude_tokens
from lookahead_core.tree import Node

CompletedSize = Callable[[Sequence[int], bytes], int | None]
"""A function that says where a path completes its unit of text (a word, clause, sentence or line).

It takes the path's token ids and the bytes of its first token that the person typed already. It returns how many tokens
reach the end of the unit, or None if the path does not reach it.
"""


@dataclass(frozen=True, slots=True)
class GrowthContext:
    """What the document knows about the text, which the strategies need and do not see."""

    unread_tokens: int = 0
    """Number of tokens at the start of the text that the model does not read. A node's depth plus this number is its
    position in the text."""
    completed_size: CompletedSize | None = None
    """None where branches end by number of tokens alone."""
    drafted_continuation: Callable[[Node, int], Continuation] | None = None
    """Makes the greedy continuation after a node, of at most this many tokens, with drafts; None to draft nothing."""


@dataclass(frozen=True, slots=True)
class BranchLeaf:
    """The last node of a path below a base node, with the path's tokens and their log-probabilities."""

    node: Node
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    predictions: tuple[Prediction, ...] = ()
    """The prediction that each log-probability comes from: without banned tokens, and conditioned on `typed`."""
    typed: bytes = b""
    """The text of the last typed token, if the path's first token replaces it; else empty."""
    complete: bool = False
    """Whether the path has reached the end of its word, clause, sentence or line, and stops growing."""
    tokens_past_end: tuple[int, ...] = ()
    """Tokens after the end of a complete path that had to be known to find that end."""

    @property
    def healed(self) -> bool:
        """Whether the path's first token replaces the last typed token."""
        return bool(self.typed)

    @property
    def logprob(self) -> float:
        """The log-probability of the whole path: the sum over its tokens."""
        return math.fsum(self.logprobs)

    def extended(self, token_id: int, logprob: float, prediction: Prediction) -> BranchLeaf:
        """Return the leaf one token further; `prediction` is where its log-probability comes from."""
        return BranchLeaf(
            self.node.tree.expand(self.node, token_id),
            (*self.token_ids, token_id),
            (*self.logprobs, logprob),
            (*self.predictions, prediction),
            typed=self.typed,
        )

    def ended(self, end_token_ids: frozenset[int]) -> bool:
        """Whether the path's last token is an end token."""
        return bool(self.token_ids) and self.token_ids[-1] in end_token_ids

    def completed(self, size: int) -> BranchLeaf:
        """Return the complete leaf that has only the first `size` tokens of this path."""
        node = self.node
        for _ in self.token_ids[size:]:
            assert node.parent is not None
            node = node.parent
        return replace(
            self,
            node=node,
            token_ids=self.token_ids[:size],
            logprobs=self.logprobs[:size],
            predictions=self.predictions[:size],
            complete=True,
            tokens_past_end=self.token_ids[size:],
        )


@dataclass(frozen=True, slots=True)
class BranchStart:
    """The predictions at the node where branches begin, without banned tokens."""

    prediction: Prediction
    """Of the first token; conditioned on the typed text if the last typed token is re-opened."""
    typed_logprob: float = 0.0
    """The log-probability of the typed token in `prediction`, if that token is re-opened; else 0."""
    prediction_after_typed: Prediction | None = None
    """Of the token after the typed one, if that token is re-opened; else None."""


@dataclass(frozen=True, slots=True)
class GrowthStep:
    """The state of a lookahead after a forward pass."""

    leaves: tuple[BranchLeaf, ...]
    tokens_to_read: int = 0
    """How many tokens of the prompt still need prefill."""
    start: BranchStart | None = None
    """None until the node where branches begin is evaluated."""


class Growth:
    """One lookahead: extends leaves, and evaluates nodes for all leaves in one forward pass."""

    def __init__(
        self, engine: Engine, options: LookaheadOptions, end_token_ids: frozenset[int], context: GrowthContext
    ) -> None:
        self.engine = engine
        self.options = options
        self.end_token_ids = end_token_ids
        self.context = context
        self.banned = frozenset(options.banned)
        self.start: BranchStart | None = None
        """The predictions where branches begin; None until they are evaluated."""

    @property
    def is_greedy_to_depth(self) -> bool:
        """Whether each leaf follows the model's most probable token down to the full depth."""
        return not self.banned and self.context.completed_size is None

    def can_grow(self, leaf: BranchLeaf) -> bool:
        """Whether a leaf is neither complete, nor ended, nor at full depth."""
        return not leaf.complete and len(leaf.token_ids) < self.options.depth and not leaf.ended(self.end_token_ids)

    def extended(self, leaf: BranchLeaf, token_id: int, logprob: float, prediction: Prediction) -> BranchLeaf:
        """Return the leaf one token further, or shortened to the end of its unit of text if the token shows that end.

        `prediction` is where the log-probability comes from.
        """
        grown = leaf.extended(token_id, logprob, prediction)
        if self.context.completed_size is None or token_id in self.end_token_ids:
            return grown
        size = self.context.completed_size(grown.token_ids, grown.typed)
        return grown if size is None else grown.completed(size)

    def evaluate(self, leaves: Sequence[BranchLeaf]) -> bool:
        """Make the predictions after these leaves known; return whether that took a forward pass."""
        nodes = list(dict.fromkeys(leaf.node for leaf in leaves if self.prediction_after(leaf.node) is None))
        if nodes:
            for node, row in zip(nodes, self.engine.evaluate(nodes), strict=True):
                self.note_without_banned(node, row)
        return bool(nodes)

    def note_without_banned(self, node: Node, row: torch.Tensor) -> torch.Tensor:
        """Note the prediction after a node without banned tokens; return the row renormalised without them."""
        if not self.banned:
            return row
        allowed = exclude_tokens(torch.zeros_like(row), self.banned).isfinite().nonzero()[:, 0]
        renormalised, prediction = renormalised_among(row, allowed)
        node.tree.memoize(node, self.banned, prediction)
        return renormalised

    def prediction_after(self, node: Node) -> Prediction | None:
        """Return the prediction after a node, without banned tokens; None if it needs a forward pass."""
        return (node.memo or {}).get(self.banned) if self.banned else node.prediction

    def children(self, leaf: BranchLeaf, count: int, prediction: Prediction | None = None) -> list[BranchLeaf]:
        """Return the leaf extended by each of the `count` most probable tokens, without those of probability 0.

        The tokens come from `prediction`, or from the known prediction after the leaf if it is None.
        """
        prediction = prediction or self.prediction_after(leaf.node)
        assert prediction is not None
        pairs = zip(prediction.token_ids[:count], prediction.logprobs, strict=False)
        return [
            self.extended(leaf, token_id, logprob, prediction) for token_id, logprob in pairs if logprob > -math.inf
        ]

    def follow_known(self, leaf: BranchLeaf) -> BranchLeaf:
        """Return the leaf extended by the most probable tokens as far as predictions are known, without a pass."""
        while self.can_grow(leaf) and self.prediction_after(leaf.node) is not None:
            children = self.children(leaf, 1)
            if not children:
                break
            leaf = children[0]
        return leaf

    def distinct(self, leaves: Sequence[BranchLeaf]) -> list[BranchLeaf]:
        """Return the leaves without duplicates: shortening to the end of a word can make two paths equal."""
        if self.context.completed_size is None:
            return list(leaves)
        by_path: dict[tuple[int, ...], BranchLeaf] = {}
        for leaf in leaves:
            by_path.setdefault(leaf.token_ids, leaf)
        return list(by_path.values())


def renormalised_among(row: torch.Tensor, token_ids: torch.Tensor) -> tuple[torch.Tensor, Prediction]:
    """Renormalise a row of log-probabilities over these tokens; return the new row and its prediction.

    All other tokens have log-probability -inf in the new row. The prediction is empty if the model gives all of these
    tokens probability 0.
    """
    possible = token_ids[row[token_ids].isfinite()]
    renormalised = torch.full_like(row, -math.inf)
    if not len(possible):
        return renormalised, Prediction((), (), 0.0)
    logprobs = row[possible].log_softmax(0)
    prediction = LogitRows(logprobs[None]).predictions()[0]
    # The model's logits are over all tokens, so there is no log total for a subset.
    prediction = replace(prediction, token_ids=tuple(possible[list(prediction.token_ids)].tolist()), log_total=None)
    return renormalised.index_copy(0, possible, logprobs), prediction
