"""The leaves of branches and the operations on them that all lookahead modes share."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import torch

from lookahead_core.engines.engine import Engine, predict
from lookahead_core.engines.prediction_rows import renormalised_among
from lookahead_core.prediction import Prediction
from lookahead_core.strategies.continuation import Continuation
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.next_word_odds import NextWordOdds
from lookahead_core.strategies.repetition import size_before_repetition
from lookahead_core.strategies.sampling import exclude_tokens
from lookahead_core.strategies.word_odds import WordOdds
from lookahead_core.strategies.word_tokens import WordTokens
from lookahead_core.text.passage import TextEnd
from lookahead_core.tree import Node

CompletedSize = Callable[[Sequence[int], bytes], int | None]
"""A function that says where a path completes its unit of text (a word, clause, sentence or line).

It takes the path's token ids, and the bytes at the start of its first token that are in the text already (empty without
token healing). It returns how many tokens from the first on reach the end of the unit; None if the path does not.
"""


@dataclass(frozen=True, slots=True)
class NextWordContext:
    """What a next-word search needs to know about the text before the word."""

    text_end: TextEnd
    before: str
    """The last characters of the text, as many as decide where the next word ends."""
    most_tokens: int
    """Maximum number of tokens of a word: the room left in the model's context."""


@dataclass(frozen=True, slots=True)
class GrowthContext:
    """What a lookahead needs to know about the text besides its nodes: the document makes it for each lookahead."""

    unread_tokens: int = 0
    """Number of tokens at the start of the text that the model does not read. A node's depth plus this number is its
    position in the text."""
    completed_size: CompletedSize | None = None
    """Finds where a branch ends at a word, clause, sentence or line; None where number of tokens decides alone."""
    drafted_continuation: Callable[[Node, int], Continuation] | None = None
    """A function from a node and a maximum number of tokens to the greedy continuation after it, with drafts; None to
    draft nothing."""
    words: WordTokens | None = None
    """The tokens of the word that the options `towards` or `avoid` name; None without these options."""
    words_of: Callable[[Sequence[int]], frozenset[Hashable]] = frozenset
    """A function from the token ids of a path to the set of its words; without a tokenizer, to the set of these ids."""
    next_words: NextWordContext | None = None
    """Needed for `odds="words"` only."""
    reopened_token_id: int | None = None
    """The last typed token, if token healing re-opens it; else None. At the start of a path it inserts nothing."""


@dataclass(frozen=True, slots=True)
class BranchLeaf:
    """The end of a branch or beam: its last node, and the tokens of its path with their log-probabilities.

    The path begins below a base node: the end of the text, or with token healing the node before that one.
    Leaves are never changed; a leaf that grows is replaced by a new one.
    """

    node: Node
    token_ids: tuple[int, ...]
    """The tokens from below the base node down to `node`."""
    logprobs: tuple[float, ...]
    """The log-probability of each token after those before it."""
    predictions: tuple[Prediction, ...] = ()
    """The prediction that each log-probability comes from: without banned tokens, the first conditioned on `typed`."""
    typed: bytes = b""
    """The text of the last typed token, if the path's first token replaces it; else empty."""
    complete: bool = False
    """Whether the path stops growing: it has reached the end of its word, clause, sentence or line, or `repeats`."""
    repeats: bool = False
    """Whether the path stops growing because it repeats itself or the text: see `size_before_repetition`."""
    tokens_past_end: tuple[int, ...] = ()
    """Tokens after the end of a complete path that had to be known to find that end."""
    word_tokens: tuple[int, int] | None = None
    """The tokens of the path that hold the word of the option `towards`, as [start, end); None if the path lacks it."""
    next_word: NextWordOdds | None = None
    """The next word that the path begins with, with `odds="words"`; else None."""

    @property
    def healed(self) -> bool:
        """Whether the path's first token replaces the last typed token."""
        return bool(self.typed)

    @property
    def logprob(self) -> float:
        """The log-probability of the whole path: the sum over its tokens, 0 for a path without tokens."""
        return math.fsum(self.logprobs)

    def extended(self, token_id: int, logprob: float, prediction: Prediction) -> BranchLeaf:
        """Return a new leaf, one token further and not complete; its node is added to the tree if it is missing there.

        `logprob`, the token's log-probability, and `prediction`, from which it was read, are stored unchecked.
        """
        return BranchLeaf(
            self.node.tree.expand(self.node, token_id),
            (*self.token_ids, token_id),
            (*self.logprobs, logprob),
            (*self.predictions, prediction),
            typed=self.typed,
            next_word=self.next_word,
        )

    def ended(self, end_token_ids: frozenset[int]) -> bool:
        """Whether the path's last token is an end token; False for a path without tokens."""
        return bool(self.token_ids) and self.token_ids[-1] in end_token_ids

    def completed(self, size: int) -> BranchLeaf:
        """Return a complete leaf with the first `size` tokens of this path; the others are its `tokens_past_end`.

        The tree keeps the nodes of the others. `size` is at least 0, and at most the number of tokens.
        """
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
    banned: tuple[tuple[int, float], ...] = ()
    """The banned tokens that could replace a re-opened token, each with the probability that it would have, 0 to 1, if
    no token were banned; conditioned on the typed text."""
    excluded: frozenset[int] = frozenset()
    """The banned tokens, and those that would spell a word to avoid, after the text."""
    other_words: tuple[NextWordOdds, ...] = ()
    """With `odds="words"`, the likeliest next words that no branch begins with; some may be beginnings of words."""


