"""The registry of the library's drafters, by name, and the check of the option `drafters`.

To add a drafter to the library, write a file beside this one and enter it in `DRAFTERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from lookahead_core.speculation.drafters.protocol import Drafter
from lookahead_core.speculation.drafters.successor_drafter import SuccessorDrafter
from lookahead_core.speculation.drafters.suffix_drafter import SuffixDrafter
from lookahead_core.speculation.ngram_index import NgramIndex
from lookahead_core.validation import short_repr

DRAFTERS: dict[str, Callable[[NgramIndex], Drafter]] = {
    "suffix": SuffixDrafter,
    "recycled": lambda index: SuccessorDrafter(),
}
"""By the name that the option `drafters` accepts: a function from a document's n-gram index to a new drafter for it."""
REQUIRED_MEMBERS = ("name", "hidden", "read", "hear", "start", "ways", "follow")
"""Members that a drafter must have."""


def checked_drafters(value: Any) -> tuple[Any, ...]:
    """Return the entries of the option `drafters`, unchanged, as a tuple, which may be empty.

    Each is a name in `DRAFTERS` or an object with REQUIRED_MEMBERS. A single name counts as a list of one. A ValueError
    is raised if `value` is no list or other collection, or if an entry is an unknown name, a class, or lacks a member.
    """
    drafters = (value,) if isinstance(value, str) else value
    if not isinstance(drafters, Collection):
        names = ", ".join(DRAFTERS)
        raise ValueError(f"drafters is {short_repr(value)}, and must be a list of {names}, or of your own drafters.")
    for drafter in drafters:
        if isinstance(drafter, type):
            raise ValueError(
                f"drafters holds the class {drafter.__name__}; pass an object of it: {drafter.__name__}()."
            )
        missing = [member for member in REQUIRED_MEMBERS if not hasattr(drafter, member)]
        if not isinstance(drafter, str) and len(missing) < len(REQUIRED_MEMBERS) and missing:
            raise ValueError(f"drafters holds {short_repr(drafter)}, which lacks {', '.join(missing)}; see `Drafter`.")
        if missing and drafter not in list(DRAFTERS):  # a list, because the entry may not be hashable
            names = ", ".join(DRAFTERS)
            raise ValueError(f"drafters holds {short_repr(drafter)}, and must hold {names}, or drafters of your own.")
    return tuple(drafters)
