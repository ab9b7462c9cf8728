"""Search for a word: the branches that reach it, and bounds of the probability that the text does so."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch

from lookahead_core.prediction import Prediction
from lookahead_core.strategies.branch_growth import BranchLeaf, Growth
from lookahead_core.strategies.healing import ReopenedToken, evaluate_healed_start
from lookahead_core.strategies.word_odds import WordOdds
from lookahead_core.strategies.word_tokens import WordTokens
from lookahead_core.text.word_matcher import WordState
from lookahead_core.tree import Node

MOST_COMPLETING = 8
"""Maximum number of tokens that complete the word and become branches after one node; all count in the bounds."""
FAR_BELOW = 1e-2
"""Minimum rank of the paths that a round takes by rank, relative to the best path's: lower ones would use up the budget
before the next round finds better ones."""
ROUNDS = 2
"""Maximum number of rounds, as a multiple of budget / width."""
PIECES_OF_TOKEN = 0.05
"""Assumed probability, for the rank, that a beginning of the word becomes the word, if one token spells the word."""
LEAST_CHANCE = 1e-6
"""Lower limit of the estimated probability that the word begins at a token, so that no path has rank 0."""
LEAST_HEALED = -14.0
"""Minimum log-probability of a token that replaces a re-opened one, about one in a million; others are left out."""


@dataclass(frozen=True, slots=True)
class _Child:
    """A next token, with its log-probability and the word's state after it."""

    token_id: int
    logprob: float
    state: WordState


@dataclass(frozen=True, slots=True)
class _Outlook:
    """The next tokens after a node by their roles for the word, with probabilities conditional on the node's path."""

    prediction: Prediction
    completing: tuple[tuple[int, float], ...]
    """The likeliest tokens that complete the word and show that it ends: (id, log-probability)."""
    completed: float
    """The probability of all such tokens; those that only end a word spelled before them are in `bounded` instead."""
    leading: tuple[_Child, ...]
    """All tokens after which the text ends with the word or with a beginning of it."""
    bounded: float = 0.0
    """If the path ends with the word: the probability that the word ends there. Else 0."""
    undecided: float = 0.0
    """If the path ends with the word: the probability of tokens that do not show whether the word ends. Else 0."""
    ended: float = 0.0
    """The probability of end tokens; 0 if the path ends with the word, as they are in `bounded` then."""

    @property
    def leads(self) -> float:
        """The probability that the next token completes, spells or begins the word."""
        return self.completed + math.fsum(math.exp(child.logprob) for child in self.leading)


@dataclass(frozen=True, slots=True)
class _Open:
    """A path that is not evaluated yet: an evaluated leaf, and the next token."""

    leaf: BranchLeaf
    child: _Child
    prediction: Prediction


_Entry: TypeAlias = tuple[float, int, _Open]
"""A path in a heap: minus its rank or minus its log-probability, a number that no other path has, and the path."""


