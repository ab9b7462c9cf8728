"""A lookahead in which some branches are replaced by edited ones."""

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
    """Yield the steps of a lookahead, then those of edits; the last result has the edited branches.

    Each edit comes with the token ids of the branch that it replaces; without such a branch, it comes first. `options`
    are those of the lookahead, and `most` is the most tokens of an edited branch. Raises the errors of `edit_steps`.
    """
    last = None
    for last in steps:
        yield last
    assert last is not None
    result, checked_options = last.result, LookaheadOptions.of(options)
    for row, edit in edits:
        made = None
        for made in edit_steps(document, edit, checked_options, most):  # noqa: B007
            yield last
        assert made is not None
        result = _replaced(result, row, made)
    yield LookaheadStep(last.tokens_read, 0, lambda: result)


def _replaced(result: Lookahead, row: tuple[int, ...], made: Branch) -> Lookahead:
    """Return the result with `made` in place of the branch with the tokens `row`, or first if there is none.

    Other branches that have the tokens of `made` are left out. Shares and coverage are computed anew.
    """
    branches = list(result.branches)
    index = next((index for index, branch in enumerate(branches) if branch.token_ids == row), None)
    if index is None:
        branches.insert(0, made)
    else:
        branches[index] = made
    shown = with_new_shares([one for one in branches if one is made or one.token_ids != made.token_ids])
    return replace(result, branches=shown, coverage=coverage_of(shown))
