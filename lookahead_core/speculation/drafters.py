"""Where drafts come from: each drafter guesses what may follow, how likely, and by what sign it came to the guess."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch

from lookahead_core.engines.engine import NodeScores
from lookahead_core.speculation.ngram_index import NgramIndex
from lookahead_core.text.passage import common_prefix_length
from lookahead_core.tree import Node

RECYCLED = 4
"""How many of the likeliest tokens of an earlier pass are drafted again: measured in benchmarks/README.md."""
LEAST_RECYCLED = 0.1
"""Those less likely, as `NodeScores.top_k` tells it, hardly ever pay for their place in a pass."""
SAME = 16
"""So many tokens tell whether a path goes on from the text."""
MOST_RECYCLED = 16_384
"""So many places are remembered; the oldest is forgotten."""
MOST_SIGNS = 4096
"""So many kinds of guesses are remembered; the one that was longest not put to the test is forgotten."""


class Guess(NamedTuple):
    """A drafter's guess at the next token."""

    token_id: int
    odds: float
    """The probability that it is right, given that every guess above it is; a first estimate, see `GuessAccuracy`."""
    sign: Hashable
    """The kind of guess: how often guesses of each kind were right is counted."""
    source: torch.Tensor | None = None
    """The probabilities that it was drawn from; None for a guess that was not drawn."""


Way = Guess
"""The name of `Guess` in earlier versions."""


class Drafter(Protocol):
    """Guesses for one document. What it keeps of where it stands in a draft is a state that it alone understands.

    One whose guesses take long says so with `dear = True`: it is then asked only where those before it are not sure.
    """

    name: str
    hidden: bool
    """Whether it draws on the vectors that the output matrix is multiplied with."""

    def read(self, token_ids: Sequence[int]) -> None:
        """Take the whole text as it stands now."""
        ...

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        """The last `new` tokens of a path have become true.

        `nodes` are those of this text in the pass, right or wrong; others may have had nodes in it as well.
        """
        ...

    def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> Any:
        """A state at the end of a path, for drafts of at most `reach` tokens; None where it has nothing to say.

        The vector is that of the path's last token but one, which is the last one that the model has read.
        """
        ...

    def ways(self, state: Any) -> Sequence[Guess]:
        """The guesses here, the likeliest first."""
        ...

    def follow(self, state: Any, token_id: int) -> Any:
        """The state one token further; None where it has nothing to say."""
        ...


NAMES = ("suffix", "recycled")
PARTS = ("name", "hidden", "read", "hear", "start", "ways", "follow")
"""What a drafter of one's own must have."""
NEARLY = 1e-3
"""So far from one the probabilities that a token was drawn from may add up to, by rounding."""


def checked_drafters(given: Any) -> tuple[Any, ...]:
    """Names of drafters and drafters of one's own, each once."""
    listed = (given,) if isinstance(given, str) else given
    if not isinstance(listed, Collection):
        raise ValueError(f"drafters is {given!r}, and must be a list of {', '.join(NAMES)}, or of your own drafters.")
    for one in listed:
        if isinstance(one, type):
            raise ValueError(f"drafters holds the class {one.__name__}; make one of its kind: {one.__name__}().")
        missing = [part for part in PARTS if not hasattr(one, part)]
        if not isinstance(one, str) and len(missing) < len(PARTS) and missing:
            raise ValueError(f"drafters holds {one!r}, which lacks {', '.join(missing)}; see `Drafter`.")
        if missing and one not in NAMES:
            raise ValueError(f"drafters holds {one!r}, and must hold {', '.join(NAMES)}, or drafters of your own.")
    return tuple(listed)


def taken(drafter: Drafter, ways: Iterable[Guess], vocabulary: int) -> Iterator[Guess]:
    """The guesses of a drafter one by one, or a sentence with its name where one is no guess."""
    if not isinstance(ways, Iterable):
        raise ValueError(f"The drafter {drafter.name} guesses {ways!r}, and must give a list of ways.")
    for way in ways:
        if fault := _fault(way, vocabulary):
            raise ValueError(f"The drafter {drafter.name} gives {fault}.")
        yield way


