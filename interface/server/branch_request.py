"""The request for branches: checks the JSON that a page sends and refuses invalid fields in plain sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from interface.server.column_request import Column, columns_from_json
from interface.server.prefetched_views import AHEAD_NODES
from lookahead_core.errors import LookaheadError
from lookahead_core.text import chat

if TYPE_CHECKING:
    from lookahead_core.document.branch_edit import BranchEdit
    from lookahead_core.document.document import AcceptedTokens

MOST_CHARACTERS = 200_000
"""Characters of a text, and of all earlier messages together."""
MOST_SOURCE = 100_000
"""Characters of a source text; the model's context may allow fewer."""
MOST_BRANCHES = 20
"""The largest `k` of a request: branches of a view."""
MOST_DEPTH = 40
"""The largest `depth` of a request: tokens of a branch."""
FORK_CUTOFF = 0.05
"""The `cutoff` of mode `forks`: five rows of depth 5 are found after all of 20 beginnings, with 0.15 after 3."""
MOST_ROW_TOKENS = MOST_DEPTH + 1
"""Maximum number of tokens of an edited row; accepted pieces have no more either."""
MOST_EDITS = 8
"""Maximum number of edited rows in a request."""
MOST_MESSAGES = 100
"""Earlier messages of a conversation."""
MOST_ACCEPTED = 10_000
"""Accepted pieces of a request that are used, the last ones: after a restart of the server a page sends all of them."""
MOST_NUMBER = 2**53
"""The largest integer that JavaScript represents exactly."""
TURN_ROLES = ("user", "assistant")
"""Allowed roles of the message that is being written."""
_PAGE_ID = re.compile(r"[A-Za-z0-9_-]{16,64}")


class SourceTooLong(LookaheadError, ValueError):
    """Raised for a source with too many characters for a request, or with too many tokens for the model's context.

    `tokens` is the number of tokens of source and instruction together, `most` the maximum; both None if not counted.
    """

    reason = "source_too_long"

    def __init__(self, message: str, tokens: int | None = None, most: int | None = None) -> None:
        super().__init__(message)
        self.details = {"tokens": tokens, "most": most}


@dataclass(frozen=True)
class MessageContext:
    """A conversation: its earlier messages, and the role of the message that is being written, without its content."""

    earlier: tuple[tuple[str, str], ...]
    """Role and content of each earlier message."""
    role: str
    """The role of the message that is being written."""

    @property
    def messages(self) -> list[dict[str, str]]:
        """All messages as a chat template takes them, `{"role": …, "content": …}`, in order.

        The last one has the role of the message that is being written, and an empty content.
        """
        return [{"role": role, "content": content} for role, content in (*self.earlier, (self.role, ""))]


@dataclass(frozen=True)
class RowEdit:
    """An edit of a row of the view."""

    row: tuple[int, ...]
    """The token ids of the row to replace, of the view or of an earlier edit; without such a row, one is added."""
    edit: BranchEdit
    """The row's tokens that are kept, and the text that follows them."""


