"""A compression as JSON, for calls, the command line and the page."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookahead_core.analysis.compression import Compression


def compression_as_json(found: Compression) -> dict[str, Any]:
    """Return a dict with `text`, `tokens_before`, `tokens_after` and `spans`: dicts of all `CompressionSpan` fields."""
    return {
        "text": found.text,
        "spans": [asdict(span) for span in found.spans],
        "tokens_before": found.tokens_before,
        "tokens_after": found.tokens_after,
    }