def _fault(way: Any, vocabulary: int) -> str:
    """What is wrong with a guess, and what it must be; ids that are no tokens are only never drafted."""
    if not isinstance(way, Guess):
        return f"{way!r} for a guess, and must give ways"
    if type(way.token_id) is not int:
        return f"{way.token_id!r} for a token id, and must give whole numbers"
    if not isinstance(way.odds, int | float):
        return f"{way.odds!r} for odds, and must give numbers"
    try:
        hash(way.sign)
    except TypeError:
        return f"{way.sign!r} for a sign, and must give what can be the key of a dictionary"
    if way.source is not None and not _is_source(way.source, way.token_id, vocabulary):
        return f"a source that token {way.token_id} was not drawn from; it must be one probability for each token"
    return ""


def _is_source(source: Any, token_id: int, vocabulary: int) -> bool:
    """Whether these are the probabilities of all tokens, and this one could be drawn from them."""
    if not isinstance(source, torch.Tensor) or source.shape != (vocabulary,) or not source.is_floating_point():
        return False
    adds_up = abs(float(source.cpu().sum(dtype=torch.float64)) - 1) < NEARLY
    return adds_up and float(source.min()) >= 0 and 0 <= token_id < vocabulary and float(source[token_id]) > 0


class GuessAccuracy:
    """How often guesses of a kind were right."""

    WEIGHT = 8.0
    """So many guesses the drafter's own estimate counts for."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Hashable], tuple[float, float]] = {}

    def odds(self, drafter: str, way: Guess) -> float:
        """How likely a guess is right, from what its drafter says and from what was seen of its kind."""
        right, all_of = self._counts.get((drafter, way.sign), (0.0, 0.0))
        return (right + self.WEIGHT * way.odds) / (all_of + self.WEIGHT)

    def learn(self, drafter: str, way: Guess, right: bool) -> None:
        """A guess was put to the test."""
        before, all_of = self._counts.pop((drafter, way.sign), (0.0, 0.0))
        # What was long ago counts less: texts change.
        self._counts[drafter, way.sign] = (before * 0.98 + right, all_of * 0.98 + 1)
        if len(self._counts) > MOST_SIGNS:
            del self._counts[next(iter(self._counts))]


@dataclass(frozen=True, slots=True)
class SuffixMatches:
    """Places where what comes next may stand, and how well what is before them agrees with the text's end."""

    kind: str
    length: int
    places: tuple[tuple[NgramIndex, int], ...]

    def ways(self) -> list[Guess]:
        """What stands at the places, the most frequent first."""
        counts: dict[int, int] = {}
        for index, place in self.places:
            if (token_id := index.after(place)) is not None:
                counts[token_id] = counts.get(token_id, 0) + 1
        total, agreed = sum(counts.values()), min(self.length, 32).bit_length()
        sure = SURE[self.kind][agreed]
        return [
            Guess(token_id, sure * count / total, (self.kind, agreed, count == total, min(count, 3)))
            for token_id, count in sorted(counts.items(), key=lambda pair: -pair[1])
        ]

    def follow(self, token_id: int) -> SuffixMatches | None:
        """The same places one further, those at which this token stands."""
        left = tuple((index, place + 1) for index, place in self.places if index.after(place) == token_id)
        return SuffixMatches(self.kind, self.length + 1, left) if left else None


RUN, NEAR, ASTRAY = "run", "near", "astray"
SURE = {
    RUN: (0.0, 0.2, 0.4, 0.7, 0.88, 0.95, 0.98),
    NEAR: (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98),
    ASTRAY: (0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98),
}
"""How likely what came last time comes again, by the bits of how many tokens agree: where a run of tokens is the same,
where the last one is and stands near what was copied before, and where the text has left what it copied."""


