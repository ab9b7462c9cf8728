"""The server side of the Internals tab: every token of a text or a conversation with its probability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from interface.server.branch_request import BranchRequest
from interface.server.page_session import NODE_BYTES, PageSession, View
from lookahead_core.errors import LookaheadError
from lookahead_core.serving.json_values import finite_or_none

if TYPE_CHECKING:
    from lookahead_core import Model
    from lookahead_core.document.results import Cost
    from lookahead_core.serving.call_document import CallDocument

MOST_TEXT = 20_000
"""The most characters of a text, or of all messages together."""
MOST_TOKENS = 2_000
"""The most tokens of a text or conversation, each of which the page shows with its alternatives."""
ALTERNATIVES = 10
"""Likely tokens that are listed at each position."""
DIGITS = 6
"""Significant digits of numbers: more than the page shows."""
KEPT = 64
"""Tokens at each position whose probabilities the page can compute at any temperature."""


@dataclass(frozen=True)
class InternalsRequest(BranchRequest):
    """A request for all tokens of a text, or of a conversation if `messages` is not None, with their probabilities."""

    messages: Any = None
    """The messages of a conversation as the page has sent them, unchecked; None for a plain text."""

    @classmethod
    def from_json(cls, payload: object) -> InternalsRequest:
        """Return the request in a page's JSON; raise ValueError if it is invalid or has more than MOST_TEXT characters.

        With `messages`, even empty ones, the text is ignored; they are not checked here but by `answer_steps`. Role,
        instruction, source, `accepted` and `ahead` are ignored.
        """
        fields = payload if isinstance(payload, dict) else {}
        messages = fields.get("messages")
        plain = {"role": None, "instruction": None, "source": None, "accepted": None, "ahead": False}
        text = fields.get("text") if messages is None else ""
        request = cast("InternalsRequest", super().from_json(fields | plain | {"text": text}))
        request = replace(request, messages=messages)
        if (length := request.length) > MOST_TEXT:
            raise ValueError(
                f"There are {length:,} characters, and at most {MOST_TEXT:,} are allowed here: shorten the text."
            )
        return request

    @property
    def length(self) -> int:
        """The number of characters of the text and of all messages' contents; malformed messages count as empty."""
        messages = self.messages if isinstance(self.messages, list) else []
        contents = [message.get("content") for message in messages if isinstance(message, dict)]
        return len(self.text) + sum(len(content) for content in contents if isinstance(content, str))


class InternalsSession(PageSession):
    """The session of a page of the Internals tab: evaluates every token of a text or of a conversation; no branches.

    The token tree of the last text is kept for half an hour. If more than half of the tokens of the next text are a
    prefix that both share, this prefix is not evaluated again; otherwise the next text is evaluated as a whole.
    """

    def __init__(self, model: Model) -> None:
        from lookahead_core.serving.calls import Calls
        from lookahead_core.serving.tree_pool import TreePool

        super().__init__(model)
        # One tree only: the probabilities of two thousand tokens take about ten megabytes.
        self._trees = TreePool(capacity=1)
        self._calls = Calls(model, self._trees)

    @property
    def tree_bytes(self) -> int:
        """The approximate bytes of the kept tree and its predictions, see NODE_BYTES, without the KV cache.

        May be read from any thread. 0 while a request uses the tree: then the page is busy, and its session stays.
        """
        return NODE_BYTES * sum(tree.size for tree in self._trees.free_trees)

    def answer_steps(self, request: BranchRequest) -> Iterator[View]:
        """Evaluate every token: a generator of JSON values, with the progress after each pass.

        The progress is `reading`, a list [tokens evaluated, tokens in all]. The last value has the state "settled" and
        the result of `as_json` as `view`. `request` must be an InternalsRequest. Raises LookaheadError if there are no
        tokens, more than MOST_TOKENS, or more than the model's context, and ValueError for invalid messages.
        """
        from lookahead_core.document.cost_meter import CostMeter

        assert isinstance(request, InternalsRequest)
        text = request.text if request.messages is None else None
        with self._calls.open_document(text, request.messages, grows=False) as call_document:
            if (total := len(call_document.tokens)) > MOST_TOKENS:
                raise LookaheadError(
                    f"There are {total:,} tokens, and at most {MOST_TOKENS:,} are shown: shorten the text."
                )
            meter = CostMeter(call_document.document.model.engine, call_document.document.tree)
            for read in call_document.evaluate_steps():
                yield {"state": "thinking", "reading": [read, total]}
            yield {"state": "settled", "view": as_json(call_document, meter.cost())}


def as_json(call_document: CallDocument, cost: Cost) -> View:
    """Return the tokens of a text whose `evaluate_steps` have ended, and their predictions, as JSON values.

    `tokens` has one object (see `_token`) for each token, and one for the position after the last. `nodes` and
    `entropies` (in nats) have an element for the prediction after each token; `pack` describes `nodes`. `spelled` has a
    key for the id, as a string, of each token of the text and each alternative in `tokens`; the value has the token's
    `text`, `bytes` and `ended` (see `token_as_json`). `cost` has `passes`, `tokens` and `seconds`.
    """
    from lookahead_core.serving.packed_predictions import pack

    entries, predictions = call_document.token_entries(ALTERNATIVES), call_document.predictions
    shown = [entry["id"] for entry in entries[:-1]] + [one["id"] for entry in entries for one in entry["alternatives"]]
    return {
        "tokens": [_token(entry, call_document.text) for entry in entries],
        "nodes": pack(predictions, KEPT),
        "entropies": [round(one.entropy, 4) for one in predictions],
        "spelled": {str(token_id): call_document.token_as_json(token_id) for token_id in dict.fromkeys(shown)},
        "cost": {"passes": cost.passes, "tokens": cost.tokens, "seconds": cost.seconds},
    }


def _token(entry: dict[str, Any], text: str) -> View:
    """Return an entry of `CallDocument.token_entries` as JSON: id, text, message, logprob, rank and alternatives.

    `text` is all text that the model reads, of which the entry's own is cut out. The alternatives are lists [id,
    log-probability]. Unknown and infinite log-probabilities are None.
    """
    return {
        "id": entry["id"],
        "text": text[entry["start"] : entry["end"]],
        "message": entry["message"],
        "logprob": finite_or_none(entry["logprob"], DIGITS),
        "rank": entry["rank"],
        "alternatives": [[one["id"], finite_or_none(one["logprob"], DIGITS)] for one in entry["alternatives"]],
    }
