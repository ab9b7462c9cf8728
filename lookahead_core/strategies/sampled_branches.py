"""The lookahead mode "sampled": k independent samples, reproducible because each stream has its own seeded noise."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import torch

from lookahead_core.strategies.branch_growth import BranchLeaf, BranchStart, Growth
from lookahead_core.strategies.healing import ReopenedToken, evaluate_healed_start, joint_row, known_healed_start
from lookahead_core.strategies.sampling import apply_temperature_and_cuts, gumbel_noise, sample_token
from lookahead_core.tree import Node


def grow_sampled(growth: Growth, head: Node, typed: ReopenedToken | None) -> Iterator[Sequence[BranchLeaf]]:
    """Grow k sampled branches below the node `head`, one token each per forward pass: the mode "sampled".

    Branch i is random stream i of the option `seed`. Yields the list of leaves, one per stream in order, after the
    first token, after each further pass, and at the end: the same list object each time, changed in between. Streams
    that draw the same tokens stay separate leaves. With `typed`, the first token replaces `head`, the last typed token.
    """
    streams = SampledGrowth(growth)
    leaves = streams.first_leaves(head) if typed is None else streams.first_healed_leaves(head, typed)
    yield leaves
    while growing := [index for index, leaf in enumerate(leaves) if growth.can_grow(leaf)]:
        passed = streams.evaluate([(leaves[index].node, index) for index in growing])
        for index in growing:
            leaves[index] = streams.extended(leaves[index], index)
        if passed:
            yield leaves
    yield leaves


@dataclass(frozen=True, slots=True)
class SampledGrowth:
    """Draws the tokens of the mode "sampled" for k random streams, numbered from 0, of which each makes one branch.

    Each drawn token is stored in the memo of the node before it, since the rows that it is drawn from are not kept: a
    later lookahead with the same options then needs no pass.
    """

    growth: Growth

    def first_leaves(self, head: Node) -> list[BranchLeaf]:
        """Return the leaf of each stream after its first token below `head`, in the order of streams.

        Sets `growth.start`; at most one forward pass.
        """
        streams = range(self.growth.options.k)
        self.evaluate([(head, stream) for stream in streams])
        prediction = self.growth.prediction_after(head)
        assert prediction is not None
        self.growth.start = BranchStart(prediction, excluded=self.growth.excluded_after(head))
        return [self.extended(BranchLeaf(head, (), ()), stream) for stream in streams]

    def evaluate(self, draws: Sequence[tuple[Node, int]]) -> bool:
        """Sample a token after the node for each (node, stream number) pair that has none yet, in one pass at most.

        Returns whether it took a pass. The tokens are stored, and afterwards the prediction after each of these nodes
        is known as well.
        """
        missing = [(node, stream) for node, stream in draws if not self._is_known(node, stream)]
        nodes = list(dict.fromkeys(node for node, _ in missing))
        if nodes:
            pairs = zip(nodes, self.growth.engine.evaluate(nodes), strict=True)
            rows = {node: self.growth.note_without_banned(node, row) for node, row in pairs}
            for node, stream in missing:
                self._sample(node, stream, rows[node])
        return bool(nodes)

    def extended(self, leaf: BranchLeaf, stream: int) -> BranchLeaf:
        """Return the leaf extended by this stream's token after it, which `evaluate` must have sampled before.

        As by `Growth.extended`, the result may be shortened and complete.
        """
        prediction, sampled = self.growth.prediction_after(leaf.node), self._sampled(leaf.node, stream)
        assert prediction is not None
        assert sampled is not None
        return self.growth.extended(leaf, *sampled, prediction)

    def first_healed_leaves(self, head: Node, typed: ReopenedToken) -> list[BranchLeaf]:
        """Return the leaf of each stream after the first tokens that insert text, sampled from `joint_row`.

        `head` is the typed token's node, at depth 2 or more; the leaves' paths begin below its parent. They have one
        token in place of the typed one, or the typed one and a token after it. The leaves are in the order of streams.
        Sets `growth.start`; at most one forward pass.
        """
        assert head.parent is not None
        streams, memo = range(self.growth.options.k), head.parent.memo or {}
        keys = [(self._note_key(head.parent, stream), typed.text, head.token_id) for stream in streams]
        start = known_healed_start(self.growth, head, typed)
        if start is None or any(key not in memo for key in keys):
            start, first_row, typed_row = evaluate_healed_start(self.growth, head, typed)
            samples = self._healed_samples(head, first_row, typed_row)
            for key, sample in zip(keys, samples, strict=True):
                head.tree.memoize(head.parent, key, sample)
            memo = head.parent.memo or {}
        self.growth.start = start
        assert start.prediction_after_typed is not None
        leaves = [BranchLeaf(head.parent, (), (), typed=typed.text) for _ in streams]
        for stream, key in zip(streams, keys, strict=True):
            predictions = (start.prediction, start.prediction_after_typed)
            for (token_id, logprob), prediction in zip(memo[key], predictions, strict=False):
                leaves[stream] = self.growth.extended(leaves[stream], token_id, logprob, prediction)
        return leaves

    def _healed_samples(
        self, head: Node, first_row: torch.Tensor, typed_row: torch.Tensor
    ) -> Iterator[tuple[tuple[int, float], ...]]:
        """Yield for each stream its sample from `joint_row`: one or two pairs of a token id and its log-probability.

        `head` is the node of the typed token, and the rows are the arguments of `joint_row`. The noise of a path is
        that of its last token.
        """
        assert head.parent is not None
        options, vocabulary, typed_id = self.growth.options, len(first_row), head.token_id
        row = joint_row(first_row, typed_id, typed_row)
        scores = apply_temperature_and_cuts(row, temperature=options.temperature, top_p=options.top_p)
        possible = scores.isfinite().nonzero()[:, 0]
        replacing, following = possible[possible < vocabulary], possible[possible >= vocabulary] - vocabulary
        for stream in range(options.k):
            noise = [
                gumbel_noise(options.seed, stream, self._position(head.parent), replacing),
                gumbel_noise(options.seed, stream, self._position(head), following),
            ]
            index = int(possible[(scores[possible] + torch.cat(noise)).argmax()])
            if index < vocabulary:
                yield ((index, float(first_row[index])),)
            else:
                token_id = index - vocabulary
                yield (typed_id, float(first_row[typed_id])), (token_id, float(typed_row[token_id]))

    def _is_known(self, node: Node, stream: int) -> bool:
        """Whether a sample of the stream, and the prediction without banned tokens are stored after a node.

        If not, `evaluate` makes a forward pass for it: a sample that is not stored is never drawn without one.
        """
        return self._sampled(node, stream) is not None and self.growth.prediction_after(node) is not None

    def _sample(self, node: Node, stream: int, row: torch.Tensor) -> None:
        """Sample the stream's token after a node, and store it with its log-probability in the node's memo.

        `row`, of shape (vocabulary,), holds the log-probabilities after the node, without banned tokens. The stored one
        is read from it, before temperature and top-p.
        """
        options = self.growth.options
        scores = apply_temperature_and_cuts(row, temperature=options.temperature, top_p=options.top_p)
        token_id = sample_token(scores, seed=options.seed, stream=stream, position=self._position(node))
        node.tree.memoize(node, self._note_key(node, stream), (token_id, float(row[token_id])))

    def _sampled(self, node: Node, stream: int) -> tuple[int, float] | None:
        """Return the token id of a stream's stored sample after a node, and its log-probability; None if there is none.

        The log-probability is that before temperature and top-p, without banned tokens.
        """
        return (node.memo or {}).get(self._note_key(node, stream))

    def _position(self, node: Node) -> int:
        """Return the position in the whole text of the token after a node: the number of tokens before it."""
        return node.depth + self.growth.context.unread_tokens

    def _note_key(self, node: Node, stream: int) -> Hashable:
        """Return the key of a stream's sample in a node's memo: all that it depends on besides the node."""
        options = self.growth.options
        settings = (options.seed, options.temperature, options.top_p)
        return settings, stream, self._position(node), self.growth.exclusion