class SuffixDrafter:
    """What came where the end of the text stood before: in the text itself, and in corpora loaded on purpose.

    Where a text that copies another departs from it, by a word replaced or left out, it often comes back soon: places
    near the one where it left are looked at as well.
    """

    name = "suffix"
    hidden = False
    sound = True
    MATCHES = 4
    """How many of the latest places are looked at."""
    LONG = 4
    """A run of so many tokens is trusted to be copied."""
    REACH = 12
    """So far from where it left off a text may come back to what it copied."""

    def __init__(self, own: NgramIndex, others: Sequence[NgramIndex] = (), *, hears: bool = True) -> None:
        """One that does not hear takes nothing in but what it is told to read."""
        self.own = own
        self._hears = hears
        self._indexes = [own, *others]
        self._read: list[int] = []
        """What the own index ends with, as far as it is the text's own."""
        self._left: tuple[NgramIndex, int, int] | None = None
        """Where the text was last seen to copy: an index, the place that would have come next, and the length then."""

    def beside(self, others: Sequence[NgramIndex]) -> SuffixDrafter:
        """The same, with other indexes to look into as well."""
        other = SuffixDrafter(self.own, others)
        other._read = self._read
        return other

    def read(self, token_ids: Sequence[int]) -> None:
        same = common_prefix_length(self._read, list(token_ids))
        if same < len(self._read):
            # The text has changed: what follows the change is read again, with enough before it to be found.
            same = max(0, same - self.own.longest)
            self.own.begin()
        self.own.add(token_ids[same:])
        self._read[:] = token_ids

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        # Of several texts that grow from one place the first is kept as it comes.
        if self._hears and self._read[-SAME:] == list(path[-new - SAME : -new])[-len(self._read) :]:
            self.own.add(path[-new:])
            self._read.extend(path[-new:])

    def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> Any:
        found = [(index, *index.find(path, self.MATCHES)) for index in self._indexes]
        longest = max(length for _, _, length in found)
        places = tuple((index, place) for index, ends, length in found if length == longest for place in ends)
        if longest >= self.LONG:
            self._left = (*places[0], len(path))
            return (SuffixMatches(RUN, longest, places),)
        back = self._back(path)
        runs = [SuffixMatches(RUN, longest, places)] if places else []
        return tuple([*back, *runs]) or None

    def _back(self, path: Sequence[int]) -> list[SuffixMatches]:
        """Where the text may come back to what it copied."""
        if self._left is None or not 0 < len(path) - self._left[2] <= self.REACH:
            return []
        index, place, length = self._left
        gone = len(path) - length
        near = [at for at in range(place + 1, place + self.REACH) if index.after(at - 1) == path[-1]]
        if near:
            return [SuffixMatches(NEAR, 1, ((index, near[0]),))]
        # A word for a word, most often; as many tokens as the text has gone astray for.
        return [SuffixMatches(ASTRAY, 0, ((index, place + gone),))]

    def ways(self, state: Any) -> Sequence[Guess]:
        best: dict[int, Guess] = {}
        for strand in state:
            for way in strand.ways():
                if way.token_id not in best or way.odds > best[way.token_id].odds:
                    best[way.token_id] = way
        return list(best.values())

    def follow(self, state: Any, token_id: int) -> Any:
        followed = (strand.follow(token_id) for strand in state)
        return tuple(strand for strand in followed if strand is not None) or None


class SuccessorDrafter:
    """What earlier passes thought of a token's successors, right or wrong: it was computed anyway."""

    name = "recycled"
    hidden = False
    sound = True

    def __init__(self) -> None:
        self._after: dict[tuple[int, ...], tuple[tuple[int, ...], tuple[float, ...]]] = {}

    def read(self, token_ids: Sequence[int]) -> None:
        """Nothing was computed for these."""

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        for node, ids, values in zip(nodes, *scores.top_k(nodes, RECYCLED), strict=True):
            parent = node.parent
            assert parent is not None
            for key in ((node.token_id,), (parent.token_id, node.token_id)):
                self._after.pop(key, None)
                self._after[key] = tuple(ids), tuple(values)
        while len(self._after) > MOST_RECYCLED:
            del self._after[next(iter(self._after))]

    def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> Any:
        return tuple(path[-2:])

    def ways(self, state: Any) -> Sequence[Guess]:
        known, order = self._after.get(state), 2
        if known is None:
            known, order = self._after.get(state[-1:]), 1
        if known is None:
            return ()
        discount = _RECYCLED_ODDS[order]
        return [
            Guess(token_id, discount * value, (order, place, decile(value)))
            for place, (token_id, value) in enumerate(zip(*known, strict=True))
            if value >= LEAST_RECYCLED
        ]

    def follow(self, state: Any, token_id: int) -> Any:
        return (state[-1], token_id)


_RECYCLED_ODDS = (0.0, 0.5, 0.8)
"""How much of a token's odds in another place it has here, where one token agrees, or two."""


def decile(value: float) -> int:
    """Which tenth odds lie in: guesses that are about as sure are of a kind."""
    return min(9, int(value * 10))
