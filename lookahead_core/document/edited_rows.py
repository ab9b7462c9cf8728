"""Replaces some branches of a lookahead by edited ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lookahead_core.document.branch_edit import BranchEdit, edit_steps
from lookahead_core.document.coverage import coverage_of, with_new_shares
from lookahead_core.document.results import Branch, Lookahead, LookaheadStep
from lookahead_core.strategies.lookahead_options import LookaheadOptions

if TYPE_CHECKING:
    from lookahead_core.document.document import Document


def with_edited_rows(
    document: Document,
    steps: Iterator[LookaheadStep],
    edits: Sequence[tuple[tuple[int, ...], BranchEdit]],
    options: Mapping[str, Any],
    most: int,
) -> Iterator[LookaheadStep]:
    """Yield the steps of a lookahead, then one for each pass of the edits; the last one has the edited branches.

    `edits` are pairs of the token ids of the branch to replace, and the edit. If the lookahead has no such branch, the
    edited one becomes its first. `options` are those of the lookahead; `most` is the maximum number of tokens of an
    edited branch. Raises the errors of `edit_steps`.
    """
    for last in steps:
        yield last
    result, checked_options = last.result, LookaheadOptions.of(options)
    for row, edit in edits:
        for edited in edit_steps(document, edit, checked_options, most):  # noqa: B007
            yield last
        assert edited is not None
        result = _replaced(result, row, edited)
    yield LookaheadStep(last.tokens_read, 0, lambda: result)


def _replaced(result: Lookahead, row: tuple[int, ...], edited: Branch) -> Lookahead:
    """Return the result with the branch `edited` instead of the one with the tokens `row`, or first if there is none.

    Other branches with the same tokens as `edited` are left out. Shares and coverage are computed anew.
    """
    branches = list(result.branches)
    index = next((index for index, branch in enumerate(branches) if branch.token_ids == row), None)
    if index is None:
        branches.insert(0, edited)
    else:
        branches[index] = edited
    shown = with_new_shares([one for one in branches if one is edited or one.token_ids != edited.token_ids])
    return replace(result, branches=shown, coverage=coverage_of(shown))
