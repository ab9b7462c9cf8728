"""One continuation of a text: the state of a stream while it grows, and the choice of each token."""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch

from lookahead_core.engines.engine import NodeScores
from lookahead_core.prediction import Prediction
from lookahead_core.speculation.acceptance import accept_by_rejection, accepted_path
from lookahead_core.speculation.draft_and_verify import Pass, Speculation
from lookahead_core.speculation.draft_value import PassLoad, noise_adjustment
from lookahead_core.strategies.rules import ModelRules, RuledOutError
from lookahead_core.strategies.sampling import gumbel_noise_by_token, sample_token
from lookahead_core.strategies.stream_options import REJECTION, StreamOptions
from lookahead_core.tree import Node


@dataclass(frozen=True, slots=True)
class ChosenToken:
    """The token that the options choose after a node, with the facts that a stream reports."""

    token_id: int
    logprob: float
    """The log-probability that the model gives it."""
    chance: float
    """Its log-probability with all options applied; 0 at temperature 0."""
    rank: int
    """1 plus the number of tokens that the model gives a higher probability."""


@dataclass(frozen=True, slots=True)
class GeneratedToken:
    """A token that a continuation has taken."""

    chosen: ChosenToken
    prediction: Prediction
    """The model's prediction that the token was chosen from."""
    finish: str
    """Why it is the last token: "end" (it is an end token) or "length" (`max_new_tokens`); empty if it is not."""