@dataclass(frozen=True, slots=True)
class GrowthStep:
    """A step of a lookahead: its leaves so far, or while the prompt is prefilled, how many tokens are still to read.

    There is one after each forward pass, one when the first tokens are known (with or without a pass), and one at the
    end. The last one is the result; nothing in it marks it as the last.
    """

    leaves: tuple[BranchLeaf, ...]
    """The leaves of all branches so far; empty while the prompt is prefilled."""
    tokens_to_read: int = 0
    """How many tokens of the prompt still need prefill."""
    start: BranchStart | None = None
    """The predictions where branches begin; None while the prompt is prefilled."""
    word: WordOdds | None = None
    """How likely the text is to reach the word of the option `towards`; None without it, and during prefill."""
    compared_by: str = ""
    """The value of `Lookahead.compared_by`."""


class Growth:
    """The operations on leaves that all modes of lookahead share, with the options of one lookahead.

    The function `lookahead` makes one for each call. Leaves are passed in and returned, and not kept.
    """

    def __init__(
        self, engine: Engine, options: LookaheadOptions, end_token_ids: frozenset[int], context: GrowthContext
    ) -> None:
        self.engine = engine
        self.options = options
        self.end_token_ids = end_token_ids
        self.context = context
        self.banned = frozenset(options.banned)
        self.avoided = context.words if options.avoid else None
        """The word that no branch may contain; None without the option `avoid`."""
        self.start: BranchStart | None = None
        """The predictions where branches begin; None until they are evaluated."""
        self.word_odds: WordOdds | None = None
        """The bounds of the word's probability; None until they are known, and without the option `towards`."""
        self.compared_by = ""
        """The value of `Lookahead.compared_by`; empty until branches were compared."""

    @property
    def exclusion(self) -> Hashable:
        """The part of memo keys for excluded tokens: the banned tokens and the word to avoid; empty if nothing is."""
        return (self.banned, self.avoided.matcher.word) if self.avoided else self.banned

    def excluded_after(self, node: Node) -> frozenset[int]:
        """Return the tokens that must not follow a node: banned ones, and those that would spell the word to avoid."""
        if self.avoided is None:
            return self.banned
        return self.banned | self.avoided.excluded_after(self.avoided.state_of(node))

    @property
    def is_greedy_to_depth(self) -> bool:
        """Whether greedy growth ends at the full depth or an end token only, and no tokens or words are excluded."""
        return not self.exclusion and self.context.completed_size is None

    def can_grow(self, leaf: BranchLeaf) -> bool:
        """Whether a leaf is not complete, does not end with an end token, and has fewer tokens than `options.depth`."""
        return not leaf.complete and len(leaf.token_ids) < self.options.depth and not leaf.ended(self.end_token_ids)

    def extended(self, leaf: BranchLeaf, token_id: int, logprob: float, prediction: Prediction) -> BranchLeaf:
        """Return a new leaf, one token further; if its path then reaches the end of its unit of text, a complete one.

        With the option `stop_at_repetition` a path that repeats itself is complete too. A complete leaf is cut off at
        the end of the unit or before the repetition, which may be before the new token, and may then equal others. An
        end token completes no unit. `logprob`, the token's log-probability, and `prediction`, from which it was read,
        are stored unchecked.
        """
        grown = leaf.extended(token_id, logprob, prediction)
        if token_id in self.end_token_ids:
            return grown
        if self.context.completed_size is not None:
            size = self.context.completed_size(grown.token_ids, grown.typed)
            if size is not None:
                return grown.completed(size)
        return self._without_repetition(grown) if self.options.stop_at_repetition else grown

    def _without_repetition(self, leaf: BranchLeaf) -> BranchLeaf:
        """Return the leaf itself, or a complete one if its path repeats itself, cut as `size_before_repetition` says.

        A re-opened token that inserts nothing counts as a token of the text, so that a path ends where it would after
        the same text without token healing.
        """
        token_ids: list[int] = []
        node: Node | None = leaf.node
        while node is not None and node.depth and len(token_ids) < 2 * len(leaf.token_ids):
            token_ids.append(node.token_id)
            node = node.parent
        of_text = int(leaf.healed and leaf.token_ids[0] == self.context.reopened_token_id)
        size = size_before_repetition(token_ids[::-1], len(leaf.token_ids) - of_text)
        return leaf if size is None else replace(leaf.completed(size + of_text), repeats=True)

    def evaluate(self, leaves: Sequence[BranchLeaf]) -> bool:
        """Make the predictions (without banned tokens) after these leaves known, in one forward pass at most.

        Returns whether it took one.
        """
        nodes = list(dict.fromkeys(leaf.node for leaf in leaves if self.prediction_after(leaf.node) is None))
        if nodes and not self.exclusion:
            predict(self.engine, nodes)
        elif nodes:
            for node, row in zip(nodes, self.engine.evaluate(nodes), strict=True):
                self.note_without_banned(node, row)
        return bool(nodes)

    def note_without_banned(self, node: Node, row: torch.Tensor) -> torch.Tensor:
        """Store the prediction without banned tokens in a node's memo, and return the row renormalised without them.

        `row` holds the log-probabilities after the node, of shape (vocabulary,). The returned row has -inf for banned
        tokens, and for those that would spell a word to avoid. Without either `row` itself is returned, and nothing is
        stored.
        """
        if not self.exclusion:
            return row
        excluded = self.excluded_after(node)
        allowed = exclude_tokens(torch.zeros_like(row), excluded).isfinite().nonzero()[:, 0]
        renormalised, prediction = renormalised_among(row, allowed)
        node.tree.memoize(node, self.exclusion, prediction)
        return renormalised

    def prediction_after(self, node: Node) -> Prediction | None:
        """Return the prediction after a node, without banned tokens; None if it needs a forward pass."""
        return (node.memo or {}).get(self.exclusion) if self.exclusion else node.prediction

    def children(self, leaf: BranchLeaf, count: int, prediction: Prediction | None = None) -> list[BranchLeaf]:
        """Return the leaf extended by each of its `count` most probable next tokens, the most probable first.

        The tokens come from `prediction`; if it is None, from the prediction after the leaf, which must be known. There
        are fewer if it holds fewer tokens; those of probability 0 are left out. Each child is made by `extended`, so it
        may be shortened and complete. Whether the leaf can grow is not checked.
        """
        prediction = prediction or self.prediction_after(leaf.node)
        assert prediction is not None
        pairs = zip(prediction.token_ids[:count], prediction.logprobs, strict=False)
        return [
            self.extended(leaf, token_id, logprob, prediction) for token_id, logprob in pairs if logprob > -math.inf
        ]

    def follow_known(self, leaf: BranchLeaf) -> BranchLeaf:
        """Return the leaf extended greedily as far as it can grow and predictions are known, without a forward pass.

        If it cannot be extended at all, it is returned itself.
        """
        while self.can_grow(leaf) and self.prediction_after(leaf.node) is not None:
            children = self.children(leaf, 1)
            if not children:
                break
            leaf = children[0]
        return leaf

    def follow_all_known(self, leaves: Sequence[BranchLeaf]) -> list[BranchLeaf]:
        """Return all leaves extended by `follow_known`, in order; of those that become equal the first only."""
        return self.distinct([self.follow_known(leaf) for leaf in leaves])

    def distinct(self, leaves: Sequence[BranchLeaf]) -> list[BranchLeaf]:
        """Return the leaves in order, of those with equal `token_ids` the first only: shortened paths may be equal.

        If branches end by number of tokens alone, paths are not compared, and all leaves are returned.
        """
        if self.context.completed_size is None and not self.options.stop_at_repetition:
            return list(leaves)
        by_path: dict[tuple[int, ...], BranchLeaf] = {}
        for leaf in leaves:
            by_path.setdefault(leaf.token_ids, leaf)
        return list(by_path.values())
