"""Token healing: re-open the last typed token, and grow branches from tokens that begin with its text."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch

from lookahead_core.engines.engine import NodeScores, predict
from lookahead_core.engines.prediction_rows import renormalised_among
from lookahead_core.strategies.branch_growth import BranchLeaf, BranchStart, Growth
from lookahead_core.tree import Node


@dataclass(frozen=True, slots=True)
class ReopenedToken:
    """The last typed token, to be replaced: its text in UTF-8, and the ids that may replace it.

    `token_ids` are all tokens of the model's vocabulary whose text begins with that text, its own id included.
    """

    text: bytes
    token_ids: Sequence[int]


def healed_leaves(growth: Growth, head: Node, typed: ReopenedToken, count: int) -> list[BranchLeaf]:
    """Return the `count` most probable first leaves of branches that replace the last typed token, the node `head`.

    Their paths begin below the parent of `head`, with a token whose text begins with the typed text. The typed token
    itself inserts nothing, so its paths have one token more; it is allowed even if it is banned. The most probable path
    comes first, conditioned on the typed text; there may be fewer. `head` must be at depth 2 or more. Takes at
    most one forward pass, and sets `growth.start`. The order is the same at every temperature and top-p, which act on
    all these paths together: see `joint_row`.
    """
    assert head.parent is not None
    start = known_healed_start(growth, head, typed)
    if start is None:
        start = _healed_start(growth, head, typed, predict(growth.engine, [head.parent, head]))
    growth.start = start
    base = BranchLeaf(head.parent, (), (), typed=typed.text)
    # One more, because the typed token may be among them.
    leaves = [leaf for leaf in growth.children(base, count + 1, start.prediction) if leaf.token_ids != (head.token_id,)]
    leaves += growth.children(base.extended(head.token_id, start.typed_logprob, start.prediction), count)
    return sorted(growth.distinct(leaves), key=lambda leaf: -leaf.logprob)[:count]


def joint_row(first_row: torch.Tensor, typed_id: int, typed_row: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities of all paths that first insert text after a re-opened token, as one row.

    `first_row` and `typed_row`, of shape (vocabulary,), are those that `evaluate_healed_start` returns. In the result,
    of shape (2 * vocabulary,), index i is token i in place of the typed token `typed_id`, and index vocabulary + i is
    the typed token and token i after it. Index `typed_id` is -inf, since the typed token alone inserts nothing.

    Temperature and top-p are to be applied to this row. Applied to each token by itself, a high temperature would make
    a token that replaces the typed one too likely: it has few rivals, and the token after the typed one has thousands.
    """
    replacing = first_row.index_fill(0, torch.tensor([typed_id], device=first_row.device), -math.inf)
    return torch.cat([replacing, first_row[typed_id] + typed_row])


def known_healed_start(growth: Growth, head: Node, typed: ReopenedToken) -> BranchStart | None:
    """Return the predictions that `evaluate_healed_start` stored in the memo of the parent of `head`, if there are any.

    None if there are none for this typed text and these banned tokens, and if the prediction after `head` is not known:
    that node may have been removed and made again since. `head` is the node of the typed token, not the root.
    """
    assert head.parent is not None
    start = (head.parent.memo or {}).get(_note_key(growth, head, typed))
    return start if growth.prediction_after(head) is not None else None


@torch.inference_mode()
def evaluate_healed_start(
    growth: Growth, head: Node, typed: ReopenedToken
) -> tuple[BranchStart, torch.Tensor, torch.Tensor]:
    """Compute the predictions conditioned on the typed text, in one forward pass, and store them in the parent's memo.

    `head` is the node of the typed token, at depth 2 or more. Returns them with two rows of log-probabilities, each of
    shape (vocabulary,) with banned tokens at -inf: of the first token, conditioned on the typed text (-inf also for
    tokens that do not begin with it; the typed token is never banned), and of the token after the typed token.
    """
    assert head.parent is not None
    scores = predict(growth.engine, [head.parent, head])
    # One after the other: a remote engine keeps the row of the parent, which does not change while a word is typed.
    row, head_row = (scores.logprobs_of([node])[0] for node in (head.parent, head))
    head_row = growth.note_without_banned(head, head_row)
    first_row, _ = renormalised_among(row, _replacements(growth, head, typed)[0])
    return _healed_start(growth, head, typed, scores), first_row, head_row


@torch.inference_mode()
def _healed_start(growth: Growth, head: Node, typed: ReopenedToken, scores: NodeScores) -> BranchStart:
    """Return the predictions conditioned on the typed text, and store them in the parent's memo.

    `scores` are those of `head` and its parent. No rows are read from them if nothing is excluded: a server need not
    give the log-probabilities of all tokens.
    """
    assert head.parent is not None
    if growth.prediction_after(head) is None:
        growth.note_without_banned(head, scores.logprobs_of([head])[0])
    after_typed = growth.prediction_after(head)
    assert after_typed is not None
    allowed, excluded = _replacements(growth, head, typed)
    prediction, (typed_logprob,) = scores.among(head.parent, allowed, [head.token_id])
    banned: list[float] = []
    if excluded:
        banned = [math.exp(value) for value in scores.among(head.parent, typed.token_ids, excluded)[1]]
    odds = tuple(zip(excluded, banned, strict=True))
    start = BranchStart(prediction, typed_logprob, after_typed, odds, growth.excluded_after(head))
    head.tree.memoize(head.parent, _note_key(growth, head, typed), start)
    return start


def _replacements(growth: Growth, head: Node, typed: ReopenedToken) -> tuple[list[int], list[int]]:
    """Return the tokens that may replace the re-opened one, `head`, and in order of id those that are excluded."""
    spelling: frozenset[int] = frozenset()
    if growth.avoided is not None:
        spelling = growth.avoided.excluded_among(growth.avoided.state_of(head), typed.token_ids, len(typed.text))
    excluded = (growth.banned | spelling) - {head.token_id}
    allowed = [token_id for token_id in typed.token_ids if token_id not in excluded]
    return allowed, sorted(excluded.intersection(typed.token_ids))


def _note_key(growth: Growth, head: Node, typed: ReopenedToken) -> Hashable:
    """Return the memo key under which the parent of `head` stores the `BranchStart` of a re-opened token.

    The key differs for another typed text, another token of `head`, and other excluded tokens or words in `growth`.
    """
    return typed.text, head.token_id, growth.exclusion
