"""The same text in fewer passes: what all drafters guess, as one tree that is as large as pays, and what it won."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from lookahead_core.engines.engine import NodeScores
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.speculation.drafters import Drafter, Guess, GuessAccuracy, taken
from lookahead_core.tree import Node

Luck: TypeAlias = Callable[[int, int, float], float]
MOST = 64
"""The most nodes of a draft."""
WIDEST = 64
"""So many guesses of one drafter at one place are heard."""
FURTHER = 12
"""So many guesses more are looked at, where the next ones alone would not pay: a pass's cost grows in steps."""
TOGETHER = "together"
SURE_ENOUGH = 0.6
"""Where a guess is as sure as this, drafters whose guesses are dear are not asked."""
SUREST = 0.995
"""No guess is surer than this."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass: what it won, and what it took."""

    won: int
    """How many tokens are known after it that were not before: at least one."""
    evaluated: int
    """How many tokens went through the model for this text; 1 where nothing was drafted, also for a prompt."""
    seconds: float
    """How long the pass took."""
    drafting: float
    """How long it took to find the draft."""
    drafters: tuple[str, ...]
    """For each drafted token that held, who had guessed it."""


@dataclass(eq=False, slots=True)
class DraftNode:
    """A node of a draft."""

    node: Node
    odds: float
    """How likely all down to it is right."""
    names: tuple[str, ...]
    """Who guessed it."""
    states: list[Any]
    depth: int
    offers: list[tuple[str, Guess]] = field(default_factory=list)
    """What was guessed to follow it, put into the draft or not."""
    tried: list[tuple[int, torch.Tensor | None]] = field(default_factory=list)
    """What was put into the draft below it, in order, with what it was drawn from."""
    children: list[DraftNode] = field(default_factory=list)


_Waiting: TypeAlias = tuple[float, int, DraftNode, int, tuple[str, ...], Any]
"""A guess that may come into the draft: less its odds, a number for order, what it hangs below, and what it is."""


class PassLoad:
    """A pass as drafts are added to it: its nodes, the tokens expected from it, and how many nodes may be added."""

    def __init__(self, lines: int, spare: float = math.inf) -> None:
        self.nodes = lines
        self.expected = float(lines)
        self.spare = spare

    def add(self, odds: float) -> None:
        """One more guess."""
        self.nodes += 1
        self.spare -= 1
        self.expected += odds

    def remove(self, odds: float) -> None:
        """One less."""
        self.nodes -= 1
        self.spare += 1
        self.expected -= odds

    def worth(self, costs: PassCosts) -> float:
        """Tokens expected for what the pass costs."""
        return self.expected / costs.cost(self.nodes)


class DrafterPayoff:
    """Whether it has paid of late to ask a drafter whose guesses are dear."""

    CLEARLY = 1.5
    """So many times what the asking takes it must have won: what it guesses in vain costs as well."""
    LATELY = 0.15
    """The share of what was seen before that a pass replaces."""
    RESTS = 6
    """Where it has not paid, it is asked in one pass of so many, to see whether it would now."""

    def __init__(self) -> None:
        self._gained = self._spent = 0.0
        self._passes = 0
        self.seconds = 0.0
        """How long it was asked for this draft."""

    def asks(self) -> bool:
        """Whether to ask it in this pass."""
        self._passes += 1
        self.seconds = 0.0
        return self._gained >= self.CLEARLY * self._spent or self._passes % self.RESTS == 0

    def ways(self, drafter: Drafter, state: Any) -> Sequence[Guess]:
        """What it guesses, by the clock."""
        began = time.perf_counter()
        ways = drafter.ways(state)
        self.seconds += time.perf_counter() - began
        return ways

    def hear(self, gained: float) -> None:
        """How many seconds the tokens were worth that nobody else had guessed."""
        if self.seconds:
            self._gained += self.LATELY * (gained - self._gained)
            self._spent += self.LATELY * (self.seconds - self._spent)


class Draft:
    """A tree of guesses below the end of a line; which of its nodes were made for it, and which it found there."""

    def __init__(self, top: DraftNode) -> None:
        self.top = top
        self.guesses: dict[Node, DraftNode] = {top.node: top}
        self.made: list[Node] = []
        self.found: list[Node] = []

    def drop(self, above: DraftNode, guess: DraftNode) -> None:
        """Take a guess back that nothing was put below. Its node goes with the others when the pass is over."""
        above.children.remove(guess)
        del self.guesses[guess.node]

    @property
    def nodes(self) -> list[Node]:
        """The end of the line and what was guessed, each path's likeliest way first: what holds lies together then."""
        order, waiting = [], [self.top]
        while waiting:
            guess = waiting.pop()
            order.append(guess.node)
            waiting.extend(reversed(guess.children))
        return order


