"""The trie of the paper "Lookahead" (arXiv 2312.12728), written from it and its published code, as a drafter.

Every token has a tree of the tokens that followed it in the prompt or in generated texts, `branch_length` deep. A draft
is the tree below the last two tokens, or below the last one where that is too small: at most `decoding_length` tokens,
frequent ones first. The original halves the counts of old branches once there are more than a thousand trees; that is
left out here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

from lookahead_core.engines.engine import NodeScores
from lookahead_core.speculation.drafters.protocol import Guess
from lookahead_core.tree import Node

DECODING_LENGTH = 64
"""The most tokens of a draft, the last token of the text included."""
BRANCH_LENGTH = 12
"""The most tokens of a branch of the trie, and of a path of a draft."""
MATCHED = 2
"""The most tokens at the end of the text that are looked up."""
OUTPUT_WEIGHT = 1e-4
"""The weight of a token of generated text; a token of the prompt has 1."""
SURE = 0.9
"""The probability of a draft's first guess; each further one has this times the one before."""

DraftTree: TypeAlias = dict[int, "DraftTree"]
"""Draft tokens, each with the draft tokens that follow it."""


@dataclass(eq=False, slots=True)
class Branch:
    """A token below a path of the trie."""

    asked: float = 0.0
    """How often it occurred in the prompt, after this path."""
    said: float = 0.0
    """How often it occurred in generated texts, after this path."""
    below: dict[int, Branch] = field(default_factory=dict)
    """The tokens that followed, by their ids."""

    @property
    def weight(self) -> float:
        """The weighted sum of both counts."""
        return (1 - OUTPUT_WEIGHT) * self.asked + OUTPUT_WEIGHT * self.said


@dataclass(frozen=True, slots=True)
class Bar:
    """Thresholds of a branch's count in generated texts and of its weight."""

    said: float = 0.0
    weight: float = 0.0

    def lets(self, branch: Branch) -> bool:
        """Whether a branch reaches at least one of the thresholds, so that it may be drafted."""
        return branch.said >= self.said or branch.weight >= self.weight


