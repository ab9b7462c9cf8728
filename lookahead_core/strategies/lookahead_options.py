"""The options of a lookahead, checked when they are made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from lookahead_core.text.codec import SURROGATE
from lookahead_core.validation import as_token_id, check_choice, check_integer, check_number, parse_options, short_repr

Mode: TypeAlias = Literal["likely", "every_level", "forks", "best_first", "sampled", "diverse", "surprising"]
"""How branches are chosen; `LookaheadKeywords.mode` explains each value."""
Until: TypeAlias = Literal["tokens", "word", "clause", "sentence", "line"]
"""The unit of text at whose end branches end; "tokens" is none: they end by number of tokens alone."""
Odds: TypeAlias = Literal["tokens", "words"]
"""What a share is the probability of; `LookaheadKeywords.odds` explains each value."""
MODES: tuple[Mode, ...] = get_args(Mode)
"""Values of the option `mode`."""
UNTIL: tuple[Until, ...] = get_args(Until)
"""Values of the option `until`."""
ODDS: tuple[Odds, ...] = get_args(Odds)
"""Values of the option `odds`."""
MAX_BRANCHES = 400
"""Maximum number of branches in mode "every_level"."""
MAX_BANNED = 1000
"""Maximum number of token ids in `banned`."""
MAX_WORD = 40
"""Maximum number of characters in `towards` and `avoid`."""
MAX_SEED = 2**53
"""Highest seed: up to here JavaScript represents all integers exactly."""
INTEGER_RANGES = {
    "k": (1, 20),
    "depth": (1, 100),
    "branch_levels": (1, 8),
    "branch_total": (0, MAX_BRANCHES),
    "split_limit": (1, 20),
    "budget": (1, 4096),
    "width": (1, 256),
    "seed": (0, MAX_SEED),
}
"""Lowest and highest value of each integer option, both allowed."""
NUMBER_RANGES = {
    "cutoff": (0.0, 1.0),
    "slope": (1.0, 100.0),
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "contrast": (0.0, 100.0),
    "floor": (0.0, 1.0),
}
"""Lowest and highest value of each number option, both allowed, except that `top_p` must be more than 0."""


@dataclass(frozen=True)
class LookaheadOptions:
    """The options of a lookahead; `LookaheadKeywords` explains each. `banned` becomes a frozenset.

    Making them raises a ValueError for a wrong value, or for options that together make too many branches.
    """

    k: int = 5
    depth: int = 5
    mode: Mode = "likely"
    until: Until = "tokens"
    branch_levels: int = 2
    branch_total: int = 0
    cutoff: float = 0.15
    slope: float = 1.0
    split_limit: int = 3
    budget: int = 64
    width: int = 16
    contrast: float = 10.0
    floor: float = 0.003
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0
    banned: Collection[int] = frozenset()
    heal: bool = False
    speculate: bool = False
    stop_at_repetition: bool = False
    towards: str = ""
    avoid: str = ""
    odds: Odds = "tokens"

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> LookaheadOptions:
        """Make the options from a dictionary of keyword arguments; options that it lacks have their defaults.

        A ValueError names an unknown option or a wrong value.
        """
        return parse_options(cls, options, "lookahead")

    def __post_init__(self) -> None:
        for name, (low, high) in INTEGER_RANGES.items():
            check_integer(name, getattr(self, name), low, high)
        for name, bounds in NUMBER_RANGES.items():
            check_number(name, getattr(self, name), *bounds)
        for name, allowed in (("mode", MODES), ("until", UNTIL), ("odds", ODDS)):
            check_choice(name, getattr(self, name), allowed)
        if self.top_p == 0:
            raise ValueError(f"top_p is {short_repr(self.top_p)}, and must be more than 0.")
        for name in ("heal", "speculate", "stop_at_repetition"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {short_repr(getattr(self, name))}, and must be True or False.")
        object.__setattr__(self, "banned", _checked_ban(self.banned))
        for name in ("towards", "avoid"):
            _check_word(name, getattr(self, name))
        if self.towards and self.avoid:
            raise ValueError("towards and avoid are both set; name a word in one of the two.")
        if self.odds == "words":
            self._check_words()
        rows = self.branch_total or self.k ** min(self.branch_levels, self.depth)
        if self.mode == "every_level" and rows > MAX_BRANCHES:
            raise ValueError(
                f"branch_levels is {self.branch_levels!r}, which with k = {self.k} makes more than {MAX_BRANCHES} "
                "branches; ask for fewer levels or a smaller k."
            )

    def _check_words(self) -> None:
        """Raise a ValueError for options that cannot be combined with `odds="words"`."""
        if self.mode != "likely":
            raise ValueError(f'mode is {short_repr(self.mode)}, and must be "likely" with odds="words".')
        if self.word:
            raise ValueError('odds is "words", and must be "tokens" with towards or avoid.')
        if self.temperature != 1 or self.top_p != 1:
            raise ValueError(
                f"temperature is {self.temperature!r} and top_p {self.top_p!r}, and both must be 1 with "
                'odds="words": the odds of words are those that the model gives.'
            )

    @property
    def is_greedy_to_depth(self) -> bool:
        """Whether the mode is "likely", `until` is "tokens", and `banned`, `towards` and `avoid` are empty.

        `heal`, `speculate` and `stop_at_repetition` do not count.
        """
        return self.mode == "likely" and self.until == "tokens" and not self.banned and not self.word

    @property
    def word(self) -> str:
        """The word of the option `towards` or `avoid`; empty if neither is set. Both cannot be."""
        return self.towards or self.avoid

    def check_vocabulary(self, vocabulary: int) -> None:
        """Raise a ValueError if a banned id is not below `vocabulary`, the number of ids, or if all ids are banned."""
        unknown = [token_id for token_id in self.banned if token_id >= vocabulary]
        if unknown:
            raise ValueError(f"banned holds {unknown[0]}, and must hold whole numbers from 0 to {vocabulary - 1}.")
        if len(self.banned) == vocabulary:
            raise ValueError("banned holds every token there is; leave at least one.")


def _check_word(name: str, word: object) -> None:
    """Raise a ValueError unless a word option is a string of at most MAX_WORD characters; it may be empty.

    White space around it and halves of surrogate pairs are refused. `name` is the option's name in the error.
    """
    if not isinstance(word, str):
        raise ValueError(f"{name} is {short_repr(word)}, and must be a string.")
    if len(word) > MAX_WORD:
        raise ValueError(f"{name} has {len(word):,} characters, and may have at most {MAX_WORD}.")
    if word != word.strip():
        raise ValueError(f"{name} is {short_repr(word)}, and must not begin or end with white space.")
    if SURROGATE.search(word):
        raise ValueError(f"{name} is {short_repr(word)}, half of a surrogate pair; remove it.")


def _checked_ban(banned: object) -> frozenset[int]:
    """Return the option `banned` as a set.

    Raises a ValueError unless it is a collection, no string, of at most MAX_BANNED integers from 0.
    """
    if isinstance(banned, str | bytes) or not isinstance(banned, Collection):
        raise ValueError(f"banned is {short_repr(banned)}, and must be a list of token ids.")
    if len(banned) > MAX_BANNED:
        raise ValueError(f"banned holds {len(banned):,} ids, and may hold at most {MAX_BANNED:,}.")
    for token_id in banned:
        if as_token_id(token_id) < 0:
            raise ValueError(f"banned holds {short_repr(token_id)}, and must hold whole numbers from 0.")
    return frozenset(map(as_token_id, banned))
