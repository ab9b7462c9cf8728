"""A document or a result as plain JSON, for pages, files and other programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lookahead_core.text import split_bytes

if TYPE_CHECKING:
    from lookahead_core.branches import Branch, Lookahead, Piece
    from lookahead_core.document import Document

TOP = 10
"""How many of the most likely next tokens a document shows."""


def as_json(result: Lookahead) -> dict[str, Any]:
    """A whole view: what the branches insert, with which odds, and what they cost."""
    return {
        "branches": [_branch(branch) for branch in result.branches],
        "coverage": result.coverage,
        "cost": {
            "passes": result.cost.passes,
            "tokens": result.cost.tokens,
            "seconds": result.cost.seconds,
            "live_slots": result.cost.live_slots,
            "cache_bytes": result.cost.cache_bytes,
        },
        "given": result.given,
        "seen_from": result.seen_from,
    }


def document_as_json(document: Document) -> dict[str, Any]:
    """What stands, and what the model says after it, where that is known already."""
    return {"text": document.text, "token_ids": document.token_ids, "top": _top(document)}


def _branch(branch: Branch) -> dict[str, Any]:
    return {
        "share": branch.share,
        "probability": branch.probability,
        "ended": branch.ended,
        "end_probability": math.exp(branch.logprobs[-1]) if branch.ended else None,
        "pieces": [_piece(piece) for piece in branch.pieces],
    }


def _piece(piece: Piece) -> dict[str, Any]:
    return {
        "text": piece.text,
        "ids": list(piece.token_ids),
        "probability": piece.probability,
        "tokens": piece.tokens,
    }


def _top(document: Document) -> list[dict[str, Any]]:
    """The most likely next tokens; a token that holds no whole character has no text."""
    said = document.head.prediction
    if said is None:
        return []
    pairs = zip(said.token_ids[:TOP], said.logprobs[:TOP], strict=True)
    return [
        {"id": token_id, "text": _whole(document, token_id), "probability": math.exp(logprob)}
        for token_id, logprob in pairs
    ]


def _whole(document: Document, token_id: int) -> str | None:
    """A token's text, where it is made of whole characters."""
    text, held = split_bytes(b"", document.model.codec.bytes_of(token_id))
    return text if text and not held and "\ufffd" not in text else None