class Trie:
    """The trees of all tokens, each with the tokens that followed.

    `ends` are end tokens: a draft that holds one is long enough.
    """

    def __init__(
        self, decoding_length: int = DECODING_LENGTH, branch_length: int = BRANCH_LENGTH, ends: Collection[int] = ()
    ) -> None:
        self.decoding_length = decoding_length
        self.branch_length = branch_length
        self._ends = frozenset(ends)
        self._after: dict[int, dict[int, Branch]] = {}
        self._coming: list[int] = []
        """The end of the text that is being generated, which is shorter than a branch."""

    def add_prompt(self, token_ids: Sequence[int]) -> None:
        """Insert a prompt without its first token; its counts last until `end`."""
        for branch in self._insert(token_ids[1:], places=len(token_ids) - 2):
            branch.asked += 1

    def add_text(self, token_ids: Sequence[int]) -> None:
        """Insert a text that was generated earlier."""
        for branch in self._insert(token_ids, places=len(token_ids) - 1):
            branch.said += 1

    def go_on(self, token_ids: Sequence[int]) -> None:
        """Add new tokens of the text that is being generated; each of its branches is inserted once it is complete."""
        self._coming += token_ids
        ready = max(0, len(self._coming) - self.branch_length - 1)
        for branch in self._insert(self._coming, places=ready):
            branch.said += 1
        del self._coming[:ready]

    def end(self) -> None:
        """End the current text: insert its last, incomplete branches and remove the prompt's counts."""
        rest, self._coming = self._coming, []
        self.add_text(rest)
        for below in self._after.values():
            _forget_prompt(below)

    def _insert(self, token_ids: Sequence[int], places: int) -> Iterator[Branch]:
        """Yield each branch on the paths that begin at the first `places` positions; missing ones are created."""
        for place in range(places):
            below = self._after.setdefault(token_ids[place], {})
            for token_id in token_ids[place + 1 : place + self.branch_length + 2]:
                branch = below.setdefault(token_id, Branch())
                yield branch
                below = branch.below

    def retrieve(self, path: Sequence[int], reach: int) -> DraftTree:
        """Return the draft after a path, at most `reach` tokens deep; empty if nothing is found.

        It comes from the longest suffix of the path, of up to MATCHED tokens, that gives enough tokens.
        """
        depth, found = min(self.branch_length, reach), {}
        for size in range(MATCHED, 0, -1):
            tail = path[-size:]
            if len(tail) < size or tail[0] not in self._after:
                continue
            found, drafted = self._cut(self._below(tail), depth)
            # The token above the draft counts towards its length.
            if 1 + len(drafted) >= depth or not self._ends.isdisjoint(drafted):
                break
        return found

    def _below(self, tail: Sequence[int]) -> dict[int, Branch]:
        """Return the branches below a path of tokens, whose first token must be known; empty if the path is not."""
        below = self._after[tail[0]]
        for token_id in tail[1:]:
            below = below[token_id].below if token_id in below else {}
        return below

    def _cut(self, below: dict[int, Branch], depth: int) -> tuple[DraftTree, list[int]]:
        """Return the part of a tree that a draft may hold, at most `depth` tokens deep, and a list of its tokens."""
        bar, drafted = self._bar(list(_walk(below))), []

        def pick(below: dict[int, Branch], depth: int) -> DraftTree:
            picked: DraftTree = {}
            for token_id, branch in sorted(below.items(), key=lambda pair: -pair[1].weight):
                if len(drafted) >= self.decoding_length - 1:
                    break
                if bar.lets(branch):
                    drafted.append(token_id)
                    picked[token_id] = pick(branch.below, depth - 1) if depth > 1 else {}
            return picked

        return pick(below, depth), drafted

    def _bar(self, branches: list[Branch]) -> Bar:
        """Return the thresholds for a draft: half of it are the most frequent branches, half those of largest weight.

        They are 0 if all branches fit into a draft.
        """
        size = self.decoding_length
        if len(branches) <= size:
            return Bar()
        half = max(size // 2, 1)
        said = sorted(branches, key=lambda branch: -branch.said)[:half]
        weighty = sorted(branches, key=lambda branch: -branch.weight)
        taken = {id(branch) for branch in (*said, *weighty[: size - half])}
        # The original examines this part of the list only; a threshold not found in it stays unset.
        rest = [branch for branch in weighty[size - half : 2 * size - half] if id(branch) not in taken]
        last = max(size - len(taken), 1) - 1
        return Bar(said[-1].said, rest[last].weight if last < len(rest) else float("inf"))


def _walk(below: dict[int, Branch]) -> Iterator[Branch]:
    """Yield all branches of a tree, parents before children."""
    for branch in below.values():
        yield branch
        yield from _walk(branch.below)


def _forget_prompt(below: dict[int, Branch]) -> None:
    """Remove the prompt's counts from a tree, and the branches that occurred in the prompt only."""
    for token_id, branch in list(below.items()):
        branch.asked = 0.0
        if branch.said:
            _forget_prompt(branch.below)
        else:
            del below[token_id]


class TrieDrafter:
    """A `Drafter` that guesses everything that the trie retrieves, in its order.

    The original drafts all tokens that it finds, whatever they cost. So the probabilities here only encode the order:
    they are high, and fall slightly from one guess to the next. Each guess is a kind of its own, so that observed
    acceptance does not change them.
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

    def start(self, path: Sequence[int], vector: Any, reach: int) -> DraftTree | None:
        return self.trie.retrieve(path, reach) or None

    def ways(self, state: DraftTree) -> Sequence[Guess]:
        return [Guess(token_id, SURE**place, next(self._signs)) for place, token_id in enumerate(state, start=1)]

    def follow(self, state: DraftTree, token_id: int) -> DraftTree | None:
        return state.get(token_id)


class FreePasses:
    """A stand-in for `PassCosts` in which a pass costs 1, whatever its size, so that no draft is cut."""

    min_node_cost = 0.0

    def cost(self, nodes: int) -> float:
        return 1.0

    def record(self, nodes: int, seconds: float) -> None:
        """Do nothing."""