class WordSearch:
    """A best-first search for a word below the end of a text: at most `budget` nodes, at most `width` in a round.

    The rank of a path is its probability times an estimate of the probability that it reaches the word: 1 if it ends
    with the word, `_begun_chance` if it ends with a beginning of the word, else the probability that the word begins
    at its last token. Half of each round are the most probable paths whatever their rank, since the rank does not know
    that a word may follow some tokens later. `leaves` and `odds` are the results so far.
    """

    def __init__(self, growth: Growth, words: WordTokens, head: Node, typed: ReopenedToken | None) -> None:
        """`head` is the node at the end of the text; with `typed`, branches begin below its parent and replace it."""
        self._growth = growth
        self._words = words
        self._head = head
        self._typed = typed
        self._start = words.state_of(head)
        self._begun_chance = PIECES_OF_TOKEN if words.is_token else 1.0
        self._usual = 0.0
        self._low = 0.0
        self._open = 1.0
        self._found: list[tuple[float, BranchLeaf]] = []
        self._by_rank: list[_Entry] = []
        self._by_probability: list[_Entry] = []
        """The same paths; one that was chosen from one of the two heaps stays in the other, and is in `_chosen`."""
        self._chosen: set[int] = set()
        self._order = itertools.count()

    @property
    def leaves(self) -> list[BranchLeaf]:
        """The k likeliest paths that reach the word, likeliest first; the word's end counts in their probability."""
        best = heapq.nsmallest(self._growth.options.k, self._found, key=lambda one: -one[0])
        return [leaf for _, leaf in best]

    @property
    def odds(self) -> WordOdds:
        """Bounds of the probability that the text reaches the word, as far as it was searched."""
        low = min(1.0, self._low)
        depth = self._growth.options.depth
        return WordOdds(self._words.matcher.word, depth, low, min(1.0, max(low, self._low + self._open)))

    def passes(self) -> Iterator[None]:
        """Search; yield after each round, which takes at most one forward pass. The first evaluates the text's end.

        The generator may be abandoned: `leaves` and `odds` then are those of the rounds so far.
        """
        options = self._growth.options
        self._begin()
        yield
        spent, rounds = 1, ROUNDS * math.ceil(options.budget / options.width)
        while rounds and spent < options.budget and (chosen := self._next(min(options.width, options.budget - spent))):
            leaves = [one.leaf.extended(one.child.token_id, one.child.logprob, one.prediction) for one in chosen]
            states = [one.child.state for one in chosen]
            outlooks = self._outlooks([leaf.node for leaf in leaves], states)
            for leaf, state, outlook in zip(leaves, states, outlooks, strict=True):
                self._take(leaf, state, outlook)
            spent, rounds = spent + len(chosen), rounds - 1
            yield

    def _next(self, most: int) -> list[_Open]:
        """Return at most `most` paths for the next round, which are not returned again; [] if none is left.

        At most half are the most probable paths. The others have the highest ranks, from the best one of all down to
        FAR_BELOW of it.
        """
        best = self._first(self._by_rank)
        least = best[0] * FAR_BELOW if best else 0.0
        chosen = [self._take_first(self._by_probability) for _ in range(most // 2) if self._first(self._by_probability)]
        while len(chosen) < most and (first := self._first(self._by_rank)):
            if first[0] > least:
                break
            chosen.append(self._take_first(self._by_rank))
        return chosen

    def _first(self, heap: list[_Entry]) -> _Entry | None:
        """Return the first path of a heap that was not chosen yet, without removing it; None if there is none."""
        while heap and heap[0][1] in self._chosen:
            heapq.heappop(heap)
        return heap[0] if heap else None

    def _take_first(self, heap: list[_Entry]) -> _Open:
        """Remove and return the path that `_first` has returned."""
        _, number, path = heapq.heappop(heap)
        self._chosen.add(number)
        return path

    def _begin(self) -> None:
        head, typed = self._head, self._typed
        if typed is None:
            (outlook,) = self._outlooks([head], [self._start])
            self._take(BranchLeaf(head, (), ()), self._start, outlook)
        else:
            assert head.parent is not None
            self._take(BranchLeaf(head.parent, (), (), typed=typed.text), self._start, self._healed_outlook(typed))

    def _take(self, leaf: BranchLeaf, state: WordState, outlook: _Outlook) -> None:
        """Add a leaf's outlook to the results, and queue the paths that are one token longer."""
        probability, depth = math.exp(leaf.logprob), self._growth.options.depth
        size, spelled = len(leaf.token_ids), self._words.matcher.is_spelled(state)
        self._open -= probability
        if spelled:
            self._find(leaf, probability * outlook.bounded)
        if size == depth:
            self._open += probability * outlook.undecided
            return
        self._low += probability * outlook.completed
        for token_id, logprob in outlook.completing:
            grown = leaf.extended(token_id, logprob, outlook.prediction)
            self._found.append((math.exp(grown.logprob), self._marked(grown)))
        if size + 1 < depth:
            children = [*outlook.leading, *self._others(leaf, state, outlook)]
            self._open += probability * max(0.0, 1 - outlook.completed - outlook.bounded - outlook.ended)
        else:
            children = [child for child in outlook.leading if self._words.matcher.is_spelled(child.state)]
            self._open += probability * math.fsum(math.exp(child.logprob) for child in children)
        # Nothing leads from the word itself to the word: what follows it is ranked like the beginning of the text.
        self._usual = self._usual or outlook.leads
        leads = max(LEAST_CHANCE, self._usual if spelled else outlook.leads)
        for child in children:
            chance = self._chance(child) or leads
            path, number = _Open(leaf, child, outlook.prediction), next(self._order)
            logprob = leaf.logprob + child.logprob
            heapq.heappush(self._by_rank, (-math.exp(logprob) * chance, number, path))
            heapq.heappush(self._by_probability, (-logprob, number, path))

    def _chance(self, child: _Child) -> float:
        """Return the estimated probability that a path which spells or begins the word reaches it; else 0."""
        if self._words.matcher.is_spelled(child.state):
            return 1.0
        return self._begun_chance if child.state.matched else 0.0

    def _others(self, leaf: BranchLeaf, state: WordState, outlook: _Outlook) -> Iterator[_Child]:
        """Yield the kept next tokens after a leaf, likeliest first, without end tokens and those with a role."""
        skipped = self._growth.end_token_ids.union(child.token_id for child in outlook.leading)
        known = len(leaf.typed) if not leaf.token_ids else 0
        for token_id, logprob in zip(outlook.prediction.token_ids, outlook.prediction.logprobs, strict=True):
            if token_id not in skipped and logprob > -math.inf:
                after = self._words.advance(state, token_id, known)
                if not after.found:
                    yield _Child(token_id, logprob, after)

    def _find(self, leaf: BranchLeaf, probability: float) -> None:
        self._low += probability
        if probability > 0:
            self._found.append((probability, self._marked(leaf)))

    def _marked(self, leaf: BranchLeaf) -> BranchLeaf:
        """Return the leaf with `word_tokens` set; its last token must complete the word."""
        size = len(leaf.token_ids)
        return replace(leaf, word_tokens=(size - self._words.tokens_of_word(leaf.token_ids), size))

    def _outlooks(self, nodes: Sequence[Node], states: Sequence[WordState]) -> list[_Outlook]:
        """Return the outlook after each node, in order; `states` has the word's state after each.

        Takes one forward pass at most. Outlooks are kept in the nodes' memos.
        """
        keys = [("word", self._words.matcher.word, state, self._growth.banned) for state in states]
        missing = [index for index, node in enumerate(nodes) if keys[index] not in (node.memo or {})]
        if missing:
            # The rows are valid until the next pass.
            rows = self._growth.engine.evaluate([nodes[index] for index in missing])
            for index, row in zip(missing, rows, strict=True):
                node, state = nodes[index], states[index]
                row = self._growth.note_without_banned(node, row)
                prediction = self._growth.prediction_after(node)
                assert prediction is not None
                node.tree.memoize(node, keys[index], self._outlook(row, prediction, state))
        return [(node.memo or {})[key] for node, key in zip(nodes, keys, strict=True)]

    def _outlook(self, row: torch.Tensor, prediction: Prediction, state: WordState) -> _Outlook:
        """Return the outlook after a text in this state, from the next token's log-probabilities, all and compressed.

        `row` has all, with shape (vocabulary,); `prediction` is compressed.
        """
        roles, spelled = self._words.roles_after(state), self._words.matcher.is_spelled(state)
        ends, undecided = self._words.bounding if spelled and not state.partial else ([], [])
        return _Outlook(
            prediction,
            *_completing(_logprobs(row, roles.completing)),
            leading=tuple(_Child(*pair, roles.leading[pair[0]]) for pair in _logprobs(row, list(roles.leading))),
            bounded=_mass(row, ends),
            undecided=1.0 if state.partial else _mass(row, undecided),
            ended=0.0 if spelled else _mass(row, sorted(self._growth.end_token_ids)),
        )

    def _healed_outlook(self, typed: ReopenedToken) -> _Outlook:
        """Return the outlook of the tokens that may replace the last typed token.

        A word that ends inside the typed text does not count. Stores the outlook after the typed token itself too.
        """
        head, parent = self._head, self._head.parent
        assert parent is not None
        key = ("word", self._words.matcher.word, self._start, self._growth.banned, typed.text, head.token_id)
        known: _Outlook | None = (parent.memo or {}).get(key)
        if known is not None:
            return known
        start, first_row, head_row = evaluate_healed_start(self._growth, head, typed)
        assert start.prediction_after_typed is not None
        after_key = ("word", self._words.matcher.word, self._start, self._growth.banned)
        head.tree.memoize(head, after_key, self._outlook(head_row, start.prediction_after_typed, self._start))
        outlook = self._outlook_of_replacements(first_row, start.prediction, typed)
        head.tree.memoize(parent, key, outlook)
        return outlook

    def _outlook_of_replacements(self, row: torch.Tensor, prediction: Prediction, typed: ReopenedToken) -> _Outlook:
        completing: list[tuple[int, float]] = []
        leading: list[_Child] = []
        for token_id, logprob in _logprobs(row, (row > LEAST_HEALED).nonzero()[:, 0].tolist()):
            after = self._words.advance(self._start, token_id, len(typed.text))
            if after.found:
                completing.append((token_id, logprob))
            elif self._words.matcher.is_spelled(after) or self._words.matcher.is_begun(after):
                leading.append(_Child(token_id, logprob, after))
        return _Outlook(prediction, *_completing(completing), tuple(leading))


def _completing(pairs: Sequence[tuple[int, float]]) -> tuple[tuple[tuple[int, float], ...], float]:
    """Return the MOST_COMPLETING likeliest of these (id, log-probability) pairs, and the probability of all."""
    best = heapq.nlargest(MOST_COMPLETING, pairs, key=lambda pair: pair[1])
    return tuple(best), math.fsum(math.exp(logprob) for _, logprob in pairs)


def _logprobs(row: torch.Tensor, token_ids: Sequence[int]) -> list[tuple[int, float]]:
    """Return (token id, log-probability) of these tokens, without those of probability 0."""
    if not token_ids:
        return []
    values = row[list(token_ids)].tolist()
    return [(token_id, value) for token_id, value in zip(token_ids, values, strict=True) if value > -math.inf]


def _mass(row: torch.Tensor, token_ids: Sequence[int]) -> float:
    return float(row[list(token_ids)].double().exp().sum()) if token_ids else 0.0
