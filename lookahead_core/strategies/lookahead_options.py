"""What may be asked of a lookahead, checked once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from lookahead_core.validation import check_choice, check_integer, check_number, parse_options

Mode: TypeAlias = Literal["likely", "every_level", "forks", "best_first", "sampled"]
Until: TypeAlias = Literal["tokens", "word", "clause", "sentence", "line"]
MODES: tuple[Mode, ...] = get_args(Mode)
UNTIL: tuple[Until, ...] = get_args(Until)
MOST_BRANCHES = 400
MOST_BANNED = 1000
MOST_SEED = 2**53
"""Up to here a script in a page counts without rounding."""
WHOLE = {
    "k": (1, 20),
    "depth": (1, 100),
    "branch_levels": (1, 8),
    "split_limit": (1, 20),
    "budget": (1, 4096),
    "width": (1, 256),
    "seed": (0, MOST_SEED),
}
NUMBERS = {"cutoff": (0.0, 1.0), "slope": (1.0, 100.0), "temperature": (0.0, 2.0), "top_p": (0.0, 1.0)}


@dataclass(frozen=True)
class LookaheadOptions:
    """What may be asked of a lookahead; see `document.lookahead`."""

    k: int = 5
    """How many branches, 1 to 20."""
    depth: int = 5
    """How many tokens each, the first included, 1 to 100."""
    mode: Mode = "likely"
    """likely, every_level, forks, best_first or sampled."""
    until: Until = "tokens"
    """Branches end with this, where `depth` tokens reach so far: word, clause, sentence or line."""
    branch_levels: int = 2
    """every_level: at how many levels to branch."""
    cutoff: float = 0.15
    """forks: another token gets a branch of its own if it has at least this probability."""
    slope: float = 1.0
    """forks: the cutoff is multiplied by this at each further level."""
    split_limit: int = 3
    """forks: the most ways at one node."""
    budget: int = 64
    """best_first: how many nodes may be evaluated."""
    width: int = 16
    """best_first: how many nodes a pass takes; sixteen cost little more than one."""
    temperature: float = 1.0
    """sampled: 0 always takes the most likely token, up to 2."""
    top_p: float = 1.0
    """sampled: draw among the likeliest tokens that have this probability together."""
    seed: int = 0
    """sampled: the same seed draws the same branches."""
    banned: Collection[int] = frozenset()
    """Token ids that no branch may hold, at most 1,000. They have no share: all odds are renormalised without them."""
    heal: bool = False
    """Re-open the last typed token where the text ends inside a word or in spaces."""
    speculate: bool = False
    """Whether what branches go on with is drafted from the text, several tokens a pass; the branches are the same."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> LookaheadOptions:
        """Options from keyword arguments, every name and value checked."""
        return parse_options(cls, given, "lookahead")

    def __post_init__(self) -> None:
        for name, (low, high) in WHOLE.items():
            check_integer(name, getattr(self, name), low, high)
        for name, bounds in NUMBERS.items():
            check_number(name, getattr(self, name), *bounds)
        for name, allowed in (("mode", MODES), ("until", UNTIL)):
            check_choice(name, getattr(self, name), allowed)
        if self.top_p == 0:
            raise ValueError(f"top_p is {self.top_p!r}, and must be more than 0.")
        for name in ("heal", "speculate"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}, and must be True or False.")
        object.__setattr__(self, "banned", _checked_ban(self.banned))
        if self.mode == "every_level" and self.k ** min(self.branch_levels, self.depth) > MOST_BRANCHES:
            raise ValueError(
                f"branch_levels is {self.branch_levels!r}, which with k = {self.k} makes more than {MOST_BRANCHES} "
                "branches; ask for fewer levels or a smaller k."
            )

    @property
    def is_plain(self) -> bool:
        """Whether branches are the likeliest tokens with what follows greedily, so deep, whatever they spell."""
        return self.mode == "likely" and self.until == "tokens" and not self.banned

    def check_vocabulary(self, vocabulary: int) -> None:
        """Raise where a banned token is none of the model's."""
        strangers = [token_id for token_id in self.banned if token_id >= vocabulary]
        if strangers:
            raise ValueError(f"banned holds {strangers[0]}, and must hold whole numbers from 0 to {vocabulary - 1}.")
        if len(self.banned) == vocabulary:
            raise ValueError("banned holds every token there is; leave at least one.")


def _checked_ban(given: object) -> frozenset[int]:
    if isinstance(given, str | bytes) or not isinstance(given, Collection):
        raise ValueError(f"banned is {given!r}, and must be a list of token ids.")
    if len(given) > MOST_BANNED:
        raise ValueError(f"banned holds {len(given):,} ids, and may hold at most {MOST_BANNED:,}.")
    for token_id in given:
        if isinstance(token_id, bool) or not isinstance(token_id, int) or token_id < 0:
            raise ValueError(f"banned holds {token_id!r}, and must hold whole numbers from 0.")
    return frozenset(given)