@dataclass(frozen=True)
class BranchRequest:
    """A page's request for branches that continue the text before its caret, with all fields checked.

    `from_json` makes it; `PageSession.answer_steps` answers it.
    """

    page: str
    """The page's id: a random secret that the page makes at its load, another one for each of its tabs."""
    number: int
    """The request's number within its page: a request supersedes those with lower numbers."""
    revision: int
    """The text's revision in the page; every answer repeats it."""
    text: str
    """The text before the caret."""
    accepted: tuple[AcceptedTokens, ...] = ()
    """Parts of the text that were accepted from branches since the last response, with their token ids."""
    instruction: str | None = None
    """What the text shall do with the source; None if the request has none."""
    source: str | None = None
    """The source text, if the text is a rewriting of it; else None."""
    conversation: MessageContext | None = None
    """The conversation, if the text is a message in one; else None."""
    columns: tuple[Column, ...] = ()
    """The columns in which the text is continued side by side; () for a single view."""
    ahead: bool = True
    """Whether to compute the views after likely clicks once this request is answered."""
    ahead_tokens: int = AHEAD_NODES
    """The most tokens that are evaluated for these views."""
    edits: tuple[RowEdit, ...] = ()
    """The person's edits of rows, in order."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Checked keyword arguments for `Document.lookahead`, `k` and `depth` among them."""
    words_left_out: bool = False
    """Whether the page asked for odds of words that the model's server cannot give; `options` has no `odds` then."""
    visitor: Any = None
    """For whom tasks on shared GPUs are dispatched: a `shared_gpu.Visitor`; None on other hardware."""

    @classmethod
    def from_json(cls, payload: object) -> BranchRequest:
        """Return the request in a page's JSON object; raise ValueError with a sentence if it is invalid.

        Required fields are `page`, `number`, `revision` and `text`. Invalid entries of `accepted` are left out without
        an error (see `_accepted`), and unknown fields are ignored.
        """
        fields = payload if isinstance(payload, dict) else {}
        return cls(
            page=page_id(fields),
            number=whole("number", fields.get("number"), 0, MOST_NUMBER),
            revision=whole("revision", fields.get("revision"), 0, MOST_NUMBER),
            text=_text(fields.get("text")),
            accepted=_accepted(fields.get("accepted")),
            instruction=_optional_text("instruction", fields.get("instruction"), chat.MAX_INSTRUCTION),
            source=_optional_text("source", fields.get("source"), MOST_SOURCE),
            conversation=_conversation(fields.get("role"), fields.get("messages")),
            columns=columns_from_json(fields),
            ahead=fields.get("ahead") is not False,
            edits=_edits(fields.get("edits")),
            options=_options(fields),
        )

    def without_words(self) -> BranchRequest:
        """Return the same request with odds of tokens; `words_left_out` says whether it asked for odds of words."""
        options = {name: value for name, value in self.options.items() if name != "odds"}
        return replace(self, options=options, words_left_out=self.options.get("odds") == "words")

    def at_temperature(self, temperature: float) -> BranchRequest:
        """Return a copy of this request, which must be of mode `sampled`, that draws at another temperature."""
        return replace(self, options={**self.options, "temperature": temperature})

    @property
    def message(self) -> MessageContext | None:
        """The conversation whose last message is the text; None for a plain text.

        It is `conversation` if that is set. Otherwise an instruction or a source makes one: a single user message, of
        the instruction, an empty line and the source, or the one that is there; the text is the assistant's answer.
        """
        user_message = "\n\n".join(part for part in (self.instruction, self.source) if part is not None)
        return self.conversation or (MessageContext((("user", user_message),), "assistant") if user_message else None)


def page_id(payload: object) -> str:
    """Return `page`, the page's id, from the JSON that it sent; raise ValueError if that is no object with a valid id.

    An id has 16 to 64 ASCII letters, digits, hyphens and underscores.
    """
    page = payload.get("page") if isinstance(payload, dict) else None
    if not isinstance(page, str) or not _PAGE_ID.fullmatch(page):
        raise ValueError("The request lacks the id of its page: load the page again.")
    return page


