"""Speculation for one continuation: build a draft tree from all drafters' guesses, and learn from its verification.

The draft is as large as pays: each node is weighed against the measured cost of a larger forward pass.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch

from lookahead_core.engines.engine import NodeScores
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.speculation.draft_tree import DraftNode, DraftTree
from lookahead_core.speculation.draft_value import DrafterPayoff, NoiseAdjustment, PassLoad, log_odds_step
from lookahead_core.speculation.drafters.protocol import Drafter, Guess, GuessAccuracy, checked_guesses
from lookahead_core.tree import Node

MAX_DRAFT_NODES = 64
"""Maximum number of guesses in a draft."""
MAX_GUESSES_PER_NODE = 64
"""Maximum number of guesses taken from one drafter per node."""
MAX_UNPAID_GUESSES = 12
"""Maximum number of guesses added beyond the best draft so far: cost grows in steps, so a larger draft may pay."""
ALL_DRAFTERS = "together"
"""The name under which the accuracy of all drafters' merged guesses is counted."""
CERTAIN_ENOUGH = 0.6
"""A costly drafter is not used at a node where an earlier drafter in the list guesses with a higher probability."""
MAX_ODDS = 0.995
"""Upper bound on the odds of one guess, not of its path, before they are corrected by the sampling noise."""

DraftObserver: TypeAlias = Callable[[DraftTree, Sequence[Node], int], None]
"""A function that is called after each verified pass with its draft, the accepted nodes and the id of the next token.

The accepted nodes are the draft's root and the accepted draft nodes, parents first; the next token is the one that the
model chose after the last of them.
"""


@dataclass(frozen=True, slots=True)
class Pass:
    """What one forward pass gained for one continuation, in tokens, and what it cost, in nodes and seconds."""

    won: int
    """Number of tokens known after the pass and not before: the accepted draft tokens and one more."""
    evaluated: int
    """Number of tokens of this text in the pass; 1 if nothing was drafted, also for a prompt."""
    seconds: float
    """Duration of the pass over all texts in it together, without drafting."""
    drafting: float
    """Seconds that building the draft took; 0 without speculation."""
    drafters: tuple[str, ...]
    """For each accepted draft token, the names of the drafters that guessed it, joined with "+"."""


class MergedGuess(NamedTuple):
    """Guesses of the same token after a node by one or several drafters, merged into one with the highest odds."""

    odds: float
    """The highest of their probabilities of being right if the path above is, after correction by `GuessAccuracy`."""
    drafters: tuple[str, ...]
    """The names of the drafters."""
    token_id: int
    source: torch.Tensor | None
    """The probabilities that the token was sampled from; None if it was not sampled."""


class Candidate(NamedTuple):
    """A guess that may be added to the draft. Candidates sort by the odds of their paths, the highest first.

    Among equal odds, the candidate that was found first comes first.
    """

    negative_odds: float
    """Minus the probability that the whole path down to the guess is accepted."""
    number: int
    """A running number, by which candidates of equal odds keep the order in which they were found."""
    parent: DraftNode
    """The draft node that it would follow."""
    guess: MergedGuess


