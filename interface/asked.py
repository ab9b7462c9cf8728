"""What a page asks for, from whatever a page, or anybody else, has sent: checked, or refused in a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lookahead_core import chat

if TYPE_CHECKING:
    from lookahead_core.document import Accepted

MOST_CHARACTERS = 200_000
MOST_BRANCHES = 20
MOST_DEPTH = 40
MOST_ROWS = 100
"""More than anybody reads; above it only the first level branches."""
MOST_ACCEPTED = 64
MOST_NUMBER = 2**53
"""Up to here a script counts without rounding."""
_PAGE = re.compile(r"[A-Za-z0-9_-]{16,64}")


@dataclass(frozen=True)
class Asked:
    """Branches for what stands before the caret of a page."""

    page: str
    """Whose document: a secret that the page has made up."""
    number: int
    """Counts a page's requests: a newer one takes the place of older ones."""
    revision: int
    """Of the text: told back with every answer."""
    text: str
    accepted: tuple[Accepted, ...] = ()
    """What was accepted, and not typed, since the last answer."""
    instruction: str | None = None
    ahead: bool = True
    """Whether to go on with what might be clicked, once this is answered."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What is asked of the lookahead itself."""

    @classmethod
    def of(cls, given: object) -> Asked:
        found = given if isinstance(given, dict) else {}
        return cls(
            page=page_of(found),
            number=whole("number", found.get("number"), 0, MOST_NUMBER),
            revision=whole("revision", found.get("revision"), 0, MOST_NUMBER),
            text=_text(found.get("text")),
            accepted=_accepted(found.get("accepted")),
            instruction=_instruction(found.get("instruction")),
            ahead=found.get("ahead") is not False,
            options=_options(found),
        )


def page_of(given: object) -> str:
    """Whose request this is."""
    page = given.get("page") if isinstance(given, dict) else None
    if not isinstance(page, str) or not _PAGE.fullmatch(page):
        raise ValueError("The page does not say which one it is; load it again.")
    return page


def whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number within its bounds, or a sentence."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}.")
    return value


def _options(found: dict[str, Any]) -> dict[str, Any]:
    """Options of a lookahead. What is said of the odds matters only where tokens are drawn by them."""
    from lookahead_core.strategies.lookahead import Options

    options = {
        "k": whole("k", found.get("k", 5), 1, MOST_BRANCHES),
        "depth": whole("depth", found.get("depth", 5), 1, MOST_DEPTH),
        "mode": found.get("mode", "likely"),
        "until": found.get("until", "tokens"),
        "banned": tuple(found.get("banned") or ()) if isinstance(found.get("banned"), list | None) else None,
    }
    if options["mode"] == "every_level":
        options["branch_levels"] = 2 if options["k"] ** 2 <= MOST_ROWS else 1
    if options["mode"] == "sampled":
        options |= {name: found[name] for name in ("temperature", "top_p", "seed") if name in found}
    Options.of(options)
    return options


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("The text must be a string.")
    if len(value) > MOST_CHARACTERS:
        raise ValueError(
            f"The text has {len(value):,} characters before the caret, and {MOST_CHARACTERS:,} are allowed here: "
            "it stays as it is; to go on, shorten it or put the caret further up."
        )
    return value


def _instruction(value: object) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > chat.LONGEST:
        raise ValueError(f"The instruction must be a text of at most {chat.LONGEST:,} characters.")
    return value


def _accepted(value: object) -> tuple[Accepted, ...]:
    """Anything else than a list of what a page may have accepted means that nothing was."""
    from lookahead_core.document import Accepted

    if not isinstance(value, list) or len(value) > MOST_ACCEPTED:
        return ()
    found: list[Accepted] = []
    for entry in value:
        match entry:
            # Only ever further down the text: going back and forth in a long one would keep everybody waiting.
            case [int(before), list(ids), bool(healed)] if before > (found[-1].before if found else -1):
                if len(ids) <= MOST_DEPTH + 1 and all(type(token_id) is int for token_id in ids):
                    found.append(Accepted(before, tuple(ids), healed))
    return tuple(found)
