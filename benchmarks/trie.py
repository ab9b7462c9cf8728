"""The retrieval of "Lookahead" (arXiv 2312.12728), written anew from its paper and published code, as a drafter.

For every token a tree of what came after it, `branch_length` tokens deep, in the prompt or in generated texts. A draft
is what hangs below the last two tokens, or below the last one where that is too little: at most `decoding_length`
tokens, the frequent ones first. Not here, because it takes more than a thousand trees to come to it: old branches,
whose counts the original halves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

from lookahead_core.engines.engine import NodeScores
from lookahead_core.speculation.drafters import Guess
from lookahead_core.tree import Node

DECODING_LENGTH = 64
BRANCH_LENGTH = 12
MATCHED = 2
"""How many tokens at the end of the text are looked for."""
OUTPUT_WEIGHT = 1e-4
"""What a token of a generated text counts beside one of the prompt."""
SURE = 0.9

Shoot: TypeAlias = dict[int, "Shoot"]
"""What is drafted: tokens, each with what is drafted after it."""


@dataclass(eq=False, slots=True)
class Branch:
    """A token in a certain place, with how often it came there in the prompt and in generated texts."""

    asked: float = 0.0
    said: float = 0.0
    below: dict[int, Branch] = field(default_factory=dict)

    @property
    def weight(self) -> float:
        return (1 - OUTPUT_WEIGHT) * self.asked + OUTPUT_WEIGHT * self.said


@dataclass(frozen=True, slots=True)
class Bar:
    """A branch must come up to one of these to be drafted."""

    said: float = 0.0
    weight: float = 0.0

    def lets(self, branch: Branch) -> bool:
        return branch.said >= self.said or branch.weight >= self.weight


class Trie:
    """What came after which tokens."""

    def __init__(
        self, decoding_length: int = DECODING_LENGTH, branch_length: int = BRANCH_LENGTH, ends: Collection[int] = ()
    ) -> None:
        self.decoding_length = decoding_length
        self.branch_length = branch_length
        self._ends = frozenset(ends)
        self._after: dict[int, dict[int, Branch]] = {}
        self._coming: list[int] = []
        """The end of the text that is being generated: what is not a whole branch yet."""

    def add_prompt(self, token_ids: Sequence[int]) -> None:
        """Insert a prompt, but for its first token."""
        for branch in self._insert(token_ids[1:], places=len(token_ids) - 2):
            branch.asked += 1

    def add_text(self, token_ids: Sequence[int]) -> None:
        """Insert a text that was generated before."""
        for branch in self._insert(token_ids, places=len(token_ids) - 1):
            branch.said += 1

    def go_on(self, token_ids: Sequence[int]) -> None:
        """Insert what is being generated, each branch once all of it is there."""
        self._coming += token_ids
        ready = max(0, len(self._coming) - self.branch_length - 1)
        for branch in self._insert(self._coming, places=ready):
            branch.said += 1
        del self._coming[:ready]

    def end(self) -> None:
        """A text is over: its last branches are inserted as they are, and the prompt's are removed."""
        rest, self._coming = self._coming, []
        self.add_text(rest)
        for below in self._after.values():
            _forget_prompt(below)

    def _insert(self, token_ids: Sequence[int], places: int) -> Iterator[Branch]:
        """The branches that begin at the first places, made where there are none."""
        for place in range(places):
            below = self._after.setdefault(token_ids[place], {})
            for token_id in token_ids[place + 1 : place + self.branch_length + 2]:
                branch = below.setdefault(token_id, Branch())
                yield branch
                below = branch.below

    def retrieve(self, path: Sequence[int], reach: int) -> Shoot:
        """What to draft after a path, at most `reach` tokens deep: of the longest end that gives enough."""
        depth, found = min(self.branch_length, reach), {}
        for size in range(MATCHED, 0, -1):
            tail = path[-size:]
            if len(tail) < size or tail[0] not in self._after:
                continue
            found, drafted = self._cut(self._below(tail), depth)
            # The token that the draft hangs on counts as one of it.
            if 1 + len(drafted) >= depth or not self._ends.isdisjoint(drafted):
                break
        return found

    def _below(self, tail: Sequence[int]) -> dict[int, Branch]:
        below = self._after[tail[0]]
        for token_id in tail[1:]:
            below = below[token_id].below if token_id in below else {}
        return below

    def _cut(self, below: dict[int, Branch], depth: int) -> tuple[Shoot, list[int]]:
        """As much of a tree as a draft may have, and the tokens that are in it."""
        bar, drafted = self._bar(list(_walk(below))), []

        def pick(below: dict[int, Branch], depth: int) -> Shoot:
            picked: Shoot = {}
            for token_id, branch in sorted(below.items(), key=lambda pair: -pair[1].weight):
                if len(drafted) >= self.decoding_length - 1:
                    break
                if bar.lets(branch):
                    drafted.append(token_id)
                    picked[token_id] = pick(branch.below, depth - 1) if depth > 1 else {}
            return picked

        return pick(below, depth), drafted

    def _bar(self, branches: list[Branch]) -> Bar:
        """How frequent a branch must be: half of the draft are the most said ones, the other half the weightiest."""
        size = self.decoding_length
        if len(branches) <= size:
            return Bar()
        half = max(size // 2, 1)
        said = sorted(branches, key=lambda branch: -branch.said)[:half]
        weighty = sorted(branches, key=lambda branch: -branch.weight)
        taken = {id(branch) for branch in (*said, *weighty[: size - half])}
        # The original looks so far down the list and no further; what it has not met by then sets no bar.
        rest = [branch for branch in weighty[size - half : 2 * size - half] if id(branch) not in taken]
        last = max(size - len(taken), 1) - 1
        return Bar(said[-1].said, rest[last].weight if last < len(rest) else float("inf"))


def _walk(below: dict[int, Branch]) -> Iterator[Branch]:
    """All branches, each before what is below it."""
    for branch in below.values():
        yield branch
        yield from _walk(branch.below)


def _forget_prompt(below: dict[int, Branch]) -> None:
    for token_id, branch in list(below.items()):
        branch.asked = 0.0
        if branch.said:
            _forget_prompt(branch.below)
        else:
            del below[token_id]


class TrieDrafter:
    """Drafts all that the trie retrieves, in its order.

    The original drafts as many tokens as it finds, whatever they cost, so the odds here only tell the order: they are
    the same high ones for whatever is found, a little lower from one to the next. Each is a sign of its own, so that
    experience changes none of them.
    """

    name = "trie"
    hidden = False

    def __init__(self, trie: Trie) -> None:
        self.trie = trie
        self._signs = count()

    def read(self, token_ids: Sequence[int]) -> None:
        self.trie.end()
        self.trie.add_prompt(token_ids)

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        self.trie.go_on(path[-new:])

    def start(self, path: Sequence[int], vector: Any, reach: int) -> Shoot | None:
        return self.trie.retrieve(path, reach) or None

    def ways(self, state: Shoot) -> Sequence[Guess]:
        return [Guess(token_id, SURE**place, next(self._signs)) for place, token_id in enumerate(state, start=1)]

    def follow(self, state: Shoot, token_id: int) -> Shoot | None:
        return state.get(token_id)


class Unheeded:
    """Costs for those who do not ask what a longer draft costs."""

    least = 0.0

    def cost(self, nodes: int) -> float:
        return 1.0

    def record(self, nodes: int, seconds: float) -> None:
        """It makes no difference."""