class Continuation:
    """A continuation while it grows: its node, its path, and the tokens that are chosen but not taken yet.

    It begins below the node `head`, and is a grower of that node's tree.
    """

    def __init__(
        self,
        head: Node,
        options: StreamOptions,
        rules: ModelRules,
        unread_tokens: int = 0,
        speculation: Speculation | None = None,
    ) -> None:
        self.node = head
        """The last node taken."""
        self.options = options
        self.rules = rules
        self.unread_tokens = unread_tokens
        """Number of tokens at the start of the text that the model does not read."""
        self.speculation = speculation
        """Makes drafts and learns from their verification; None to evaluate one token per pass."""
        self.path = head.tree.token_ids(head)
        """All token ids down to `node`."""
        self.new_tokens = 0
        """Number of tokens taken."""
        self._start = head
        self._drafters_know = len(self.path)
        """How many tokens of the path the drafters have learned from."""
        self.over = False
        """Whether it takes no more tokens: after an end token, at `max_new_tokens`, or with `error` set."""
        self.error: RuledOutError | None = None
        """Set if the options exclude every next token; else None."""
        self.passes: list[Pass] = []
        """What each forward pass gained."""
        head.tree.growers.add(self)
        self.is_greedy = rules.changes_nothing and not options.applied_temperature
        """Whether the model's most probable token is always taken: no rules, and temperature 0."""
        # The choice after a node depends on the node, on where the continuation began, and on these options alone.
        self._note_key: Hashable = (options.for_choice, unread_tokens, head.depth)
        self._chosen: dict[Node, ChosenToken] = {}
        """The tokens chosen after `node` and after verified draft nodes below it."""

    @property
    def frontier(self) -> list[Node]:
        """The nodes whose paths the tree must keep for this continuation: its last node; none once it is over."""
        return [] if self.over else [self.node]

    @property
    def position(self) -> int:
        """The position of the next token in the whole text: the number of tokens before it."""
        return self.node.depth + self.unread_tokens

    @property
    def uses_rejection(self) -> bool:
        """Whether drafts are accepted by rejection sampling: the options request it, and the temperature is above 0."""
        return self.options.speculate == REJECTION and self.options.applied_temperature > 0

    @property
    def next_token(self) -> ChosenToken | None:
        """The token chosen after `node`; None while it is not known."""
        return self._known_after(self.node)

    def choose_from_kept_row(self) -> None:
        """Choose the next token, unless it is known, from the row of log-probabilities that the tree keeps for `node`.

        Does nothing if the tree does not keep that row. If the options exclude every token, it sets `error` and `over`.
        """
        row = self.node.tree.row_of(self.node)
        if row is not None and self.next_token is None:
            self._choose(self.node, list(self.path), row)

    def _known_after(self, node: Node) -> ChosenToken | None:
        """Return the token that is chosen after a node; None while it is not known."""
        prediction = node.prediction
        if self.is_greedy:
            return None if prediction is None else ChosenToken(prediction.token_ids[0], prediction.logprobs[0], 0.0, 1)
        return self._chosen.get(node) or (None if self.uses_rejection else (node.memo or {}).get(self._note_key))

    def nodes_to_evaluate(self, load: PassLoad) -> list[Node]:
        """Draft tokens if there is a `speculation`; return the continuation's node and the draft nodes below it.

        `load` counts the nodes of all continuations in the pass; the draft nodes are added to it.
        """
        if self.speculation is None:
            return [self.node]
        depth = self.options.max_new_tokens - self.new_tokens - 1
        by_noise = not self.uses_rejection and self.options.applied_temperature
        adjust = noise_adjustment(self._noise) if by_noise else None
        return self.speculation.draft(self.node, self.path, depth, load, adjust)

    def accepted_greedily(self, scores: NodeScores) -> list[Node]:
        """Return the continuation's node and the path of draft nodes below it that are the model's likeliest tokens.

        `scores` are those of the pass over them. For a continuation that `is_greedy`; others use `choose_and_accept`.
        """
        return list(accepted_path(self.node, scores.best_token, self._is_drafted))

    def choose_and_accept(self, scores: NodeScores) -> list[Node]:
        """Choose a token after the continuation's node and after each accepted draft node, from the pass's rows.

        Returns the continuation's node and the accepted draft nodes: the path of those that equal the chosen tokens. If
        the options exclude every token after the continuation's node, it sets `error` and `over`.
        """
        path = list(self.path)
        return list(
            accepted_path(self.node, lambda node: self._choose(node, path, scores.logprob_row(node)), self._is_drafted)
        )

    def note_pass(self, accepted: Sequence[Node], scores: NodeScores, seconds: float) -> None:
        """Record what a pass of this many seconds has gained, and let the drafters learn from its scores.

        `accepted` are the continuation's node and the accepted draft nodes. Does nothing if no token may follow the
        last of them.
        """
        last = self._known_after(accepted[-1])
        if last is None:
            return
        if self.speculation is None:
            self.passes.append(Pass(len(accepted), 1, seconds, 0.0, ()))
            return
        path = [*self.path, *(node.token_id for node in accepted[1:]), last.token_id]
        new = len(path) - self._drafters_know
        self.passes.append(self.speculation.learn_from_pass(path, new, accepted, scores, seconds))
        self._drafters_know = len(path)

    def take_next(self) -> GeneratedToken:
        """Move `node` to the next token, which must be known, and return that token; the last one sets `over`."""
        chosen, prediction = self.next_token, self.node.prediction
        assert chosen is not None
        assert prediction is not None
        self._chosen.pop(self.node, None)
        self.node = self.node.tree.expand(self.node, chosen.token_id)
        self.path.append(chosen.token_id)
        self.new_tokens += 1
        finish = "end" if chosen.token_id in self.rules.end_token_ids else ""
        finish = finish or ("length" if self.new_tokens >= self.options.max_new_tokens else "")
        self.over = bool(finish)
        return GeneratedToken(chosen, prediction, finish)

    def take_all_known(self) -> None:
        """Take next tokens while they are known without a forward pass, until the continuation is over."""
        while not self.over and self.next_token is not None:
            self.take_next()

    def _is_drafted(self, node: Node) -> bool:
        """Whether a node belongs to the draft of the current pass; False without speculation."""
        return self.speculation is not None and self.speculation.has_drafted(node)

    def _choose(self, node: Node, path: list[int], row: torch.Tensor) -> int | None:
        """Choose the token after a node from its row, store the choice, and return it.

        Returns None if the options exclude every token; if `node` is the continuation's own, it is then over, with
        `error` set. `path` leads to the node, or to its parent if it is a draft node, whose token is then appended.
        """
        if node is not self.node:
            path.append(node.token_id)
        if node is self._start:
            # Other samples of the same text begin with this row.
            node.tree.keep_row(node, row)
        new = len(path) - len(self.path) + self.new_tokens
        try:
            logprobs = self.options.sampling_logprobs(model_scores(node, row), self.rules, path, new)
        except RuledOutError as error:
            # A draft node may have this error too; it is raised only if the text itself gets there.
            if node is self.node:
                self.error, self.over = error, True
            return None
        token_id = self._sample(logprobs, node)
        rank = 1 + int((row > row[token_id]).sum())
        self._chosen[node] = chosen = ChosenToken(token_id, float(row[token_id]), float(logprobs[token_id]), rank)
        if not self.uses_rejection:
            # The choice is reproducible, so a later continuation with the same options can use it.
            node.tree.memoize(node, self._note_key, chosen)
        return token_id

    def _sample(self, logprobs: torch.Tensor, node: Node) -> int:
        """Sample the token after a node: with seeded noise, or by rejection of the tokens drafted below it."""
        position, seed = node.depth + self.unread_tokens, self.options.seed or 0
        if not self.uses_rejection or self.speculation is None:
            return sample_token(logprobs, seed=seed, stream=self.options.stream, position=position)
        drafted = self.speculation.drafted_below(node)
        generator = random.Random(f"{seed} {self.options.stream} {position}")
        uniforms = [generator.random() for _ in drafted]
        return accept_by_rejection(logprobs.exp(), drafted, uniforms, generator.random()).token_id

    def _noise(self, depth: int, token_id: int) -> float:
        """Return the Gumbel noise of a token that follows a node `depth` below the continuation's node."""
        return gumbel_noise_by_token(self.options.seed or 0, self.options.stream, self.position + depth)(token_id)


def model_scores(node: Node, row: torch.Tensor) -> torch.Tensor:
    """Return the model's logits after a node, which a repetition penalty needs, from its row of log-probabilities.

    The row is returned unchanged if the node has no prediction or the prediction has no `log_total`.
    """
    prediction = node.prediction
    return row if prediction is None or prediction.log_total is None else row + prediction.log_total
