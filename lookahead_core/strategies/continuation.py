"""One continuation of a text: the state of a stream while it grows, and the choice of each token."""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch

from lookahead_core.engines.engine import NodeScores
from lookahead_core.prediction import Prediction
from lookahead_core.speculation.acceptance import Acceptance, accept_by_rejection, accepted_path
from lookahead_core.speculation.draft_and_verify import Pass, Speculation
from lookahead_core.speculation.draft_value import PassLoad, noise_adjustment
from lookahead_core.strategies.rules import ModelRules, RuledOutError
from lookahead_core.strategies.sampling import gumbel_noise_by_token, sample_token
from lookahead_core.strategies.stream_options import REJECTION, StreamOptions
from lookahead_core.tree import Node


@dataclass(frozen=True, slots=True)
class ChosenToken:
    """The token that the options choose after a node, with its log-probabilities and its rank in the model's order."""

    token_id: int
    logprob: float
    """The log-probability that the model gives it."""
    chance: float
    """Its log-probability with all options applied; 0 at temperature 0."""
    rank: int
    """1 plus the number of tokens that the model gives a higher probability."""


@dataclass(frozen=True, slots=True)
class GeneratedToken:
    """A token that a continuation has taken, as `decode` yields it."""

    chosen: ChosenToken
    prediction: Prediction
    """The model's prediction that the token was chosen from."""
    finish: str
    """Why it is the last token: "end" (it is an end token) or "length" (`max_new_tokens`); empty if it is not."""


