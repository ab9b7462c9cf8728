"""The limits of prefetched views, and the text that a click before one of them inserts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lookahead_core import Lookahead

AHEAD_BYTES = 64 * 1024
"""The most bytes of JSON of all prefetched views of one request."""
AHEAD_KEPT = 16
"""Tokens with log-probabilities that a prefetched view holds for each node, and entries of its list of other tokens."""
AHEAD_NODES = 512
"""The most tokens that are evaluated to prefetch views for one request."""


def inserted(results: Sequence[Lookahead], token_ids: Sequence[int]) -> str:
    """Return the text that accepting `token_ids` inserts.

    They must be the first tokens of one of the results' branches, up to the end of a piece.
    """
    branches = (branch for result in results for branch in result.branches)
    branch = next(one for one in branches if one.token_ids[: len(token_ids)] == tuple(token_ids))
    return "".join(piece.text for piece in branch.pieces if piece.tokens <= len(token_ids))
