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
    """Return highlights as JSON values: `entries` (see `_entry_as_json`), `marks`, `sentence` and `cost`.

    The entries are in the order of the text. `marks` are the indices of the entries to mark, in the order of
    `Highlights.marks`. `sentence` is to be shown if nothing is marked, else empty. `cost` has `passes`, `tokens` and
    `seconds`.
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
    """Return whether an alternative fits, as JSON: its token `id`, `drops_in` (None if unknown), and `sentence`.

    `sentence` is a phrase for the page, such as "drops in". `following` are the next words of the text, `logprob` their
    log-probability after the alternative, and `own` that after the text's own word; both are None if unknown or
    infinite.
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
    """Return an entry of `highlights` as JSON values.

    `place` is the entry's `offset`, `ids` its `token_ids`, and `excess` its `excess_loss`; `relative` is its loss
    divided by the highest loss. `start`, `end`, `token`, `word`, `loss`, `rank`, `entropy` and `seen_from` are named as
    in HighlightEntry; losses and entropies are in nats. Each of `alternatives`, likeliest first, has `id`, `text`,
    `probability` and `end` (whether it is an end token). Unknown and infinite numbers are None; fractions have DIGITS
    significant digits.
    """
    return {
        "start": entry.start,
        "end": entry.end,
        "token": entry.token,
        "ids": list(entry.token_ids),
        "place": entry.offset,
        "word": list(entry.word),
        "loss": finite_or_none(entry.loss, DIGITS),
        "excess": finite_or_none(entry.excess_loss, DIGITS),
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