class Continuation:
    """One continuation of a text while it grows: the tokens taken so far, and those chosen but not taken yet.

    There is one for each stream, and for each branch that grows with drafts. It begins below the node `head`, which
    must not be the root. It makes no forward pass: `decode` and `advance_in_one_pass` do. It registers as a grower of
    the tree, so that its nodes are not pruned until it is over.
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
        """The nodes whose paths the tree must keep for this continuation: the last one taken; none once it is over."""
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

        A tree keeps one row at most; if it keeps another one or none, nothing happens. The token is not taken yet. If
        the options exclude every token, it sets `error` and `over`.
        """
        row = self.node.tree.row_of(self.node)
        if row is not None and self.next_token is None:
            self._choose(self.node, list(self.path), row)

    def _known_after(self, node: Node) -> ChosenToken | None:
        """Return the token that is chosen after a node; None while it is not known.

        Known are the choices of this continuation and, unless it uses rejection, those of earlier ones from the same
        depth with equal options. A greedy continuation knows the token after each node with a prediction.
        """
        prediction = node.prediction
        if self.is_greedy:
            return None if prediction is None else ChosenToken(prediction.token_ids[0], prediction.logprobs[0], 0.0, 1)
        return self._chosen.get(node) or (None if self.uses_rejection else (node.memo or {}).get(self._note_key))

    def nodes_to_evaluate(self, load: PassLoad) -> list[Node]:
        """Return the nodes that the next pass must evaluate: the continuation's node, then the nodes of a new draft.

        Without `speculation` there is no draft. `load` counts the nodes of all continuations in the pass; it must count
        this continuation's node already, and the draft nodes are added to it.
        """
        if self.speculation is None:
            return [self.node]
        depth = self.options.max_new_tokens - self.new_tokens - 1
        by_noise = not self.uses_rejection and self.options.applied_temperature
        adjust = noise_adjustment(self._noise) if by_noise else None
        return self.speculation.draft(self.node, self.path, depth, load, adjust)

    def accepted_greedily(self, scores: NodeScores) -> list[Node]:
        """Return the accepted nodes in order: the continuation's node, and a path of draft nodes below it.

        Each draft node on the path is the model's likeliest token after the node before. `scores` are those of the pass
        over these nodes; no predictions are stored, and no token is taken. For a continuation that `is_greedy`; others
        use `choose_and_accept`.
        """
        return list(accepted_path(self.node, scores.best_token, self._is_drafted))

    def choose_and_accept(self, scores: NodeScores) -> list[Node]:
        """Choose a token after the continuation's node and after each accepted draft node; return these nodes in order.

        A draft node is accepted if it is the token chosen after the one before. `scores` are those of the pass over
        these nodes; their predictions are stored. No token is taken. If the options exclude every token after the
        continuation's node, `error` and `over` are set; after a draft node, choosing stops there.
        """
        path = list(self.path)
        return list(
            accepted_path(self.node, lambda node: self._choose(node, path, scores.logprob_row(node)), self._is_drafted)
        )

    def note_pass(self, accepted: Sequence[Node], scores: NodeScores, seconds: float) -> None:
        """Add to `passes` what a pass of this many seconds gained, and let the drafters learn from its scores.

        `accepted` are the continuation's node and the accepted draft nodes, as returned by `choose_and_accept` or
        `accepted_greedily`. Does nothing if no token is known after the last of them: the options exclude every one.
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
        """Take the next token, which must be known: move `node` to it, add it to `path`, and return it.

        After an end token, or the last that `max_new_tokens` allows, the continuation is over.
        """
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
        """Take next tokens while they are known without a forward pass, until the continuation is over.

        They are not returned; `node` and `path` include them.
        """
        while not self.over and self.next_token is not None:
            self.take_next()

    def _is_drafted(self, node: Node) -> bool:
        """Whether a node belongs to the draft of the current pass; False without a draft.

        The continuation's own node, below which the draft begins, belongs to it.
        """
        return self.speculation is not None and self.speculation.has_drafted(node)

    def _choose(self, node: Node, path: list[int], row: torch.Tensor) -> int | None:
        """Choose the token after a node from `row`, the model's log-probabilities there; store and return its id.

        Returns None if the options exclude every token; if `node` is the continuation's own, it is then over, with
        `error` set. `path` holds the token ids down to the continuation's node; to a draft node's parent if `node` is
        a draft node, whose token is then appended to it. The node must have its prediction.
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
        """Return the id of a token sampled after a node from `logprobs`, to which all options have been applied.

        If the continuation uses rejection and drafts, it is sampled by rejection; otherwise with seeded Gumbel noise,
        or the only token left if there is one.
        """
        if self.uses_rejection and self.speculation is not None:
            return self.sample_by_rejection(logprobs, node).token_id
        position, seed = node.depth + self.unread_tokens, self.options.seed or 0
        return sample_token(logprobs, seed=seed, stream=self.options.stream, position=position)

    def sample_by_rejection(self, logprobs: torch.Tensor, node: Node) -> Acceptance:
        """Return the token that follows a node by rejection sampling of the tokens that are drafted right below it.

        `logprobs`, of shape (vocabulary,), are those to sample from, with all options applied. The random numbers
        depend on the seed, the stream and the position alone. `speculation` must be set. Nothing is stored.
        """
        assert self.speculation is not None
        position, seed = node.depth + self.unread_tokens, self.options.seed or 0
        drafted = self.speculation.drafted_below(node)
        generator = random.Random(f"{seed} {self.options.stream} {position}")
        uniforms = [generator.random() for _ in drafted]
        return accept_by_rejection(logprobs.exp(), drafted, uniforms, generator.random())

    def _noise(self, depth: int, token_id: int) -> float:
        """Return the Gumbel noise of a token that follows a node `depth` levels below the continuation's node.

        At `depth` 0 the token follows the continuation's node itself.
        """
        return gumbel_noise_by_token(self.options.seed or 0, self.options.stream, self.position + depth)(token_id)


def model_scores(node: Node, row: torch.Tensor) -> torch.Tensor:
    """Return the model's logits after a node, which a repetition penalty needs, from its row of log-probabilities.

    Both have the shape (vocabulary,). If the node has no prediction, or the prediction has no `log_total`, the row of
    log-probabilities itself is returned.
    """
    prediction = node.prediction
    return row if prediction is None or prediction.log_total is None else row + prediction.log_total
