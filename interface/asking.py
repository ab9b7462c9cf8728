"""What a page asks for, checked, and how it is answered: one view after each pass, until a newer text is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lookahead_core.store import Held
from lookahead_core.view import as_json

if TYPE_CHECKING:
    from lookahead_core import Lookahead, LookaheadStep

MOST_CHARACTERS = 200_000
MOST_BRANCHES = 20
MOST_DEPTH = 40
MOST_REVISION = 2**53
"""Up to here a script counts without rounding."""

View = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """Branches for what stands before the caret. Revisions tell older requests of a page from newer ones."""

    text: str
    revision: int
    k: int = 5
    depth: int = 5
    accepted: tuple[int, ...] = ()
    """The tokens that were accepted from the latest view to come to this text."""

    @classmethod
    def of(cls, given: object, k: object, depth: object) -> Asked:
        """From whatever a page, or anybody else, has sent."""
        found = given if isinstance(given, dict) else {}
        return cls(
            text=_text(found.get("text")),
            revision=whole("revision", found.get("revision"), 0, MOST_REVISION),
            k=whole("k", k, 1, MOST_BRANCHES),
            depth=whole("depth", depth, 1, MOST_DEPTH),
            accepted=_ids(found.get("accepted")),
        )


def whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number within its bounds, or a sentence."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}.")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("The text must be a string.")
    if len(value) > MOST_CHARACTERS:
        raise ValueError(
            f"The text has {len(value):,} characters before the caret, and {MOST_CHARACTERS:,} are allowed here: "
            "it stays as it is; to go on, shorten it or put the caret further up."
        )
    return value


def _ids(value: object) -> tuple[int, ...]:
    """The accepted tokens, a re-opened one among them; anything else than a short list of ids means that none were."""
    if not isinstance(value, list) or len(value) > MOST_DEPTH + 1 or not all(type(item) is int for item in value):
        return ()
    return tuple(value)


def answers(held: Held, asked: Asked) -> Iterator[View]:
    """The view after each pass; ends early, and silently, when somebody has asked about a newer text.

    The lock is held for a pass and never across a yield: the next step may come late, or never.
    """
    held.note(asked.revision)
    if not asked.text:
        yield {"state": "empty", "revision": asked.revision, "branches": []}
        return
    steps, view = None, None
    while held.newest <= asked.revision:
        with held.lock:
            if held.newest > asked.revision:
                return
            steps = steps or _begin(held, asked)
            step = next(steps, None)
            view = view if step is None else _view(held, asked, step)
        if step is None:
            yield {**(view or {}), "state": "settled", "revision": asked.revision}
            return
        yield view


def _begin(held: Held, asked: Asked) -> Iterator[LookaheadStep]:
    held.take(asked.text, asked.accepted)
    # The typed token that healing re-opens counts as one of a branch's, and is none that a person sees.
    depth = asked.depth + bool(held.document.reopens)
    return held.document.lookahead_steps(k=asked.k, depth=depth, heal=True)


def _view(held: Held, asked: Asked, step: LookaheadStep) -> View:
    view: View = {"state": "thinking", "revision": asked.revision}
    if step.tokens_to_read:
        return view | {"reading": [step.tokens_read, step.tokens_read + step.tokens_to_read]}
    held.shown = step.result
    return view | as_json(held.shown) | {"alone": _alone(held.shown, held.document.head.depth)}


def _alone(result: Lookahead, tokens: int) -> int:
    """How many tokens the model would have read with one request a branch, each from the start."""
    return sum(tokens - branch.healed + len(branch.token_ids) - 1 for branch in result.branches)