def whole(name: str, value: object, low: int, high: int) -> int:
    """Return `value` as int; raise ValueError unless it is a whole number from `low` to `high`, both included.

    A float without a fraction counts, a bool does not. `name` is the field's name in the error's sentence.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}.")
    return value


def _options(fields: dict[str, Any]) -> dict[str, Any]:
    """Return options for `Document.lookahead` from the fields of a page's JSON; raise ValueError for invalid ones.

    `k`, `depth`, `mode`, `until` and `banned` have defaults and are always set; `towards` and `avoid` only if given,
    and `odds` only if it is "words", in mode `likely` at temperature and top-p 1 without these two: at others the page
    computes the odds of tokens itself, and the likeliest rows are the same. In mode `every_level`, `branch_total` is
    `k`, so that a view has at most k rows in every mode. In mode `forks`, `cutoff` is FORK_CUTOFF, and `split_limit` is
    `k`: no row may be left out for one with a lower share. `temperature`, `top_p` and `seed` are set in mode `sampled`
    only, and then only if they are given.
    """
    from lookahead_core.strategies.lookahead_options import ODDS, LookaheadOptions
    from lookahead_core.validation import check_choice

    options = {
        "k": whole("k", fields.get("k", 5), 1, MOST_BRANCHES),
        "depth": whole("depth", fields.get("depth", 5), 1, MOST_DEPTH),
        "mode": fields.get("mode", "likely"),
        "until": fields.get("until", "tokens"),
        "banned": tuple(fields.get("banned") or ()) if isinstance(fields.get("banned"), list | None) else None,
    }
    check_choice("odds", fields.get("odds", "tokens"), ODDS)
    if options["mode"] == "likely" and _wants_words(fields) and not (fields.get("towards") or fields.get("avoid")):
        options["odds"] = "words"
    if options["mode"] == "every_level":
        options["branch_total"] = options["k"]
    if options["mode"] == "forks":
        options |= {"cutoff": FORK_CUTOFF, "split_limit": options["k"]}
    if options["mode"] == "sampled":
        options |= {name: fields[name] for name in ("temperature", "top_p", "seed") if name in fields}
    options |= {name: fields[name] for name in ("towards", "avoid") if fields.get(name)}
    LookaheadOptions.of(options)
    return options


def _wants_words(fields: dict[str, Any]) -> bool:
    """Whether a page's JSON in mode `likely` asks for odds of words, which exist at temperature and top-p 1 only.

    Raises ValueError for an invalid temperature or top-p.
    """
    from lookahead_core.strategies.lookahead_options import LookaheadOptions

    heat = LookaheadOptions.of({name: fields[name] for name in ("temperature", "top_p") if name in fields})
    return fields.get("odds") == "words" and heat.temperature == 1 and heat.top_p == 1


def _edits(value: object) -> tuple[RowEdit, ...]:
    """Return the edits of rows in a page's JSON, in order; () if `value` is None.

    Each is {"row": token ids, "before": token ids, "text": text}, and may have "earlier", a list of the [start, end) of
    the tokens in "before" that earlier changes of the row put there. Raises ValueError for more than MOST_EDITS, more
    than MOST_ROW_TOKENS ids, ids that are not whole numbers from 0, spans that are not in "before", or a wrong text.
    """
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MOST_EDITS:
        raise ValueError(f"edits must be a list of at most {MOST_EDITS} changes of rows.")
    return tuple(_edit(entry) for entry in value)


def _edit(entry: object) -> RowEdit:
    from lookahead_core.document.branch_edit import BranchEdit

    match entry:
        case {"row": list(row), "before": list(before), "text": str(text), **others}:
            earlier = _spans(others.get("earlier", []), len(before))
            return RowEdit(_token_ids(row), BranchEdit(_token_ids(before), text, earlier=earlier))
    raise ValueError('Each change of a row must be {"row": token ids, "before": token ids, "text": text}.')


def _spans(value: object, end: int) -> tuple[tuple[int, int], ...]:
    """Return a list of [start, end] as pairs; raise ValueError for more than MOST_EDITS, or one that is wrong."""
    if isinstance(value, list) and len(value) <= MOST_EDITS:
        spans = [tuple(span) for span in value if isinstance(span, list) and all(type(place) is int for place in span)]
        if len(spans) == len(value) and all(len(span) == 2 and 0 <= span[0] < span[1] <= end for span in spans):
            return tuple((start, stop) for start, stop in spans)
    raise ValueError(f"The earlier changes of a row must be at most {MOST_EDITS} pairs of places in its kept tokens.")


def _token_ids(ids: list[object]) -> tuple[int, ...]:
    if len(ids) > MOST_ROW_TOKENS or not all(type(token_id) is int and token_id >= 0 for token_id in ids):
        raise ValueError(f"The ids of a row must be at most {MOST_ROW_TOKENS} whole numbers from 0.")
    return tuple(token_id for token_id in ids if isinstance(token_id, int))


def _text(value: object) -> str:
    """Return `value`; raise ValueError unless it is a string, which may be empty, of at most MOST_CHARACTERS."""
    if not isinstance(value, str):
        raise ValueError("The text must be a string.")
    if len(value) > MOST_CHARACTERS:
        raise ValueError(
            f"The text has {len(value):,} characters before the caret, and at most {MOST_CHARACTERS:,} are allowed. "
            "It stays as it is: to continue, shorten it or move the caret up."
        )
    return value


def _optional_text(name: str, value: object, most: int) -> str | None:
    """Return `value`, or None if it is None or empty; raise ValueError if it is no string or too long.

    At most `most` characters are allowed; `name` is the field's name in the error's sentence.
    """
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ValueError(f"The {name} must be a text of at most {most:,} characters.")
    if len(value) > most:
        kind = SourceTooLong if name == "source" else ValueError
        raise kind(f"The {name} has {len(value):,} characters, and at most {most:,} are allowed: shorten it.")
    return value


def _conversation(role: object, messages: object) -> MessageContext | None:
    """Return the conversation of the earlier `messages` and the role of the new one; None if `role` is None.

    Raises ValueError unless the role is one of TURN_ROLES, and `messages` is a list, which may be empty, of at most
    MOST_MESSAGES valid messages (see `_message`) with at most MOST_CHARACTERS in all.
    """
    if role is None:
        return None
    if role not in TURN_ROLES:
        raise ValueError(f"role must be {' or '.join(TURN_ROLES)}: it says who writes the text.")
    if not isinstance(messages, list):
        raise ValueError('messages must be a list of {"role": …, "content": …}.')
    if len(messages) > MOST_MESSAGES:
        raise ValueError(
            f"There are {len(messages):,} messages, and at most {MOST_MESSAGES} are allowed: "
            "go back to an earlier one, or start a new conversation."
        )
    earlier = tuple(_message(number, message) for number, message in enumerate(messages, start=1))
    if (length := sum(len(content) for _, content in earlier)) > MOST_CHARACTERS:
        raise ValueError(
            f"The messages have {length:,} characters, and at most {MOST_CHARACTERS:,} are allowed: "
            "go back to an earlier one, or start a new conversation."
        )
    return MessageContext(earlier, str(role))


def _message(number: int, message: object) -> tuple[str, str]:
    """Return role and content of a message; raise ValueError unless it is `{"role": …, "content": …}`.

    The role must be one of `chat.ROLES`, the content a string; other keys are ignored. The error's sentence has
    `number`, the message's number from 1.
    """
    match message:
        case {"role": str(role), "content": str(content)} if role in chat.ROLES:
            return role, content
    raise ValueError(
        f'Message {number} must be {{"role": …, "content": …}}; role is one of {", ".join(chat.ROLES)}, '
        "and content is a string."
    )


def _accepted(value: object) -> tuple[AcceptedTokens, ...]:
    """Return the valid ones of the last MOST_ACCEPTED entries of a list, in order; () if `value` is no list.

    A valid entry is [position, token ids, healed], as in `AcceptedTokens`: an int, a list of at most MOST_DEPTH + 1
    ints, and a bool. The position, in characters, is not negative and larger than that of the valid entry before. Other
    entries are left out without an error: a page that sends one every time could otherwise never continue.
    """
    from lookahead_core.document.document import AcceptedTokens

    pieces: list[AcceptedTokens] = []
    for entry in value[-MOST_ACCEPTED:] if isinstance(value, list) else ():
        match entry:
            # Positions must increase: moving back and forth in a long text would make everybody wait.
            case [position, list(ids), bool(healed)] if _is_further(position, pieces):
                if len(ids) <= MOST_DEPTH + 1 and all(type(token_id) is int for token_id in ids):
                    pieces.append(AcceptedTokens(position, tuple(ids), healed))
    return tuple(pieces)


def _is_further(position: object, pieces: Sequence[AcceptedTokens]) -> bool:
    """Whether `position` is an int, not negative, and greater than `before` of the last piece if there is one."""
    return type(position) is int and position > (pieces[-1].before if pieces else -1)
