"""Highlights and replacement fits as JSON for the page's script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lookahead_core.serving.json_values import finite_or_none

if TYPE_CHECKING:
    from lookahead_core.analysis.highlight_results import HighlightEntry, Highlights
    from lookahead_core.analysis.replacements import ReplacementFit

DIGITS = 6
"""Significant digits of numbers: more than the page shows."""


def as_json(highlights: Highlights) -> dict[str, Any]:
    """Return highlights as JSON values: `entries`, `marks` (indices of the marked entries), `sentence` and `cost`.

    The entries are those of `_entry_as_json`, one per entry and in their order. Unknown and infinite numbers become
    None.
    """
    index_of = {id(entry): index for index, entry in enumerate(highlights.entries)}
    return {
        "entries": [_entry_as_json(highlights, entry) for entry in highlights.entries],
        "marks": [index_of[id(entry)] for entry in highlights.marks],
        "sentence": highlights.message,
        "cost": {
            "passes": highlights.cost.passes,
            "tokens": highlights.cost.tokens,
            "seconds": highlights.cost.seconds,
        },
    }


def fit_as_json(fit: ReplacementFit) -> dict[str, Any]:
    """Return whether an alternative fits, as JSON values: its token `id`, `drops_in`, and a `sentence` that says it.

    `logprob` and `own` are log-probabilities of the `following` words after the alternative and after the text's word.
    """
    return {
        "id": fit.alternative.token_id,
        "drops_in": fit.drops_in,
        "sentence": fit.verdict,
        "following": fit.following,
        "logprob": finite_or_none(fit.logprob, DIGITS),
        "own": finite_or_none(fit.own_logprob, DIGITS),
    }


def _entry_as_json(highlights: Highlights, entry: HighlightEntry) -> dict[str, Any]:
    """Return one entry and its alternatives as JSON values, each number with DIGITS significant digits."""
    return {
        "start": entry.start,
        "end": entry.end,
        "token": entry.token,
        "ids": list(entry.token_ids),
        "place": entry.offset,
        "word": list(entry.word),
        "loss": finite_or_none(entry.loss, DIGITS),
        "relative": finite_or_none(highlights.relative_loss(entry), DIGITS),
        "rank": entry.rank,
        "entropy": finite_or_none(entry.entropy, DIGITS),
        "seen_from": entry.seen_from,
        "alternatives": [
            {
                "id": one.token_id,
                "text": one.text,
                "probability": finite_or_none(one.probability, DIGITS),
                "end": one.ended,
            }
            for one in entry.alternatives
        ],
    }
