"""Shares and coverage: the probability that sets a branch apart from the others, and that of all branches together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from lookahead_core.document.results import Branch
from lookahead_core.speculation.acceptance import matching_prefix_length

B = TypeVar("B", bound=Branch)


def distinguishing_lengths(paths: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    """Return a dict from each path to the length of its shortest prefix that no other path begins with.

    The length is that of the whole path if there is no such prefix. Paths are tuples of token ids, and lengths are in
    tokens, at least 1. Equal paths count as one path.
    """
    order = sorted(set(paths))
    lengths = dict.fromkeys(order, 1)
    for first, second in itertools.pairwise(order):
        same = matching_prefix_length(first, second)
        for path in (first, second):
            lengths[path] = max(lengths[path], min(same + 1, len(path)))
    return lengths


def with_new_shares(branches: Sequence[B]) -> tuple[B, ...]:
    """Return copies of the branches, in order, with `share` and `probability` computed anew from their `logprobs`.

    `probability` is that of the whole branch. `share` is that of its prefix whose length `_share_lengths` finds among
    all of these branches; with word odds it stays that of the word.
    """
    lengths = _share_lengths(branches)
    return tuple(
        replace(
            branch,
            share=branch.share
            if branch.next_word is not None
            else math.exp(math.fsum(branch.logprobs[: lengths[branch.token_ids]])),
            probability=math.exp(branch.logprob),
        )
        for branch in branches
    )


def coverage_of(branches: Sequence[Branch]) -> float:
    """Return the probability, 0 to 1, of all texts that begin as one of the branches does; 0 without branches.

    A text begins as a branch does if it has the prefix of the branch that its share is the probability of. No text
    counts twice. With word odds it is the sum of the shares.
    """
    if any(branch.next_word is not None for branch in branches):
        return min(1.0, math.fsum(branch.share for branch in branches))
    logprobs = {branch.token_ids: branch.logprobs for branch in branches}
    return covered_probability(logprobs, _share_lengths(branches))


def _share_lengths(branches: Sequence[Branch]) -> dict[tuple[int, ...], int]:
    """Return a dict from the tokens of each branch to the length of the prefix that its share is the probability of.

    That is the shortest prefix that no other branch begins with, see `distinguishing_lengths`. Of a healed branch it
    also inserts a character, or is the whole branch: the typed token alone stands for all that may follow the text.
    """
    lengths = distinguishing_lengths([branch.token_ids for branch in branches])
    for branch in branches:
        if branch.healed:
            inserting = branch.pieces[0].tokens if branch.pieces else len(branch.token_ids)
            lengths[branch.token_ids] = max(lengths[branch.token_ids], inserting)
    return lengths


def covered_probability(
    logprobs: dict[tuple[int, ...], tuple[float, ...]], lengths: dict[tuple[int, ...], int]
) -> float:
    """Return the probability, 0 to 1, of all texts that begin with the first `lengths[path]` tokens of some path.

    Both dicts have the same paths of token ids as keys: `logprobs` has the natural log-probability of each token of a
    path, and `lengths` must be at least what `distinguishing_lengths` returns for all paths. No text counts twice; 0
    without paths.
    """
    masses: list[float] = []
    counted: tuple[int, ...] | None = None
    for path in sorted(logprobs):
        prefix = path[: lengths[path]]
        # In sorted order, a path comes right after its own prefixes.
        if counted is None or prefix[: len(counted)] != counted:
            counted = prefix
            masses.append(math.exp(math.fsum(logprobs[path][: len(prefix)])))
    return min(1.0, math.fsum(masses))