class Speculation:
    """Builds the draft of each forward pass for one continuation, and learns from the pass which guesses were right.

    A `Continuation` that is to draft gets one of its own. For each pass the calls are `draft`, then `learn_from_pass`
    once the accepted nodes are known, then `discard_draft`.
    """

    def __init__(
        self,
        drafters: Sequence[Drafter],
        accuracy: GuessAccuracy,
        costs: PassCosts,
        end_token_ids: frozenset[int],
        vocabulary: int,
        *,
        separate_duplicates: bool = False,
        min_odds: float = 0.0,
    ) -> None:
        """`vocabulary` is the number of token ids; drafters that are slow should come last in `drafters`.

        `accuracy` corrects the drafters' odds and learns from each pass; `costs` estimates what a pass costs. A guess
        is not drafted if its whole path is accepted with less than the probability `min_odds`. Set
        `separate_duplicates` for acceptance by rejection, which needs the probabilities that each token was sampled
        from: a token that two drafters guess is then drafted twice, and `end_token_ids` are drafted if they were
        sampled. Otherwise end tokens are not drafted.
        """
        self.drafters = list(drafters)
        # The library's own drafters give valid guesses; others are checked guess by guess.
        self._are_valid = [getattr(drafter, "guesses_are_valid", False) for drafter in self.drafters]
        self._payoffs = [DrafterPayoff() if getattr(drafter, "dear", False) else None for drafter in self.drafters]
        self.accuracy = accuracy
        self.costs = costs
        self.separate_duplicates = separate_duplicates
        self.min_odds = min_odds
        # With rejection, whether a sampled token is drafted must not depend on what could be drafted after it.
        self._max_unpaid = 1 if separate_duplicates else MAX_UNPAID_GUESSES
        self._numbers = itertools.count()
        self._end_token_ids = end_token_ids
        self._vocabulary = vocabulary
        self._draft: DraftTree | None = None
        self.created_nodes: list[Node] = []
        """The nodes that the latest draft created in the token tree, until `discard_draft`."""
        self.reused_nodes: list[Node] = []
        """The nodes without a prediction in the latest draft that the token tree had already."""
        self._hidden: torch.Tensor | None = None
        """The hidden state of the last node that the latest pass accepted; None after it was used."""
        self._hidden_length = 0
        """The number of tokens from the root to the token that was chosen from `_hidden`."""
        self._drafting_seconds = 0.0
        self.observer: DraftObserver | None = None
        """Called in `learn_from_pass` with the draft, which it must not change; None to observe nothing."""

    @property
    def needs_hidden(self) -> bool:
        """Whether any of the drafters uses the model's last hidden states, so that passes have to return them."""
        return any(drafter.hidden for drafter in self.drafters)

    @property
    def drafted(self) -> list[Node]:
        """A new list of the current draft's nodes: the continuation's own first, then in the order they were added.

        Empty if there is no draft: before the first `draft`, and after `learn_from_pass`.
        """
        return list(self._draft.by_node) if self._draft else []

    def has_drafted(self, node: Node) -> bool:
        """Whether there is a current draft and it contains this node; its root, the continuation's own node, counts."""
        return self._draft is not None and node in self._draft.by_node

    def drafted_below(self, node: Node) -> list[tuple[int, torch.Tensor | None]]:
        """Return the tokens drafted right below a node, in the order they were added, for `accept_by_rejection`.

        Each is a pair of a token id and the probabilities that it was sampled from, of shape (vocabulary,); None if it
        was not sampled. Empty if the node is not in the current draft, or if nothing is drafted below it.
        """
        if self._draft is None or node not in self._draft.by_node:
            return []
        return self._draft.by_node[node].drafted

    def draft(
        self, head: Node, path: Sequence[int], max_depth: int, load: PassLoad, adjust: NoiseAdjustment | None
    ) -> list[Node]:
        """Build the draft of the next pass and return its nodes, `head` first, then depth first.

        `head` is the continuation's last node, and `path` the token ids from the root down to it. Below it come as many
        guesses as pay, none of them deeper than `max_depth` tokens: at most MAX_DRAFT_NODES and `load.spare`, often
        none. `load` counts the nodes in the pass, `head` included; the drafted tokens are added to it. `adjust`
        corrects odds by the sampling noise; None if there is none. Raises a ValueError if a caller's drafter returns an
        invalid guess.
        """
        started = time.perf_counter()
        # Tokens that took no pass since then have no hidden state.
        hidden = self._hidden if len(path) == self._hidden_length else None
        self._hidden = None
        states = [
            drafter.start(path, hidden, max_depth) if max_depth and (payoff is None or payoff.begin_pass()) else None
            for drafter, payoff in zip(self.drafters, self._payoffs, strict=True)
        ]
        draft = self._draft = DraftTree(DraftNode(head, 1.0, (), states, 0))
        self.created_nodes, self.reused_nodes = draft.created, draft.reused
        self._grow(draft, max_depth, load, adjust)
        self._drafting_seconds = time.perf_counter() - started
        return draft.nodes

    def _grow(self, draft: DraftTree, max_depth: int, load: PassLoad, adjust: NoiseAdjustment | None) -> None:
        """Add guesses to a draft that has only its root, and add the drafted tokens to `load`, the size of the pass.

        Guesses are added one by one, those with the most probable paths first, to a depth of `max_depth` tokens. The
        draft ends with the size at which the expected tokens per cost of the pass were highest: guesses added after
        that are removed again. `adjust` corrects odds by the sampling noise; None if there is none.
        """
        candidates: list[Candidate] = []
        added: list[tuple[DraftNode, DraftNode | None, float]] = []
        best_size, best_value, min_cost = 0, load.tokens_per_second(self.costs), self.costs.min_node_cost
        self._push_candidates(draft.root, candidates, adjust)
        while candidates and load.spare > 0 and len(added) < min(MAX_DRAFT_NODES, best_size + self._max_unpaid):
            candidate = heapq.heappop(candidates)
            odds, parent, guess = -candidate.negative_odds, candidate.parent, candidate.guess
            # A larger pass may pay where the next size does not; but not with guesses like this one, at any size.
            if odds < self.min_odds or odds * self.costs.cost(load.nodes) <= load.expected * min_cost:
                break
            child = self._add(draft, parent, guess, odds)
            parent.drafted.append((guess.token_id, guess.source))
            added.append((parent, child, odds))
            # With rejection, whether a sampled token is drafted must not depend on the token: it counts as a node even
            # where it needs none.
            counts = child is not None or self.separate_duplicates
            if counts:
                load.add(odds)
            if child is not None and child.depth < max_depth:
                self._push_candidates(child, candidates, adjust)
            if not counts or load.tokens_per_second(self.costs) > best_value:
                best_size, best_value = len(added), load.tokens_per_second(self.costs)
        for parent, child, odds in reversed(added[best_size:]):
            parent.drafted.pop()
            if child is not None:
                draft.remove(parent, child)
            if child is not None or self.separate_duplicates:
                load.remove(odds)

    def _add(self, draft: DraftTree, parent: DraftNode, guess: MergedGuess, odds: float) -> DraftNode | None:
        """Add a guess to the draft as a child of `parent` and return the new draft node.

        Its node is created in the token tree unless it exists. `odds` is the probability that the whole path down to
        the guess is accepted. Returns None and adds nothing if the draft has that node already, or if the guess is an
        end token.
        """
        token_id = guess.token_id
        if token_id in self._end_token_ids:
            return None
        existing = parent.node.children.get(token_id)
        if existing is not None and existing in draft.by_node:
            return None
        node = parent.node.tree.expand(parent.node, token_id)
        pairs = zip(self.drafters, parent.states, strict=True)
        states = [None if state is None else drafter.follow(state, token_id) for drafter, state in pairs]
        child = DraftNode(node, odds, guess.drafters, states, parent.depth + 1)
        draft.add(parent, child, created=existing is None)
        return child

    def _push_candidates(self, parent: DraftNode, candidates: list[Candidate], adjust: NoiseAdjustment | None) -> None:
        """Push all guesses of what follows a draft node, merged, on the heap `candidates`, with their paths' odds.

        `adjust` corrects a guess's odds by the sampling noise; None if there is none. The merged guesses are also
        recorded in `parent.guesses`, under the name ALL_DRAFTERS.
        """
        merged = self._merged_guesses(parent)
        highest = max((guess.odds for guess in merged), default=0.0)
        others = sum(guess.odds for guess in merged) - highest
        # At most one token comes next: the other guesses share what the best one leaves.
        share = min(1.0, (1 - highest) / others) if others else 1.0
        for guess in merged:
            # The accuracy of merged guesses is learned as well, by the drafters and the odds.
            combined = guess.odds if guess.odds == highest else guess.odds * share
            merged_guess = Guess(guess.token_id, combined, (guess.drafters, log_odds_step(combined)))
            parent.guesses.append((ALL_DRAFTERS, merged_guess))
            odds = min(MAX_ODDS, self.accuracy.odds(ALL_DRAFTERS, merged_guess))
            if adjust is not None:
                odds = adjust(parent.depth, guess.token_id, odds)
            heapq.heappush(candidates, Candidate(-parent.odds * odds, next(self._numbers), parent, guess))

    def _merged_guesses(self, parent: DraftNode) -> list[MergedGuess]:
        """Return what drafters guess after a draft node: each token once, with `separate_duplicates` once per drafter.

        They come in the order of the drafters, not of the odds. A costly drafter is left out if an earlier one guesses
        with odds above CERTAIN_ENOUGH. Ids outside the vocabulary are left out, and end tokens unless they were sampled
        for rejection. The drafters' own guesses are recorded in `parent.guesses`, so that `learn_from_pass` can count
        which were right. Raises a ValueError if a caller's drafter returns an invalid guess.
        """
        merged: dict[Any, MergedGuess] = {}
        highest = 0.0
        for drafter, valid, payoff, state in zip(
            self.drafters, self._are_valid, self._payoffs, parent.states, strict=True
        ):
            if state is None or (payoff is not None and highest > CERTAIN_ENOUGH):
                continue
            guesses = drafter.ways(state) if payoff is None else payoff.timed_ways(drafter, state)
            checked = guesses if valid else checked_guesses(drafter, guesses, self._vocabulary)
            for guess in itertools.islice(checked, MAX_GUESSES_PER_NODE):
                # An end token gains nothing. A sampled one is kept: leaving it out would change the probabilities of
                # what was drafted.
                is_useless = guess.token_id in self._end_token_ids and not (
                    self.separate_duplicates and guess.source is not None
                )
                if is_useless or not 0 <= guess.token_id < self._vocabulary:
                    continue
                parent.guesses.append((drafter.name, guess))
                odds = min(MAX_ODDS, max(0.0, self.accuracy.odds(drafter.name, guess)))
                highest = max(highest, odds)
                key = (guess.token_id, drafter.name) if self.separate_duplicates else guess.token_id
                before = merged.get(key, MergedGuess(0.0, (), 0, None))
                # Drafters look at the same text: two that agree are hardly more accurate than the better one.
                merged[key] = MergedGuess(
                    max(before.odds, odds), (*before.drafters, drafter.name), guess.token_id, guess.source
                )
        return list(merged.values())

    def learn_from_pass(
        self, path: Sequence[int], new: int, accepted: Sequence[Node], scores: NodeScores, seconds: float
    ) -> Pass:
        """Let drafters and accuracies learn from a pass, forget the draft, and return what the pass gained.

        `accepted` are the continuation's node and the accepted draft nodes, parents first. `path` holds the token ids
        from the root to the token chosen after the last accepted node; the drafters have not learned from its last
        `new` tokens yet. `scores` are those of all nodes in the pass, `seconds` is its duration. `draft` must have been
        called for this pass; if it was not, the call fails with an AssertionError. `created_nodes` stays as it is.
        """
        draft, self._draft = self._draft, None
        assert draft is not None
        if self.observer is not None:
            self.observer(draft, accepted, path[-1])
        for node, token_id in zip(accepted, path[len(path) - len(accepted) :], strict=True):
            for name, guess in draft.by_node[node].guesses:
                self.accuracy.learn(name, guess, guess.token_id == token_id)
        own_nodes = [node for node in scores.nodes if node in draft.by_node]
        for drafter in self.drafters:
            drafter.hear(path, new, scores, own_nodes)
        for drafter, payoff in zip(self.drafters, self._payoffs, strict=True):
            if payoff is not None:
                guessed_alone = sum(draft.by_node[node].drafters == (drafter.name,) for node in accepted[1:])
                payoff.note_gain(guessed_alone * seconds / len(accepted))
        self._hidden, self._hidden_length = scores.hidden_state(accepted[-1]), len(path)
        names = tuple("+".join(draft.by_node[node].drafters) for node in accepted[1:])
        return Pass(len(accepted), len(draft.by_node), seconds, self._drafting_seconds, names)

    def discard_draft(self) -> list[Node]:
        """Remove all guesses from the current draft, if there is one, and return the nodes that the latest one created.

        The nodes come oldest first, with those of accepted tokens and of guesses that did not stay in the draft. All
        are still in the token tree: the caller removes those that were not accepted. A second call returns an empty
        list.
        """
        if self._draft is not None:
            self._draft = DraftTree(DraftNode(self._draft.root.node, 1.0, (), [], 0))
        created, self.created_nodes = self.created_nodes, []
        return created
