"""The clicks that are possible on a result's branches, the likeliest first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lookahead_core.document.results import Branch, Lookahead


@dataclass(frozen=True, slots=True)
class Click:
    """A possible click on a piece of a branch, which would accept the branch's first `tokens` tokens."""

    branch: Branch
    tokens: int

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The tokens that it would accept."""
        return self.branch.token_ids[: self.tokens]


def possible_clicks(results: Sequence[Lookahead]) -> list[Click]:
    """Return a click for each piece of each branch of these results; of clicks that accept the same tokens only one.

    Clicks on first pieces come first, then all others; each of the two from the likeliest path in any result to the
    least likely.
    """
    found: dict[tuple[tuple[int, ...], bool], tuple[tuple[bool, float], Click]] = {}
    for branch in (branch for result in results for branch in result.branches):
        for index, piece in enumerate(branch.pieces):
            click = Click(branch, piece.tokens)
            key, rank = (click.token_ids, branch.healed), (index > 0, -math.fsum(branch.logprobs[: piece.tokens]))
            if key not in found or rank < found[key][0]:
                found[key] = rank, click
    return [click for _, click in sorted(found.values(), key=lambda entry: entry[0])]
