"""The limits of prefetched views, and what the views after rows and after columns have in common."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookahead_core import Lookahead

AHEAD_BYTES = 64 * 1024
"""The most bytes of JSON of all prefetched views of one request."""
AHEAD_KEPT = 16
"""Tokens with log-probabilities that a prefetched view holds for each node, and entries of its list of other tokens."""
AHEAD_NODES = 512
"""The most tokens that are evaluated to prefetch views for one request."""


def view_key(token_ids: Sequence[int]) -> str:
    """Return the key of the view after a click that accepts these tokens: their ids, joined by spaces."""
    return " ".join(map(str, token_ids))


def views_of(results: Sequence[Lookahead], most_bytes: int) -> tuple[list[dict[str, Any]], int]:
    """Return the JSON views of the lookaheads after one click, and their size in bytes.

    They have AHEAD_KEPT log-probabilities for each node, or fewer if they would take more than `most_bytes`. Views
    without any log-probabilities may still take more.
    """
    from lookahead_core.serving.json_view import lookahead_as_json

    for kept in (AHEAD_KEPT, AHEAD_KEPT // 4, 0):
        views = [lookahead_as_json(result, kept=kept, rest=kept) for result in results]
        size = sum(len(json.dumps(view, separators=(",", ":"))) for view in views)
        if size <= most_bytes:
            break
    return views, size


def inserted(results: Sequence[Lookahead], token_ids: Sequence[int]) -> str:
    """Return the text that accepting `token_ids` inserts.

    They must be the first tokens of one of the results' branches, up to the end of a piece.
    """
    branches = (branch for result in results for branch in result.branches)
    branch = next(one for one in branches if one.token_ids[: len(token_ids)] == tuple(token_ids))
    return "".join(piece.text for piece in branch.pieces if piece.tokens <= len(token_ids))
