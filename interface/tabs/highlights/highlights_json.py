"""Highlights as the page's script reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lookahead_core.serving.json_values import number

if TYPE_CHECKING:
    from lookahead_core.analysis.highlights import HighlightEntry, Highlights
    from lookahead_core.analysis.replacements import ReplacementFit

DIGITS = 6
"""Enough for whatever the page shows."""


def as_json(found: Highlights) -> dict[str, Any]:
    """All of it as plain JSON; what has no number has null."""
    places = {id(entry): index for index, entry in enumerate(found.entries)}
    return {
        "entries": [_entry_as_json(found, entry) for entry in found.entries],
        "marks": [places[id(entry)] for entry in found.marks],
        "sentence": found.sentence,
        "cost": {"passes": found.cost.passes, "tokens": found.cost.tokens, "seconds": found.cost.seconds},
    }


def fit_as_json(fit: ReplacementFit) -> dict[str, Any]:
    """A verdict as plain JSON."""
    return {
        "id": fit.alternative.token_id,
        "drops_in": fit.drops_in,
        "sentence": fit.sentence,
        "following": fit.following,
        "logprob": number(fit.logprob, DIGITS),
        "own": number(fit.own, DIGITS),
    }


def _entry_as_json(found: Highlights, entry: HighlightEntry) -> dict[str, Any]:
    return {
        "start": entry.start,
        "end": entry.end,
        "token": entry.token,
        "ids": list(entry.token_ids),
        "place": entry.place,
        "word": list(entry.word),
        "loss": number(entry.loss, DIGITS),
        "relative": number(found.relative(entry), DIGITS),
        "rank": entry.rank,
        "entropy": number(entry.entropy, DIGITS),
        "seen_from": entry.seen_from,
        "alternatives": [
            {"id": one.token_id, "text": one.text, "probability": number(one.probability, DIGITS), "end": one.ended}
            for one in entry.alternatives
        ],
    }
