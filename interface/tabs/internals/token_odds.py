"""What the Internals tab may ask of the server: what the model thought at every token of a text or a conversation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from interface.server.branch_request import BranchRequest
from interface.server.page_session import PageSession, View
from lookahead_core.errors import LookaheadError
from lookahead_core.serving.json_values import number

if TYPE_CHECKING:
    from lookahead_core import Model
    from lookahead_core.document.results import Cost
    from lookahead_core.serving.call_document import CallDocument

MOST_TEXT = 20_000
"""Characters, of all messages together."""
MOST_TOKENS = 2_000
"""Of each of them the page has a box, and the odds of what might have come."""
ALTERNATIVES = 10
DIGITS = 6
"""Enough for whatever the page shows."""
KEPT = 64
"""Of how many tokens at each place the page can tell the odds at any temperature."""


@dataclass(frozen=True)
class InternalsRequest(BranchRequest):
    """A text, or else a conversation, to be looked into."""

    messages: Any = None
    """As the page has sent them; whoever reads them checks them."""

    @classmethod
    def of(cls, given: object) -> InternalsRequest:
        found = given if isinstance(given, dict) else {}
        messages = found.get("messages")
        plain = {"role": None, "instruction": None, "source": None, "accepted": None, "ahead": False}
        text = found.get("text") if messages is None else ""
        asked = replace(cast("InternalsRequest", super().of(found | plain | {"text": text})), messages=messages)
        if (length := asked.length) > MOST_TEXT:
            raise ValueError(f"There are {length:,} characters, and {MOST_TEXT:,} are allowed here: shorten the text.")
        return asked

    @property
    def length(self) -> int:
        """How many characters a person has written, as far as they are any."""
        messages = self.messages if isinstance(self.messages, list) else []
        contents = [message.get("content") for message in messages if isinstance(message, dict)]
        return len(self.text) + sum(len(content) for content in contents if isinstance(content, str))


class InternalsSession(PageSession):
    """What one page looks into: of what it has looked into last, a beginning is not read again."""

    def __init__(self, model: Model) -> None:
        from lookahead_core.serving.calls import Calls
        from lookahead_core.serving.tree_pool import TreePool

        super().__init__(model)
        # One tree: the odds of two thousand tokens take some ten megabytes.
        self._calls = Calls(model, TreePool(most=1))

    def answers(self, asked: BranchRequest) -> Iterator[View]:
        """How far the reading is, and then every token with what was thought there."""
        from lookahead_core.document.generation_start import CostMeter

        assert isinstance(asked, InternalsRequest)
        with self._calls.place(asked.text if asked.messages is None else None, asked.messages, grows=False) as place:
            if (total := len(place.tokens)) > MOST_TOKENS:
                raise LookaheadError(
                    f"There are {total:,} tokens, and {MOST_TOKENS:,} are shown at most: shorten the text."
                )
            meter = CostMeter(place.document.model.engine, place.document.tree)
            for read in place.evaluated():
                yield {"state": "thinking", "reading": [read, total]}
            yield {"state": "settled", "view": as_json(place, meter.cost())}


def as_json(place: CallDocument, cost: Cost) -> View:
    """Every token, at last the one to come, with alternatives by their ids; and what those ids spell.

    `nodes[i]` are the odds after token i, packed so that a page can heat them itself.
    """
    from lookahead_core.serving.json_view import pack

    lines, said = place.entries(ALTERNATIVES), place.said
    shown = [line["id"] for line in lines[:-1]] + [one["id"] for line in lines for one in line["alternatives"]]
    return {
        "tokens": [_token(line, place.text) for line in lines],
        "nodes": pack(said, KEPT),
        "entropies": [round(one.entropy, 4) for one in said],
        "spelled": {str(token_id): place.spelled(token_id) for token_id in dict.fromkeys(shown)},
        "cost": {"passes": cost.passes, "tokens": cost.tokens, "seconds": cost.seconds},
    }


def _token(line: dict[str, Any], text: str) -> View:
    return {
        "id": line["id"],
        "text": text[line["start"] : line["end"]],
        "message": line["message"],
        "logprob": number(line["logprob"], DIGITS),
        "rank": line["rank"],
        "alternatives": [[one["id"], number(one["logprob"], DIGITS)] for one in line["alternatives"]],
    }
