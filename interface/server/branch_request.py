"""What a page asks for, from whatever a page, or anybody else, has sent: checked, or refused in a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lookahead_core.text import chat

if TYPE_CHECKING:
    from lookahead_core.document.document import AcceptedTokens

MOST_CHARACTERS = 200_000
MOST_SOURCE = 100_000
"""Of characters; a model's context may allow fewer."""
MOST_BRANCHES = 20
MOST_DEPTH = 40
MOST_MESSAGES = 100
MOST_ROWS = 100
"""More than anybody reads; above it only the first level branches."""
MOST_ACCEPTED = 10_000
"""Pieces that were accepted since the last answer: as many as a page keeps, in case that the server starts anew."""
MOST_NUMBER = 2**53
"""Up to here a script counts without rounding."""
WRITERS = ("user", "assistant")
_PAGE = re.compile(r"[A-Za-z0-9_-]{16,64}")


@dataclass(frozen=True)
class MessageContext:
    """A conversation up to the message that is being written."""

    said: tuple[tuple[str, str], ...]
    """Role and words of each earlier message."""
    role: str
    """Whose turn it is."""

    @property
    def messages(self) -> list[dict[str, str]]:
        """All of it, the message that is being written at its very beginning."""
        return [{"role": role, "content": content} for role, content in (*self.said, (self.role, ""))]


@dataclass(frozen=True)
class BranchRequest:
    """Branches for what stands before the caret of a page."""

    page: str
    """Whose document: a secret that the page has made up."""
    number: int
    """Counts a page's requests: a newer one takes the place of older ones."""
    revision: int
    """Of the text: told back with every answer."""
    text: str
    accepted: tuple[AcceptedTokens, ...] = ()
    """What was accepted, and not typed, since the last answer."""
    instruction: str | None = None
    source: str | None = None
    """What the text is a rewriting of."""
    talk: MessageContext | None = None
    """The conversation that the text is a message of."""
    ahead: bool = True
    """Whether to go on with what might be clicked, once this is answered."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What is asked of the lookahead itself."""

    @classmethod
    def of(cls, given: object) -> BranchRequest:
        found = given if isinstance(given, dict) else {}
        return cls(
            page=page_of(found),
            number=whole("number", found.get("number"), 0, MOST_NUMBER),
            revision=whole("revision", found.get("revision"), 0, MOST_NUMBER),
            text=_text(found.get("text")),
            accepted=_accepted(found.get("accepted")),
            instruction=_told("instruction", found.get("instruction"), chat.LONGEST),
            source=_told("source", found.get("source"), MOST_SOURCE),
            talk=_talk(found.get("role"), found.get("messages")),
            ahead=found.get("ahead") is not False,
            options=_options(found),
        )

    @property
    def message(self) -> MessageContext | None:
        """What the text is a message of, if of any: a conversation, or the answer to an instruction and a source."""
        told = "\n\n".join(part for part in (self.instruction, self.source) if part is not None)
        return self.talk or (MessageContext((("user", told),), "assistant") if told else None)


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
    """LookaheadOptions of a lookahead. What is said of the odds matters only where tokens are drawn by them."""
    from lookahead_core.strategies.lookahead_options import LookaheadOptions

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
    LookaheadOptions.of(options)
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


def _told(name: str, value: object, most: int) -> str | None:
    """What the model is told; nothing where that is empty."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ValueError(f"The {name} must be a text of at most {most:,} characters.")
    if len(value) > most:
        raise ValueError(f"The {name} has {len(value):,} characters, and {most:,} are allowed here: shorten it.")
    return value


def _talk(role: object, messages: object) -> MessageContext | None:
    """A conversation, where a role says whose turn it is."""
    if role is None:
        return None
    if role not in WRITERS:
        raise ValueError(f"role must be {' or '.join(WRITERS)}: it says who writes the text.")
    if not isinstance(messages, list):
        raise ValueError('messages must be a list of {"role": …, "content": …}.')
    if len(messages) > MOST_MESSAGES:
        raise ValueError(
            f"There are {len(messages):,} messages, and {MOST_MESSAGES} are allowed here: "
            "go back to an earlier one, or start a new conversation."
        )
    said = tuple(_said(number, message) for number, message in enumerate(messages, start=1))
    if (length := sum(len(content) for _, content in said)) > MOST_CHARACTERS:
        raise ValueError(
            f"The messages have {length:,} characters, and {MOST_CHARACTERS:,} are allowed here: "
            "go back to an earlier one, or start a new conversation."
        )
    return MessageContext(said, str(role))


def _said(number: int, message: object) -> tuple[str, str]:
    match message:
        case {"role": str(role), "content": str(content)} if role in chat.ROLES:
            return role, content
    raise ValueError(
        f'Message {number} must be {{"role": …, "content": …}}, a role of {", ".join(chat.ROLES)}, and a text.'
    )


def _accepted(value: object) -> tuple[AcceptedTokens, ...]:
    """The newest accepted pieces, as far as they make sense; where this is no list of them, nothing was accepted."""
    from lookahead_core.document.document import AcceptedTokens

    found: list[AcceptedTokens] = []
    for entry in value[-MOST_ACCEPTED:] if isinstance(value, list) else ():
        match entry:
            # Only ever further down the text: going back and forth in a long one would keep everybody waiting.
            case [before, list(ids), bool(healed)] if _is_further(before, found):
                if len(ids) <= MOST_DEPTH + 1 and all(type(token_id) is int for token_id in ids):
                    found.append(AcceptedTokens(before, tuple(ids), healed))
    return tuple(found)


def _is_further(before: object, found: Sequence[AcceptedTokens]) -> bool:
    """Whether this is a number of characters, and more than the last piece has before it."""
    return type(before) is int and before > (found[-1].before if found else -1)
