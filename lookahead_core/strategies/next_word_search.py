"""A best-first search for the likeliest next words, over all their tokenizations; it makes no forward pass itself."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from lookahead_core.strategies.next_word_odds import NextWordOdds
from lookahead_core.strategies.next_word_rows import ClosingTokens, WordRow
from lookahead_core.text.boundaries import LINE_BREAKS
from lookahead_core.text.codec import TextCodec
from lookahead_core.text.passage import TextEnd
from lookahead_core.text.words import first_word_size
from lookahead_core.tree import Node

TOLERANCE = 0.001
"""Maximum error of the probability of each shown word: 0.1 of a percentage point."""
LEAST = 5e-4
"""Minimum probability of a beginning that the search follows, unless the odds of a word depend on it."""
LEAST_NEEDED = 2e-6
"""Minimum probability of a beginning that the search follows at all; less likely ones count in the error."""
WIDTH = 48
"""Maximum number of nodes per pass."""
MAX_ROUNDS = 48
"""Maximum number of passes of a search; probability that is still unresolved then counts in the error."""
MAX_TOKENS = 16
"""Maximum number of tokens of a word."""
OTHERS_NAMED = 4
"""Number of words after the shown ones that are found even if all are less likely than `LEAST`."""
OUTSIDERS = 32
"""Number of words after the shown ones that the search checks, since they might be likelier."""


@dataclass(slots=True, eq=False)
class Beginning:
    """A path of tokens that spells the beginning of a word, or a whole word whose end no token has shown yet."""

    parent: Node
    """The node before its last token; without tokens, the node after which the word begins."""
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    mass: float
    """Probability of the path."""
    characters: str
    text_end: TextEnd
    """The `TextEnd` after its tokens."""
    typed: bytes = b""
    """The bytes of a re-opened token, with which the next token must begin; else empty."""
    row: WordRow | None = None
    """The probabilities of the next token, summed by what it does to the word; None until it is evaluated."""
    after: dict[int, float] = field(init=False, default_factory=dict)
    """The log-probability of each next token that `row` keeps, by token id."""
    followed: set[int] = field(init=False, default_factory=set)
    """The ids in `after` of tokens that were followed."""
    short: str = field(init=False, default="")
    """The word if the text ended here: `characters`, without a last sign that would belong to a longer word only."""

    @property
    def spelled(self) -> bytes:
        return self.characters.encode() + self.text_end.partial


@dataclass(slots=True)
class _Found:
    """A word whose end a token has shown: its probability so far, and its likeliest tokenization."""

    low: float = 0.0
    best: float = 0.0
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    size: int = 0


class NextWordSearch:
    """The state of a search for the `k` likeliest words after a text; `strategies.next_word_leaves` runs it.

    The caller evaluates the beginnings that `wanted` returns in one pass, and passes the row of each to `take`. The
    search is over when `wanted` returns none. `words` returns the words found so far.
    """

    def __init__(self, codec: TextCodec, before: str, k: int, end_token_ids: frozenset[int], max_tokens: int) -> None:
        self.codec = codec
        self.before = before
        self.k = k
        self.end_token_ids = end_token_ids
        self.max_tokens = min(max_tokens, MAX_TOKENS)
        self.rounds = 0
        self._open: dict[Beginning, None] = {}
        self._by_characters: dict[str, list[Beginning]] = {}
        self._by_short: dict[str, list[Beginning]] = {}
        self._evaluated: list[Beginning] = []
        self._found: dict[str, _Found] = {}
        self._least_other = LEAST

    def add(self, beginning: Beginning) -> None:
        """Add a beginning that is to be evaluated."""
        size = first_word_size(beginning.characters, self.before, final=True)
        beginning.short = beginning.characters[:size]
        self._open[beginning] = None
        self._by_characters.setdefault(beginning.characters, []).append(beginning)
        if beginning.short != beginning.characters:
            self._by_short.setdefault(beginning.short, []).append(beginning)

    def take(self, beginning: Beginning, row: WordRow) -> None:
        """Store the row of a beginning that waits for one: count the words that end there, and follow its next tokens.

        The beginning was added by `add` or by an earlier `take`; this adds those that are one token longer.
        """
        beginning.row = row
        del self._open[beginning]
        self._by_characters[beginning.characters].remove(beginning)
        if beginning.short != beginning.characters:
            self._by_short[beginning.short].remove(beginning)
        self._evaluated.append(beginning)
        if row.closing.probability:
            self._ended(beginning, beginning.characters, row.closing)
        if row.closing_before_sign.probability:
            self._ended(beginning, beginning.characters[:-1], row.closing_before_sign)
        if row.end.probability:
            self._ended(beginning, beginning.short, row.end)
        beginning.after = dict(zip(row.ids, row.logprobs, strict=True))
        for token_id in row.ids:
            if not self._follow(beginning, token_id, LEAST):
                break

    def _follow(self, beginning: Beginning, token_id: int, least: float) -> bool:
        """Add the path that is one token longer: as a word if the token shows its end, else as a beginning.

        Returns True. Does nothing and returns False if the row does not keep the token, or if the probability of the
        longer path is below `least`.
        """
        logprob = beginning.after.get(token_id, -math.inf)
        mass = beginning.mass * math.exp(logprob)
        if mass < least:
            return False
        beginning.followed.add(token_id)
        text, text_end = beginning.text_end.decode(token_id, len(beginning.typed))
        path, logprobs = (*beginning.token_ids, token_id), (*beginning.logprobs, logprob)
        characters = beginning.characters + text
        size = first_word_size(characters, self.before)
        if size is not None:
            self._add_found(characters[:size], mass, path, logprobs, len(path))
        else:
            self.add(Beginning(node_of(beginning), path, logprobs, mass, characters, text_end))
        return True

    def _ended(self, beginning: Beginning, word: str, closing: ClosingTokens) -> None:
        path, logprobs = (*beginning.token_ids, closing.token_id), (*beginning.logprobs, closing.logprob)
        self._add_found(word, beginning.mass * closing.probability, path, logprobs, len(beginning.token_ids))

    def _add_found(self, word: str, mass: float, path: tuple[int, ...], logprobs: tuple[float, ...], size: int) -> None:
        found = self._found.setdefault(word, _Found())
        found.low += mass
        if mass > found.best:
            found.best, found.token_ids, found.logprobs, found.size = mass, path, logprobs, size

    def wanted(self) -> list[Beginning]:
        """Return the beginnings to evaluate in the next pass, at most `WIDTH`; none if the search is over."""
        if not self._evaluated:
            return list(self._open)
        if self.rounds >= MAX_ROUNDS:
            return []
        values = self._values_of_enough()
        order = self._ranked(values, self.k)
        shown = order[: self.k]
        least = values[shown[-1]] if len(shown) == self.k else 0.0
        unclear = {word for word in shown if self._unresolved(word) > 2 * TOLERANCE}
        unclear |= {
            word for word in order[self.k :] if self._low(word) + self._unresolved(word) > least + 2 * TOLERANCE
        }
        for word in unclear:
            self._follow_towards(word)
        needed = {each: None for word in unclear for each in self._needed_for(word)}
        # A beginning of several words that is likelier than a shown word may hold a likelier word.
        needed |= {each: None for each in self._open if each.mass > least + 2 * TOLERANCE}
        possible = (each for each in needed if len(each.token_ids) < self.max_tokens)
        return heapq.nlargest(WIDTH, possible, key=lambda each: each.mass)

    def _values_of_enough(self) -> dict[str, float]:
        """Return `_values`; if these are fewer than `k` words, follow less likely tokens first."""
        least, values = LEAST, self._values()
        while len(values) < self.k and least > LEAST_NEEDED:
            least /= 10
            self._follow_down_to(least)
            values = self._values()
        return values

    def _follow_down_to(self, least: float) -> None:
        """Follow all tokens after evaluated beginnings whose longer path has at least the probability `least`."""
        for each in list(self._evaluated):
            for token_id in [i for i in each.after if i not in each.followed]:
                if not self._follow(each, token_id, least):
                    break

    def find_others(self) -> None:
        """Once the search is over: if few words after the first `k` are as likely as `LEAST`, find less likely ones."""
        while len(self.words(self.k + OTHERS_NAMED)) < self.k + OTHERS_NAMED and self._least_other > LEAST_NEEDED:
            self._least_other /= 10
            self._follow_down_to(self._least_other)

    def _follow_towards(self, word: str) -> None:
        """Follow all tokens that may lead to a word and were too unlikely so far, down to `LEAST_NEEDED`."""
        spelled = word.encode()
        for each in list(self._evaluated):
            for token_id in self._unfollowed(each, word, spelled):
                self._follow(each, token_id, LEAST_NEEDED)

    def _needed_for(self, word: str) -> list[Beginning]:
        """Return the likeliest beginnings that may become a word; the others together have at most `TOLERANCE`."""
        waiting = sorted(self._may_become(word), key=lambda each: each.mass)
        left = itertools.accumulate(each.mass for each in waiting)
        return [each for each, mass in zip(waiting, left, strict=True) if mass > TOLERANCE]

    def words(self, count: int) -> list[NextWordOdds]:
        """Return the `count` likeliest words so far, likeliest first.

        A beginning counts as the word that it would be if the text ended there. While the share of one of the first
        `k` is uncertain, they are ordered by this estimate: half of what may still become a word would count for many
        words at once. Words after the first `k` that are less likely than `LEAST` are left out, since likelier words
        may not have been followed.
        """
        values = self._values()
        shown = self._ranked(values, self.k)[: self.k]
        if any(self._unresolved(word) > 2 * TOLERANCE for word in shown):
            shown = heapq.nlargest(self.k, values, key=lambda word: values[word])
        likely = (word for word in values.keys() - shown if values[word] >= self._least_other)
        others = heapq.nlargest(count, likely, key=lambda word: (values[word], word))
        return [self._odds_of(word) for word in [*shown, *others]][:count]

    def _ranked(self, values: dict[str, float], count: int) -> list[str]:
        """Return the `count` + OUTSIDERS words with the highest `values`, sorted by share, highest first.

        A word's share is its known probability plus half of its unresolved probability.
        """
        likely = heapq.nlargest(count + OUTSIDERS, values, key=lambda word: values[word])
        return sorted(likely, key=lambda word: -(self._low(word) + self._unresolved(word) / 2))

    def _odds_of(self, word: str) -> NextWordOdds:
        found, low = self._found.get(word), self._low(word)
        own = (each for each in self._may_become(word) if each.short == word)
        longest = max(own, key=lambda each: each.mass, default=None)
        path = (found.token_ids, found.logprobs, found.size) if found else ((), (), 0)
        if longest is not None and (found is None or longest.mass > found.best):
            path = longest.token_ids, longest.logprobs, len(longest.token_ids)
        return NextWordOdds(word, low, min(1.0, low + self._unresolved(word)), *path)

    def _low(self, word: str) -> float:
        return self._found[word].low if word in self._found else 0.0

    def _values(self) -> dict[str, float]:
        """Return an estimated probability for each word: that of paths that end it, and of beginnings that spell it."""
        values = {word: found.low for word, found in self._found.items() if _is_readable(word)}
        for each in self._open:
            if _is_word(each.short) and not each.text_end.partial:
                values[each.short] = values.get(each.short, 0.0) + each.mass
        return values

    def _unresolved(self, word: str) -> float:
        """Return the probability of all paths that may still turn out to spell a word."""
        spelled = word.encode()
        waiting = (each.mass for each in self._may_become(word))
        return math.fsum(waiting) + math.fsum(self._lost(each, word, spelled) for each in self._evaluated)

    def _may_become(self, word: str) -> Iterator[Beginning]:
        """Yield the beginnings without a row that may turn out to spell a word."""
        yield from self._by_short.get(word, ())
        for size in range(len(word) + 1):
            for each in self._by_characters.get(word[:size], ()):
                if size == len(word) or word[size:].encode().startswith(each.text_end.partial):
                    yield each

    def _lost(self, each: Beginning, word: str, spelled: bytes) -> float:
        """Return the probability of all paths to a word through an evaluated beginning that were not followed."""
        row = each.row
        assert row is not None
        if word and each.characters[:-1] == word and each.short == word:
            return each.mass * self._open_left(each)
        if not _leads_to(each, word, spelled):
            return 0.0
        if word == each.characters:
            return each.mass * self._open_left(each)
        ids = self._unfollowed(each, word, spelled)
        return each.mass * math.fsum(math.exp(each.after[i]) if i in each.after else row.others for i in ids)

    def _open_left(self, each: Beginning) -> float:
        """Return the probability, after a beginning, of the tokens in `WordRow.open` that were not followed."""
        row = each.row
        assert row is not None
        followed = math.fsum(math.exp(each.after[i]) for i in row.open_ids & each.followed)
        return max(0.0, row.open - followed)

    def _unfollowed(self, each: Beginning, word: str, spelled: bytes) -> set[int]:
        """Return the ids of tokens that may lead from an evaluated beginning to a word, and were not followed."""
        assert each.row is not None
        if not _leads_to(each, word, spelled):
            return set()
        if word == each.characters:
            return set(each.row.open_ids - each.followed)
        rest = spelled[len(each.spelled) :]
        spellings = [each.typed + rest]
        if each.text_end.at_start and self.codec.adds_space:
            spellings.append(b" " + rest)
        least = len(each.typed) or 1
        ids = {i for spelling in spellings for i in self.codec.beginnings.prefixes(spelling, least)}
        return {i for i in ids - each.followed if self._fits(each, i, word)}

    def _fits(self, each: Beginning, token_id: int, word: str) -> bool:
        """Whether a beginning and the token after it spell a word, or may still become it."""
        text, _ = each.text_end.decode(token_id, len(each.typed))
        characters = each.characters + text
        size = first_word_size(characters, self.before)
        if size is not None:
            return characters[:size] == word
        return word.startswith(characters) or characters.startswith(word)


def _child(beginning: Beginning) -> Node:
    return beginning.parent.tree.expand(beginning.parent, beginning.token_ids[-1])


def node_of(beginning: Beginning) -> Node:
    """Return the node of a beginning's last token, created if it is missing; `parent` if it has no tokens."""
    return _child(beginning) if beginning.token_ids else beginning.parent


def _leads_to(each: Beginning, word: str, spelled: bytes) -> bool:
    """Whether tokens after a beginning may complete a word, whose bytes are `spelled`; False for ""."""
    if not word:
        return False
    return word == each.characters or spelled.startswith(each.spelled)


def _is_word(text: str) -> bool:
    """Whether a text is a word: it has more than white space, or a line break, and no replacement character."""
    return _is_readable(text) and bool(text.strip() or any(character in LINE_BREAKS for character in text))


def _is_readable(word: str) -> bool:
    return "\ufffd" not in word