class Speculation:
    """Drafts for one line: drafters, what they are trusted with, and what passes cost."""

    def __init__(
        self,
        drafters: Sequence[Drafter],
        trust: GuessAccuracy,
        costs: PassCosts,
        stop: frozenset[int],
        vocabulary: int,
        *,
        apart: bool = False,
        least: float = 0.0,
    ) -> None:
        """Guesses less likely than `least` are left out. With `apart` a token that two guess is tried twice: rejection
        needs to know what each was drawn from.
        """
        self.drafters = list(drafters)
        # A drafter of this house says that its guesses are sound, and they are not checked one by one.
        self._sound = [getattr(drafter, "sound", False) for drafter in self.drafters]
        self._dear = [DrafterPayoff() if getattr(drafter, "dear", False) else None for drafter in self.drafters]
        self.trust = trust
        self.costs = costs
        self.apart = apart
        self.least = least
        # What was drawn comes with other odds than it was drawn with, if what it led to decides whether it is tried.
        self._further = 1 if apart else FURTHER
        self._count = itertools.count()
        self._stop = stop
        self._vocabulary = vocabulary
        self._draft: Draft | None = None
        self.made: list[Node] = []
        """The nodes that were made for the latest draft."""
        self.found: list[Node] = []
        """Those of the latest draft that stood there before, with nothing predicted after them."""
        self._vector: torch.Tensor | None = None
        self._seconds = 0.0

    @property
    def hidden(self) -> bool:
        """Whether a drafter draws on the vectors that the output matrix is multiplied with."""
        return any(drafter.hidden for drafter in self.drafters)

    @property
    def drafted(self) -> list[Node]:
        """The nodes of the draft that is being verified, the end of the line among them."""
        return list(self._draft.guesses) if self._draft else []

    def holds(self, node: Node) -> bool:
        """Whether the draft that is being verified has this node."""
        return self._draft is not None and node in self._draft.guesses

    def tried(self, node: Node) -> list[tuple[int, torch.Tensor | None]]:
        """The tokens that were drafted below a node, in order, with what each was drawn from."""
        return self._draft.guesses[node].tried if self.holds(node) else []  # type: ignore[union-attr]

    def draft(self, head: Node, path: Sequence[int], reach: int, company: PassLoad, luck: Luck | None) -> list[Node]:
        """The nodes to evaluate: the end of the line, and guesses below it, at most `reach` deep.

        `luck` bends a guess's odds by what is known of the dice: of its depth, token and odds it makes the odds with
        these dice.
        """
        began = time.perf_counter()
        vector, self._vector = self._vector, None
        states = [
            drafter.start(path, vector, reach) if reach and (pay is None or pay.asks()) else None
            for drafter, pay in zip(self.drafters, self._dear, strict=True)
        ]
        draft = self._draft = Draft(DraftNode(head, 1.0, (), states, 0))
        self.made, self.found = draft.made, draft.found
        self._grow(draft, reach, company, luck)
        self._seconds = time.perf_counter() - began
        return draft.nodes

    def _grow(self, draft: Draft, reach: int, company: PassLoad, luck: Luck | None) -> None:
        """Always the likeliest guess next, up to the size that wins most for what it costs."""
        waiting: list[_Waiting] = []
        put: list[tuple[DraftNode, DraftNode | None, float]] = []
        best, worth, cheapest = 0, company.worth(self.costs), self.costs.min_node_cost
        self._offer(draft.top, waiting, luck)
        while waiting and company.spare > 0 and len(put) < min(MOST, best + self._further):
            odds, _, above, token_id, names, source = heapq.heappop(waiting)
            # A larger pass may pay where the next size does not; but not with guesses like this one, at any size.
            if -odds < self.least or -odds * self.costs.cost(company.nodes) <= company.expected * cheapest:
                break
            guess = self._put(draft, above, token_id, -odds, names)
            above.tried.append((token_id, source))
            put.append((above, guess, -odds))
            # Whether what was drawn is tried must not hang on what it is: it counts as a node also where it needs none.
            counts = guess is not None or self.apart
            if counts:
                company.add(-odds)
            if guess is not None and guess.depth < reach:
                self._offer(guess, waiting, luck)
            if not counts or company.worth(self.costs) > worth:
                best, worth = len(put), company.worth(self.costs)
        for above, guess, odds in reversed(put[best:]):
            above.tried.pop()
            if guess is not None:
                draft.drop(above, guess)
            if guess is not None or self.apart:
                company.remove(odds)

    def _put(
        self, draft: Draft, above: DraftNode, token_id: int, odds: float, names: tuple[str, ...]
    ) -> DraftNode | None:
        """A guess as a node; None where it needs none, being in the draft already, or an end, which nothing follows."""
        if token_id in self._stop:
            return None
        tree, known = above.node.tree, above.node.children.get(token_id)
        if known is not None and known in draft.guesses:
            return None
        node = tree.expand(above.node, token_id)
        if known is None:
            draft.made.append(node)
        elif known.prediction is None:
            draft.found.append(node)
        pairs = zip(self.drafters, above.states, strict=True)
        states = [None if state is None else drafter.follow(state, token_id) for drafter, state in pairs]
        guess = draft.guesses[node] = DraftNode(node, odds, names, states, above.depth + 1)
        above.children.append(guess)
        return guess

    def _offer(self, guess: DraftNode, waiting: list[_Waiting], luck: Luck | None) -> None:
        """Have all drafters guess what follows."""
        merged = self._merged(guess)
        surest = max((odds for odds, *_ in merged), default=0.0)
        others = sum(odds for odds, *_ in merged) - surest
        # One of them comes at most: beside a sure guess there is little left for the others.
        share = min(1.0, (1 - surest) / others) if others else 1.0
        for odds, names, token_id, source in merged:
            # Whether guesses of several are as good together as they say is a kind of guess of its own.
            said = odds if odds == surest else odds * share
            together = Guess(token_id, said, (names, _surety(said)))
            guess.offers.append((TOGETHER, together))
            likely = min(SUREST, self.trust.odds(TOGETHER, together))
            if luck is not None:
                likely = luck(guess.depth, token_id, likely)
            heapq.heappush(waiting, (-guess.odds * likely, next(self._count), guess, token_id, names, source))

    def _merged(self, guess: DraftNode) -> list[tuple[float, tuple[str, ...], int, Any]]:
        """What all drafters guess to follow, each token once: its odds, who guessed it, and what it was drawn from."""
        merged: dict[Any, tuple[float, tuple[str, ...], int, Any]] = {}
        surest = 0.0
        for drafter, sound, pay, state in zip(self.drafters, self._sound, self._dear, guess.states, strict=True):
            if state is None or (pay is not None and surest > SURE_ENOUGH):
                continue
            ways = drafter.ways(state) if pay is None else pay.ways(drafter, state)
            for way in itertools.islice(ways if sound else taken(drafter, ways, self._vocabulary), WIDEST):
                # An end wins nothing; but if it was drawn, leaving it out would change the odds of what was tried.
                idle = way.token_id in self._stop and not (self.apart and way.source is not None)
                if idle or not 0 <= way.token_id < self._vocabulary:
                    continue
                guess.offers.append((drafter.name, way))
                odds = min(SUREST, max(0.0, self.trust.odds(drafter.name, way)))
                surest = max(surest, odds)
                key = (way.token_id, drafter.name) if self.apart else way.token_id
                before, names, _, _ = merged.get(key, (0.0, (), 0, None))
                # They look at the same text: two who guess the same are hardly surer than the surer one.
                merged[key] = (max(before, odds), (*names, drafter.name), way.token_id, way.source)
        return list(merged.values())

    def hear(self, path: Sequence[int], new: int, stood: Sequence[Node], scores: NodeScores, seconds: float) -> Pass:
        """What the pass has shown: the nodes that hold, and the token after the last, which `path` ends with.

        Drafters have not heard of the last `new` tokens of the path yet: those of this pass, and those since the one
        before that took none.
        """
        draft, self._draft = self._draft, None
        assert draft is not None
        for node, token_id in zip(stood, path[len(path) - len(stood) :], strict=True):
            for name, way in draft.guesses[node].offers:
                self.trust.learn(name, way, way.token_id == token_id)
        own = [node for node in scores.nodes if node in draft.guesses]
        for drafter in self.drafters:
            drafter.hear(path, new, scores, own)
        for drafter, pay in zip(self.drafters, self._dear, strict=True):
            if pay is not None:
                alone = sum(draft.guesses[node].names == (drafter.name,) for node in stood[1:])
                pay.hear(alone * seconds / len(stood))
        self._vector = scores.hidden_state(stood[-1])
        names = tuple("+".join(draft.guesses[node].names) for node in stood[1:])
        return Pass(len(stood), len(draft.guesses), seconds, self._seconds, names)

    def give_up(self) -> list[Node]:
        """Let go of the draft; returns the nodes that were made for it, of which those that stand are kept anyway."""
        if self._draft is not None:
            self._draft = Draft(DraftNode(self._draft.top.node, 1.0, (), [], 0))
        made, self.made = self.made, []
        return made


_SURETIES = tuple(round(2 * math.log(max(per, 1) / max(1000 - per, 1))) for per in range(1001))


def _surety(odds: float) -> int:
    """How sure a guess is, in steps of half a nat between what speaks for it and against it."""
    return _SURETIES[int(1000 * odds)]


def noise_adjustment(noise: Callable[[int, int], float]) -> Luck:
    """How likely a token of some odds is drawn, where its noise at a depth below the line's end is known.

    A draw takes the largest sum of log-probability and noise; the largest of all others' is distributed like noise
    moved by the logarithm of their odds together.
    """

    def bent(depth: int, token_id: int, odds: float) -> float:
        if not 0 < odds < 1:
            return odds
        return math.exp(-(1 - odds) * math.exp(-(math.log(odds) + noise(depth, token_id))))

    return bent
